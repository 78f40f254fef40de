"""What a training came to, on rows it has not seen: never stability alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from torch import nn

from r2et.attack import StrongAttack
from r2et.data import Data
from r2et.explain import Explainer
from r2et.metrics import split_auc
from r2et.models.output import undisturbed
from r2et.rank import distinct_top_k, largest_top_k_share, thickness
from r2et.region import L2
from r2et.train.defaults import default_explainer

ROWS = 200
MANY_FEATURES = 1000  # beyond, a tenth of the rows are attacked
LINEAR_NUMBERS = 2**24  # how much the linear model is shown


@dataclass(frozen=True)
class Report:
    """Accuracy, stability and individuality of a model on test rows.

    auc_clean: of all test rows; None where these have one class.
    auc_linear: the same of a logistic regression on the same features.
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


def report(
    model: nn.Module,
    data: Data,
    *,
    k: int | None = None,
    radius: float = 0.3,
    rows: int | None = None,
    explainer: Explainer | None = None,
    progress: bool = False,
) -> Report:
    """Measure a model on data.test. rows: by default 200, or 20 of more than 1000 features."""
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
    return Report(
        auc_clean=split_auc(model, data.test),
        auc_linear=linear_auc(data),
        rows=len(x),
        k=k,
        radius=float(radius),
        precision_strong=float(attacked.precision.mean()),
        thickness_probability=float(pairs.mean()),
        distinct_top_k=distinct_top_k(scores, k),
        largest_top_k_share=largest_top_k_share(scores, k),
    )


def linear_auc(data: Data) -> float | None:
    """Test AUC of a logistic regression, one class against the rest for many; None for one."""
    (x, y), (x_test, y_test) = data.train, data.test
    if bool((y_test == y_test[0]).all()):
        return None
    rows = max(1, LINEAR_NUMBERS // x[0].numel())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        linear = LogisticRegression(max_iter=1000)
        linear.fit(x[:rows].flatten(1).numpy(), y[:rows].numpy())
    shares = linear.predict_proba(x_test.flatten(1).numpy())
    truth = y_test.numpy()
    if shares.shape[1] == 2:
        return float(roc_auc_score(truth == linear.classes_[1], shares[:, 1]))
    places = [i for i, label in enumerate(linear.classes_) if label in truth]
    areas = [roc_auc_score(truth == linear.classes_[i], shares[:, i]) for i in places]
    return float(sum(areas) / len(areas))
