"""What a training came to, on rows it has not seen: never stability alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from r2et.attack import StrongAttack
from r2et.data import Data
from r2et.defaults import RADIUS
from r2et.explain import Explainer
from r2et.metrics import split_auc
from r2et.models.output import undisturbed
from r2et.rank import distinct_top_k, largest_top_k_share, thickness
from r2et.region import L2
from r2et.train.baselines import Baselines, fit_baselines
from r2et.train.defaults import default_explainer

ROWS = 200
MANY_FEATURES = 1000  # beyond, a tenth of the rows are attacked


@dataclass(frozen=True)
class Report:
    """Accuracy, stability and individuality of a model on test rows.

    auc_clean: of all test rows; None where these have one class.
    auc_linear: the same of a logistic regression fitted on the training rows.
    auc_boosting: the same of boosting; None where it was not asked for.
    rows: how many of the first rows the rest is of.
    precision_strong: P@k under StrongAttack("fast") in an L2 ball of the radius.
    thickness_probability: share of pairs in order.
    distinct_top_k: how many different top-k sets there are.
    largest_top_k_share: share of rows that have the commonest.
    """

    auc_clean: float | None
    auc_linear: float | None
    rows: int
    k: int
    radius: float
    precision_strong: float
    thickness_probability: float
    distinct_top_k: int
    largest_top_k_share: float
    auc_boosting: float | None = None


def report(
    model: nn.Module,
    data: Data,
    *,
    k: int | None = None,
    radius: float = RADIUS,
    rows: int | None = None,
    explainer: Explainer | None = None,
    progress: bool = False,
    baselines: Baselines | Literal[False] | None = None,
) -> Report:
    """Measure a model on data.test. rows: by default 200, or 20 of more than 1000 features.

    baselines: those of its training; by default a logistic regression is fitted on data.train, and
    with False none is.
    """
    k = data.k if k is None else k
    many = data.test.x[0].numel() > MANY_FEATURES
    x = data.test.x[: rows or (ROWS // 10 if many else ROWS)]
    explainer = default_explainer(data) if explainer is None else explainer
    device = next((p.device for p in model.parameters()), x.device)
    x, region = x.to(device), L2(radius)
    attack = StrongAttack(region, budget="fast", progress=progress)
    attacked = attack(model, explainer, x, k=k)
    with undisturbed(model):
        pairs = thickness(
            model, x, k, kind="probability", explainer=explainer, region=region, samples=16
        )
    scores = explainer(model, x)
    if baselines is None:
        baselines = fit_baselines(data, boosting=False)
    boosting = baselines.boosting if baselines else None
    return Report(
        auc_clean=split_auc(model, data.test),
        auc_linear=baselines.logistic.auc_test if baselines else None,
        auc_boosting=None if boosting is None else boosting.auc_test,
        rows=len(x),
        k=k,
        radius=float(radius),
        precision_strong=float(attacked.precision.mean()),
        thickness_probability=float(pairs.mean()),
        distinct_top_k=distinct_top_k(scores, k),
        largest_top_k_share=largest_top_k_share(scores, k),
    )
