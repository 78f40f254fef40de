"""Everything an audit measures about some rows, one small function each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from r2et.attack import ERAttack, MinimumNorm, StrongAttack
from r2et.audit.settings import WHERE, Settings
from r2et.audit.source import Chunk
from r2et.certify import IntervalCertifier
from r2et.certify.base import Certificate
from r2et.checks import check_k
from r2et.errors import InputError, RowError, require, row_numbers
from r2et.explain import Explainer
from r2et.metrics import faithfulness
from r2et.models.output import CHUNK_NUMBERS, batched_logits, classes, log_odds, undisturbed
from r2et.penalty import EstimatedHessian, ExactHessian
from r2et.rank import precision_at_k, ranking, thickness

NOISE = 100  # random points per row
STEPS = {"fast": 100, "standard": 1000, "thorough": 1000}
PICTURE_STEPS = 100  # the papers' for what is no table
MANY_FEATURES = 128  # beyond, the Hessian is estimated
WORST, ORDINARY = 8, 4  # rows that a page shows
OUTWARD = 1e-6  # relative
LATE = "the time was up"
ATTACKED = ("radius_strong", "radius_smallest", "radius_er")

Columns: TypeAlias = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows under audit, with what every measure needs of them."""

    model: nn.Module
    settings: Settings
    chunk: Chunk
    logits: Tensor
    target: Tensor
    scores: Tensor

    @property
    def x(self) -> Tensor:
        return self.chunk.x

    def generator(self, purpose: str) -> torch.Generator:
        return self.settings.generator(self.chunk.number, purpose)


def posed(model: nn.Module, settings: Settings, chunk: Chunk) -> Part:
    """Predictions and clean explanations; whatever is wrong with the model shows here."""
    with row_numbers(lambda row: int(chunk.index[row])):
        out = batched_logits(model, chunk.x, WHERE)
        target = classes(out)
        scores = settings.explainer(model, chunk.x, target.to(chunk.x.device))
    check_labels(chunk.y, max(2, out.shape[1]))
    check_k(WHERE, settings.k, scores.shape[1])
    return Part(model, settings, chunk, out, target, scores)


def check_labels(y: Tensor | None, count: int) -> None:
    """Classes that a model with so many of them has."""
    wrong = -1 if y is None else int(y.max())
    require(wrong < count, WHERE, "y", f"in 0..{count - 1}, the model's classes", wrong)


def clean(part: Part) -> Columns:
    """What is predicted, how surely, and why."""
    sure = log_odds(part.logits.double(), part.target).sigmoid()
    top = ranking(part.scores)[:, : part.settings.k]
    found = {"target": part.target, "probability": sure, "top": top, "logits": part.logits}
    return found if part.chunk.y is None else {**found, "label": part.chunk.y}


def certified(part: Part) -> Columns:
    """The radius within which nothing can change the top k, and P@k proved at the radius asked."""
    s = part.settings
    proof, unit = proved(part.model, s, part.x, part.target, limit=1.001 * s.limit)
    return {
        "radius_certified": (proof.radius / unit).clamp(max=s.limit),
        # A hair more: projected to a ball, a point may lie outside it by rounding.
        "certified_precision": proof.precision_at(s.radius * unit * (1 + OUTWARD)),
    }


def proved(
    model: nn.Module, settings: Settings, x: Tensor, target: Tensor, *, limit: float
) -> tuple[Certificate, float]:
    """A certificate in the plain norm, and how long a unit of the region is in it.

    A unit of a scaled ball is as long as its longest: what is proved of the plain ball around it
    holds in it. limit: in the region's units; what is certified lies a little below.
    """
    scale, explainer = settings.ball.scale, settings.explainer
    unit = 1.0 if scale is None else float(torch.as_tensor(scale).max())
    if explainer.reduce == "abs_sum" and x.ndim == 4 and x.shape[1] == 1:
        explainer = replace(explainer, reduce="abs")  # a sum over one channel
    certifier = IntervalCertifier(norm=settings.norm, limit=limit * unit)
    with undisturbed(model):
        return certifier(model, explainer, x, k=settings.k, target=target.to(x.device)), unit


def strong(part: Part) -> Columns:
    """The attack to believe."""
    s = part.settings
    attack = StrongAttack(s.region, budget=s.budget)
    found = attack(part.model, s.explainer, part.x, k=s.k, generator=part.generator("strong"))
    return {
        "precision_strong": found.precision,
        "distance_strong": found.distance,
        "radius_strong": found.radius,
        "x_adv": found.x_adv,
        "logits_strong": batched_logits(part.model, found.x_adv, WHERE),
    }


def smallest(part: Part) -> Columns:
    """The smallest change that was found to displace a reason."""
    s = part.settings
    attack = MinimumNorm(s.ball_of(s.limit), budget=s.budget)
    found = attack(part.model, s.explainer, part.x, k=s.k, generator=part.generator("smallest"))
    return {"radius_smallest": found.radius}


def papers(part: Part) -> Columns:
    """The papers' attack, through the probability's gradient as they run it (B.1.2).

    sensitivity: of its last point, where the papers measure whether the prediction changed.
    """
    s = part.settings
    steps = STEPS[s.budget] if part.x.ndim == 2 else min(PICTURE_STEPS, STEPS[s.budget])
    attack = ERAttack(
        s.region,
        steps=steps,
        step_size=s.radius / steps,
        norm=s.norm,
        through=_of_probability(s.explainer),
    )
    best, last = attack.best_and_last(part.model, s.explainer, part.x, k=s.k)
    return {
        "precision_er": best.precision,
        "radius_er": best.radius,
        "first_flip": torch.where(best.first_flip < 0, torch.inf, best.first_flip.double()),
        "sensitivity": (~last.kept).double(),
    }


