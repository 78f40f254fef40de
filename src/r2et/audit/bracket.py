"""The bracket: up to which change of x the top k is proved, and from which on it is broken."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from r2et.attack import MinimumNorm
from r2et.audit.input_rows import InputRows
from r2et.audit.loading import LoadedModel, open_rows
from r2et.certify import IntervalCertifier
from r2et.checks import check_model_input
from r2et.defaults import BUDGET
from r2et.errors import InputError, require
from r2et.explain import Explainer, Gradient
from r2et.files import check_writable
from r2et.models.compiled import original_module
from r2et.models.logits_check import check_logits
from r2et.rank import distinct_top_k, largest_top_k_share
from r2et.region import L2, Linf
from r2et.results import TrainingRows
from r2et.train import Trained

RADII = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LARGEST = 1e6  # radius looked for; inputs so far away overflow


@dataclass(frozen=True)
class Bracket:
    """Per row, the proved radius (0 proves nothing) and the attacked one (infinite: none found).

    Between the two nobody knows.

    certified, attacked: (B,) radii.
    norm, k: what they are of.
    limit: nothing was looked for beyond it.
    method, assumptions: those of the proof.
    distinct_top_k, largest_top_k_share: how many different explanations the rows have, since one
        for everybody is easily stable.
    training_rows: how many of the rows given a training has seen, as an audit tells it.
    """

    certified: Tensor
    attacked: Tensor
    norm: str
    k: int
    limit: float
    method: str
    assumptions: str
    distinct_top_k: int
    largest_top_k_share: float
    training_rows: TrainingRows | None = None

    def shares(self, radius: float) -> tuple[float, float, float]:
        """Shares of rows that at this radius are proved, unknown, and broken; they sum to 1."""
        proved = float((self.certified >= radius).double().mean())
        broken = float((self.attacked <= radius).double().mean())
        return proved, max(0.0, 1 - proved - broken), broken

    def radii(self) -> list[float]:
        """Round radii up to the limit, at which to look."""
        below = [r for r in RADII if r < self.limit]
        return [*below, self.limit]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a radius that no attack found is null."""
        ends = torch.tensor(QUANTILES, dtype=torch.float64)
        curve = [
            dict(zip(("radius", "proved", "unknown", "broken"), (r, *self.shares(r)), strict=True))
            for r in self.radii()
        ]
        return {
            "rows": len(self.certified),
            "k": self.k,
            "norm": self.norm,
            "limit": self.limit,
            "certified_quantiles": _by_quantile(self.certified.quantile(ends).tolist()),
            "attacked_quantiles": _by_quantile(_quantiles(self.attacked, ends)),
            "curve": curve,
            "distinct_top_k": self.distinct_top_k,
            "largest_top_k_share": self.largest_top_k_share,
            "method": self.method,
            "assumptions": self.assumptions,
            "training_rows": self.training_rows,
            "certified": self.certified.tolist(),
            "attacked": [r if math.isfinite(r) else None for r in self.attacked.tolist()],
        }


def bracket(
    model: nn.Module,
    x: Tensor,
    *,
    k: int,
    norm: Literal["l2", "linf"] = "l2",
    limit: float = 3.0,
    explainer: Explainer | None = None,
    budget: Literal["fast", "standard", "thorough"] = BUDGET,
    progress: bool = False,
) -> Bracket:
    """Certify and attack the top k of each row of x (B, n); of a compiled module its original."""
    where, model = "bracket", original_module(model)
    require(norm in ("l2", "linf"), where, "norm", "l2 or linf", norm)
    is_valid = isinstance(limit, int | float) and 0 < limit <= LARGEST
    require(is_valid, where, "limit", f"positive, at most {LARGEST:g}", limit)
    explainer = Gradient() if explainer is None else explainer
    check_model_input(where, model, x)
    check_logits(where, model, x[:1])
    # A little beyond: what is returned lies below the limit by its rounding slack.
    certifier = IntervalCertifier(norm=norm, limit=1.001 * float(limit), progress=progress)
    certificate = certifier(model, explainer, x, k=k)
    region = (L2 if norm == "l2" else Linf)(limit)
    attack = MinimumNorm(region, budget=budget, progress=progress)
    attacked = attack(model, explainer, x, k=k).radius.double()
    check_unbeaten(attacked < certificate.radius, torch.arange(len(x)))
    scores = explainer(model, x)
    return Bracket(
        certified=certificate.radius,
        attacked=attacked,
        norm=norm,
        k=k,
        limit=float(limit),
        method=certificate.method,
        assumptions=certificate.assumptions,
        distinct_top_k=distinct_top_k(scores, k),
        largest_top_k_share=largest_top_k_share(scores, k),
    )


