"""What attacks found: the strongest, the smallest change, and the papers' own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from r2et.attack import Attack, ERAttack, FeasibleSearch, MinimumNorm, StrongAttack
from r2et.audit.measures.base import AuditedRows, Measure, of_probability
from r2et.audit.measures.feasible_proofs import ALL_TRIED
from r2et.audit.settings import WHERE, AuditSettings
from r2et.audit.statistics import Auc, Columns, Estimate, Mean, Median, Share, share_of
from r2et.explain import Explainer, SmoothGrad
from r2et.models.output import batched_logits
from r2et.results import FIGURES

STEPS = {"fast": 100, "standard": 1000, "thorough": 1000}
PICTURE_STEPS = 100  # the papers' for what is no table
SEARCHES: dict[str, Callable[..., FeasibleSearch]] = {
    "fast": partial(FeasibleSearch, samples=32, starts=3, sweeps=3, values=8),
    "standard": FeasibleSearch,
    "thorough": partial(FeasibleSearch, samples=256, starts=16, sweeps=6, values=32),
}
RADII = ("radius_strong", "radius_smallest", "radius_er")


def strong(rows: AuditedRows) -> Columns:
    """The attack to believe."""
    s = rows.settings
    attack: Attack = StrongAttack(s.region, budget=s.budget) if s.moves is None else search_of(s)
    result = attack(rows.model, s.explainer, rows.x, k=s.k, generator=rows.generator("strong"))
    radius = {"radius_strong": result.radius} if s.moves is None else {}
    return {
        **radius,
        "precision_strong": result.precision,
        "distance_strong": result.distance,
        "x_adv": result.x_adv,
        "logits_strong": batched_logits(rows.model, result.x_adv, WHERE),
    }


def search_of(settings: AuditSettings) -> FeasibleSearch:
    """The search through the changes that a row could really have, at the audit's budget."""
    budget = settings.budget
    return SEARCHES[budget](region=settings.region, limit=ALL_TRIED[budget])


def smallest(rows: AuditedRows) -> Columns:
    """The smallest change that was found to displace a reason."""
    s = rows.settings
    attack = MinimumNorm(s.ball_of(s.limit), budget=s.budget)
    result = attack(rows.model, s.explainer, rows.x, k=s.k, generator=rows.generator("smallest"))
    return {"radius_smallest": result.radius}


def papers(rows: AuditedRows) -> Columns:
    """The papers' attack, through the probability's gradient as they run it (B.1.2).

    sensitivity: of its last point, where the papers measure whether the prediction changed.
    """
    s = rows.settings
    steps = STEPS[s.budget] if rows.x.ndim == 2 else min(PICTURE_STEPS, STEPS[s.budget])
    attack = ERAttack(
        s.ball,  # small steps of a gradient lead nowhere where labels are switched
        steps=steps,
        step_size=s.radius / steps,
        norm=s.norm,
        through=of_probability(s.explainer),
    )
    best, last = attack.best_and_last(rows.model, s.explainer, rows.x, k=s.k)
    return {
        "precision_er": best.precision,
        "radius_er": best.radius,
        "first_flip": torch.where(best.first_flip < 0, torch.inf, best.first_flip.double()),
        "sensitivity": (~last.kept).double(),
    }


def gradients_note(explainer: Explainer) -> str | None:
    """What an attack on an explanation without gradients follows instead, in a sentence."""
    if explainer.differentiable:
        return None
    own = explainer.equivalent()
    if own is None:
        return (
            "The explanation gives no gradients, so the attacks on it used none: they are weaker,"
            " and it may be less stable than it looks here."
        )
    but = ", but for the noise drawn" if isinstance(own, SmoothGrad) else ""
    return (
        "The explanation gives no gradients: attacks followed those of r2et's"
        f" {type(own).__name__}, which has the same scores{but}, and were judged on the"
        " explanation itself."
    )


def attacked_radius(columns: Columns) -> Tensor:
    """(B,) the smallest radius at which any attack displaced a reason; infinite if none did.

    NaN where no attack was made.
    """
    smallest_radius = torch.full((len(columns["index"]),), torch.nan, dtype=torch.float64)
    for name in RADII:
        smallest_radius = torch.fmin(smallest_radius, columns.get(name, smallest_radius).double())
    return smallest_radius


def changed_share(columns: Columns, settings: AuditSettings) -> Estimate:
    """The share of rows whose top k any attack changed within the region: the page counts alike."""
    nothing = torch.full((len(columns["index"]),), torch.nan, dtype=torch.float64)
    precision = columns.get("precision_strong", nothing).double()
    radius = columns.get("radius_attacked", nothing).double()
    within = radius <= (0.0 if settings.moves is not None else settings.radius)
    there = ~(precision.isnan() & radius.isnan())
    return share_of(((precision < 1) | within)[there].double(), settings.level)


# The radius attacked is that of all attacks; the strong one is the first of them.
STRONG = Measure(
    "strong",
    strong,
    {
        FIGURES["precision_strong"]: Mean("precision_strong", (0.0, 1.0)),
        FIGURES["changed_share"]: changed_share,
        FIGURES["radius_attacked_median"]: Median("radius_attacked"),
        FIGURES["auc_attacked"]: Auc("logits_strong"),
    },
    ("precision_strong", "distance_strong", "radius_attacked"),
)
SMALLEST = Measure("smallest", smallest)
PAPERS = Measure(
    "papers",
    papers,
    {
        FIGURES["precision_er"]: Mean("precision_er", (0.0, 1.0)),
        FIGURES["sensitivity"]: Share("sensitivity"),
    },
    ("precision_er", "first_flip", "sensitivity"),
)