def noise(part: Part) -> Columns:
    """Mean P@k over random points of the region that keep the prediction: what chance does."""
    s, x = part.settings, part.x
    scores_at = s.explainer.at(part.model, x, part.target.to(x.device))
    numbers = part.generator("noise")
    total = torch.zeros(len(x), dtype=torch.float64)
    count = torch.zeros(len(x), dtype=torch.float64)
    left = NOISE
    while left > 0:
        some = min(left, max(1, CHUNK_NUMBERS // x.numel()))
        points = s.region.sample(x, some, generator=numbers).flatten(0, 1)
        kept = classes(batched_logits(part.model, points, WHERE)) == part.target.repeat(some)
        clean_scores = part.scores.repeat(some, 1)
        right = precision_at_k(clean_scores, scores_at(points), s.k).double().cpu()
        total += torch.where(kept, right, 0.0).view(some, -1).sum(0)
        count += kept.view(some, -1).sum(0)
        left -= some
    return {"precision_noise": torch.where(count > 0, total / count.clamp(min=1), torch.nan)}


def thick(part: Part) -> Columns:
    """Thickness in the region, as a gap and as a probability (Sec. 4.1)."""
    s = part.settings

    def found(kind: Any) -> Tensor:
        generator = part.generator("thickness")
        return thickness(
            *(part.model, part.x, s.k),
            explainer=s.explainer,
            region=s.region,
            kind=kind,
            generator=generator,
        )

    return {"thickness": found("gap"), "thickness_probability": found("probability")}


def curvature(part: Part) -> Columns:
    """||H(x)|| of the probability's explanation, beside thickness in Fig. 2."""
    of = _of_probability(part.settings.explainer) or part.settings.explainer
    many = part.x[0].numel() > MANY_FEATURES
    penalty = EstimatedHessian(explainer=of) if many else ExactHessian(explainer=of)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a curvature of zero is a finding here, not a mistake
        return {"hessian_norm": penalty(part.model, part.x, part.target.to(part.x.device)).detach()}


def faithful(part: Part) -> Columns:
    """Whether the reasons are what the model uses."""
    s = part.settings
    return dict(faithfulness(part.model, s.explainer, part.x, baseline=s.baseline)._asdict())


def _of_probability(explainer: Explainer) -> Explainer | None:
    """The same explanation of the probability, where there is a choice."""
    plain = explainer.differentiable and getattr(explainer, "of", None) == "log_odds"
    return replace(explainer, of="probability") if plain else None  # type: ignore[call-arg]


# In the order of their worth: where time runs out, the last are left out first.
MEASURES: dict[str, Callable[[Part], Columns]] = {
    "clean": clean,
    "certified": certified,
    "strong": strong,
    "smallest": smallest,
    "noise": noise,
    "thickness": thick,
    "faithfulness": faithful,
    "papers": papers,
    "curvature": curvature,
}


@dataclass(frozen=True, eq=False)
class Measured:
    """What a chunk came to. skipped: measure -> why it says nothing about these rows.

    columns: one entry per row each. pictured: of the few rows that may be shown, their places in
    the chunk, their inputs, and what the attack made of them.
    """

    number: int
    fingerprint: str
    columns: Columns
    pictured: Columns
    skipped: dict[str, str]
    seconds: dict[str, float]


@dataclass(frozen=True, eq=False)
class Measure:
    """Measures the rows of a chunk; a value that can be sent to another process."""

    model: nn.Module
    settings: Settings

    def __call__(self, chunk: Chunk) -> Measured:
        part = posed(self.model, self.settings, chunk)
        columns: Columns = {"index": chunk.index}
        skipped: dict[str, str] = {}
        seconds: dict[str, float] = {}
        for name, function in MEASURES.items():
            late = chunk.until is not None and time.time() > chunk.until
            if late and name != "clean":
                skipped[name] = LATE
                continue
            began = time.perf_counter()
            try:
                found = function(part)
            except RowError as error:  # its row is one of the points tried, not one of those given
                skipped[name] = f"{error.sentence}."
            except InputError as error:  # this measure cannot be taken of such a model
                skipped[name] = str(error)
            else:
                columns.update({key: value.detach().cpu() for key, value in found.items()})
            seconds[name] = time.perf_counter() - began
        x_adv = columns.pop("x_adv", chunk.x.cpu())
        places = candidates(columns, first=chunk.number == 0)
        pictured = {"place": places, "x": chunk.x.cpu()[places], "x_adv": x_adv[places]}
        return Measured(chunk.number, chunk.fingerprint, columns, pictured, skipped, seconds)


def candidates(columns: Columns, *, first: bool) -> Tensor:
    """Places of the rows that may be shown: the worst and, of the first chunk, its first."""
    worst = worst_first(columns)[:WORST]
    ordinary = torch.arange(min(ORDINARY, len(columns["index"]))) if first else worst[:0]
    return torch.tensor(sorted({*worst.tolist(), *ordinary.tolist()}))


def worst_first(columns: Columns) -> Tensor:
    """Places in order of how badly the rows fared: smallest P@k, then the smallest change."""
    rows = len(columns["index"])
    precision = columns.get("precision_strong", torch.ones(rows)).double()
    by_change = torch.argsort(attacked(columns), stable=True)
    return by_change[torch.argsort(precision[by_change], stable=True)]


def attacked(columns: Columns) -> Tensor:
    """(B,) the smallest radius at which any attack displaced a reason; infinite if none did.

    NaN where no attack was made.
    """
    found = torch.full((len(columns["index"]),), torch.nan, dtype=torch.float64)
    for name in ATTACKED:
        found = torch.fmin(found, columns.get(name, found).double())
    return found