@dataclass(frozen=True, eq=False)
class BracketRows:
    """Rows to certify, and what is known of those that the training has seen.

    x: (B, n).
    training_rows: as an audit tells it; None where the training's rows are not known.
    """

    x: Tensor
    training_rows: TrainingRows | None = None


def rows_for(
    trained: Trained, source: str | None, rows: int, *, all_rows: bool = False
) -> BracketRows:
    """The first rows of a file, read as in training, or of the test part of a named data set.

    source: None is the test part of the training. Rows that the training has seen are left out,
    unless all_rows asks for them.
    """
    is_valid = type(rows) is int and rows > 0
    require(is_valid, "certify", "rows", "a positive whole number", rows)
    given = open_rows(LoadedModel(trained.data, trained.model, trained), source, where="certify")
    shape = tuple(given.x.shape[1:])
    require(len(shape) == 1, "certify", "DATA", "a table", f"{source} of shape {shape}")
    chosen = InputRows(
        trained.model, given.x, given.y, None, trained.seen, all_rows=all_rows, where="certify"
    )
    known = None if chosen.known is None else chosen.known.to_dict()
    assert chosen.x is not None
    return BracketRows(chosen.x[chosen.places[:rows]], known)


def check_unbeaten(beaten: Tensor, rows: Tensor) -> None:
    """beaten: (B,) bool, an attack did what the certificate rules out; rows: (B,) their numbers."""
    if bool(beaten.any()):
        raise RuntimeError(
            f"row {int(rows[beaten][0])} was changed inside its certified radius:"
            " a bug in r2et, please report it with the model"
        )


def check_drawing(path: str | os.PathLike[str]) -> None:
    """Refuse a picture that could not be written, before there is anything to draw."""
    text = os.fspath(path)
    is_valid = text.endswith((".png", ".svg"))
    require(is_valid, "certify", "figure", "a name that ends in .png or .svg", text)
    check_writable("certify", "figure", path)


def draw(result: Bracket, path: str | os.PathLike[str]) -> None:
    """The curve as a picture: shares of rows proved, unknown and broken against the radius."""
    check_drawing(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    ends = torch.linspace(math.log10(result.limit / 1000), math.log10(result.limit), 200)
    radii = [10 ** float(e) for e in ends]
    proved, _, broken = zip(*(result.shares(r) for r in radii), strict=True)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    upper = [1 - b for b in broken]
    axes.fill_between(radii, 0, proved, color="#2b6cb0", label="proved: the top k stays")
    axes.fill_between(
        radii, proved, upper, color="#d9d9d9", hatch="//", edgecolor="#999999", label="unknown"
    )
    axes.fill_between(radii, upper, 1, color="#c05621", label="broken by an attack")
    axes.set(xscale="log", xlim=(radii[0], radii[-1]), ylim=(0, 1))
    axes.set(xlabel=f"radius ({result.norm})", ylabel="share of rows")
    axes.legend(loc="lower left", framealpha=1.0)
    text = os.fspath(path)
    canvas = FigureCanvasSVG(figure) if text.endswith(".svg") else FigureCanvasAgg(figure)
    try:
        canvas.print_figure(text, dpi=150)
    except OSError as error:
        found_there = f"{text} ({error.strerror or error})"
        raise InputError(f"certify: figure must be writable, got {found_there}.") from error


def _quantiles(values: Tensor, at: Tensor) -> list[float]:
    """Quantiles of numbers that may be infinite: each is one of the numbers."""
    ordered = values.sort().values
    places = (at * (len(ordered) - 1)).ceil().long()
    return [float(v) for v in ordered[places]]


def _by_quantile(values: list[float]) -> dict[str, float | None]:
    pairs = zip(QUANTILES, values, strict=True)
    return {f"{q:.0%}": value if math.isfinite(value) else None for q, value in pairs}
