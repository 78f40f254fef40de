"""The rows that people look at: the worst and some ordinary ones, before and after."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from r2et.attack import StrongAttack
from r2et.audit.decision import AtCutoff
from r2et.audit.measures import worst_first
from r2et.audit.measures.chunk import ORDINARY, WORST
from r2et.audit.measures.proofs import OUTWARD, proved
from r2et.audit.raw_values import changed_columns, column_values
from r2et.audit.settings import WHERE, AuditSettings
from r2et.audit.statistics import Columns
from r2et.certify import Certificate
from r2et.errors import InputError
from r2et.models.output import batched_logits, classes, log_odds
from r2et.rank import precision_at_k
from r2et.region.table_layout import TableSchema
from r2et.results import ExampleRow

FRACTIONS = (0.03, 0.1, 0.2, 0.4, 0.7, 1.0)  # of the radius: the stops of the slider
NUMBERS = 2**19  # stored at most, whatever the rows are


def chosen(columns: Columns, pictured: dict[int, tuple[Tensor, Tensor]]) -> list[tuple[int, str]]:
    """Places of the rows to show, and why: those that fared worst, then some others."""
    order = [i for i in worst_first(columns).tolist() if i in pictured]
    precision = columns.get("precision_strong")
    bad = [i for i in order if precision is not None and float(precision[i]) < 1][:WORST]
    others = [i for i in sorted(pictured) if i not in bad][:ORDINARY]
    return [(i, "worst") for i in bad] + [(i, "ordinary") for i in others]


def example_rows(
    model: nn.Module,
    settings: AuditSettings,
    columns: Columns,
    pictured: dict[int, tuple[Tensor, Tensor]],
    *,
    quick: bool = False,
    schema: TableSchema | None = None,
) -> list[ExampleRow]:
    """For each row to show, the worst that was found within each radius of a small grid.

    quick: no further attacks, only what is already known at the whole radius. schema: of the table,
    in whose words the changes are given too.
    """
    rows = chosen(columns, pictured)
    if not rows:
        return []
    numbers = pictured[rows[0][0]][0].numel() + len(columns["top"][0])
    # Changes of a table's own have no sizes in between.
    few, fractions = _affordable(len(rows), numbers, quick or settings.moves is not None)
    rows = rows[:few]
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    x = torch.stack([pictured[i][0] for i, _ in rows]).to(device)
    worst = torch.stack([pictured[i][1] for i, _ in rows]).to(device)
    target = classes(batched_logits(model, x, WHERE)).to(device)
    scores_at = settings.explainer.at(model, x, target)
    clean = scores_at(x)
    examples: list[ExampleRow] = [
        {
            "index": int(columns["index"][place]),
            "kind": kind,
            "target": int(target[i]),
            "label": int(columns["label"][place]) if "label" in columns else None,
            "probability": float(columns["probability"][place]),
            "x": numbers_of(x[i]),
            "scores": numbers_of(clean[i]),
            "radius_certified": _radius(columns.get("radius_certified"), place),
            "radius_attacked": _radius(columns.get("radius_attacked"), place),
            "steps": [],
        }
        for i, (place, kind) in enumerate(rows)
    ]
    if schema is not None and clean.shape[1] == len(schema.columns) != x[0].numel():
        for i, row in enumerate(examples):
            row["values"] = column_values(schema, x[i])
    proof = None if settings.moves is not None else _proof(model, settings, x, target)
    best, least = x, torch.ones(len(x), dtype=torch.float64)
    for fraction in fractions:
        radius = fraction * (settings.radius if settings.moves is None else 1.0)
        points = worst if fraction == 1 else _attack(model, settings, x, radius)
        if points is None:
            continue
        precision = precision_at_k(clean, scores_at(points), settings.k).double().cpu()
        better = (precision < least).to(device)
        best = torch.where(better.view(-1, *[1] * (x.ndim - 1)), points, best)
        least = torch.minimum(least, precision)
        sound = None if proof is None else proof.precision_at(radius * (1 + OUTWARD))
        if settings.moves is not None:
            sound = _at(columns.get("certified_precision"), [place for place, _ in rows])
        _add_step(examples, model, (best, target), scores_at(best), least, radius, sound)
        if schema is not None:
            for i, row in enumerate(examples):
                row["steps"][-1]["changes"] = changed_columns(schema, x[i], best[i])
    return examples


def _add_step(
    examples: list[ExampleRow],
    model: nn.Module,
    rows: tuple[Tensor, Tensor],
    scores: Tensor,
    precision: Tensor,
    radius: float,
    sound: Tensor | None,
) -> None:
    best, target = rows
    # How sure the model is, which no cut-off changes.
    own = model.model if isinstance(model, AtCutoff) else model
    logits = batched_logits(own, best, WHERE)
    sure = log_odds(logits.double(), target.cpu()).sigmoid()
    for i, row in enumerate(examples):
        row["steps"].append(
            {
                "radius": radius,
                "x": numbers_of(best[i]),
                "scores": numbers_of(scores[i]),
                "precision": float(precision[i]),
                "probability": float(sure[i]),
                "proved_precision": None if sound is None else float(sound[i]),
            }
        )


def _attack(model: nn.Module, settings: AuditSettings, x: Tensor, radius: float) -> Tensor | None:
    attack = StrongAttack(settings.ball_of(radius), budget="fast")
    try:
        return attack(model, settings.explainer, x, k=settings.k).x_adv
    except InputError:  # a model that has no output everywhere: what was measured stands
        return None


def _at(values: Tensor | None, places: list[int]) -> Tensor | None:
    """What was proved of these rows already; None where some were not looked at."""
    if values is None or bool(values[places].isnan().any()):
        return None
    return values[places]


def _proof(
    model: nn.Module, settings: AuditSettings, x: Tensor, target: Tensor
) -> Certificate | None:
    """Of the rows that are shown, for every radius; None without a certificate."""
    try:
        return proved(model, settings, x, target, limit=settings.radius)
    except InputError:  # of the model or the explanation
        return None


def _affordable(rows: int, numbers: int, quick: bool) -> tuple[int, tuple[float, ...]]:
    """How many rows and which stops fit into what may be stored."""
    plans = [(rows, FRACTIONS), (min(rows, 6), FRACTIONS[1::2]), (min(rows, 4), (1.0,))]
    for count, stops in plans:
        stops = (1.0,) if quick else stops
        if count * (1 + len(stops)) * numbers <= NUMBERS:
            return count, stops
    return max(1, min(rows, NUMBERS // (2 * numbers))), (1.0,)


def _radius(values: Tensor | None, place: int) -> float | None:
    value = torch.nan if values is None else float(values[place])
    return value if abs(value) < torch.inf else None


def numbers_of(values: Tensor) -> list[float]:
    """Numbers for a picture: six digits are plenty."""
    return [float(f"{v:.6g}") for v in values.detach().cpu().flatten().tolist()]
