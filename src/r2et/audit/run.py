"""One call: everything about how still a model's explanations hold."""

from __future__ import annotations

import copy
import datetime
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, Literal

import torch
from torch import Tensor, nn

from r2et.attack.strong import Budget
from r2et.audit.checkpoint import AuditCheckpoint
from r2et.audit.concatenate import (
    check_bracket,
    concatenated,
    durations,
    left_out,
    row_columns,
)
from r2et.audit.contributions import contributions, reasons_given
from r2et.audit.decided_class import DecidedClass
from r2et.audit.decision import AtCutoff
from r2et.audit.example_rows import example_rows
from r2et.audit.input_rows import InputRows
from r2et.audit.inputs import inputs_of_tensors
from r2et.audit.linear_baseline import LinearBaseline
from r2et.audit.measures import MEASURES, MeasureChunk, MeasuredChunk, check_labels
from r2et.audit.measures.attacks import gradients_note
from r2et.audit.measures.feasible_proofs import ALL_TRIED, assumptions_of, settle
from r2et.audit.measures.ties import tie_notes
from r2et.audit.model_audit import Audit
from r2et.audit.moves import is_too_fine
from r2et.audit.raw_values import check_table
from r2et.audit.resumed import measured_chunks, taken_over, waiting
from r2et.audit.settings import BEYOND, WHERE, AuditSettings, rows_at_once
from r2et.audit.statistics import UNKNOWN
from r2et.audit.subgroups import calibration, check_by, check_ids, grouped_by
from r2et.audit.subject import Subject
from r2et.audit.summary import curve, summarize
from r2et.checks import as_real, as_whole, check_k
from r2et.data.dataset import common_name
from r2et.defaults import BUDGET, RADIUS
from r2et.engine import Engine
from r2et.engine import engine as open_engine
from r2et.errors import require
from r2et.explain import Explainer, as_explainer
from r2et.explain.callable_explainer import ScoresFunction
from r2et.explain.grouping import column_of
from r2et.metrics.faithfulness_inputs import baseline_of
from r2et.models.logits_check import check_logits
from r2et.models.output import batched_logits
from r2et.models.weights import weights_digest
from r2et.progress import bar
from r2et.region import L2, Feasible, Region
from r2et.region.table_layout import TableSchema
from r2et.results import FIGURES, FORMAT
from r2et.train import Fit, Trained
from r2et.train.defaults import default_explainer_for
from r2et.version import __version__

UNKNOWN_ROWS = "its folder keeps no fingerprints of them: whether rows are among them is not known"


def audit(
    model: nn.Module | Trained | Fit | Subject | Any,
    x: Any = None,
    y: Any = None,
    *,
    k: int | None = None,
    region: Region | None = None,
    explainer: Explainer | ScoresFunction | Literal["reasons"] | None = None,
    budget: Budget = BUDGET,
    minutes: float | None = None,
    rows: int | None = None,
    seed: int = 0,
    chunk: int | None = None,
    baseline: Any = None,
    names: Iterable[str] | None = None,
    classes: Iterable[str] | None = None,
    name: str | None = None,
    ids: Any = None,
    by: Any = None,
    schema: TableSchema | None = None,
    engine: Literal["serial", "processes", "ray"] | Engine = "serial",
    workers: int | None = None,
    address: str | None = None,
    partial: str | os.PathLike[str] | None = None,
    progress: bool = False,
    all_rows: bool = False,
    cutoff: float | None = None,
    only: str | int | None = None,
    note: Callable[[str], None] | None = None,
) -> Audit:
    """How still the top k explanations of a model hold on rows x, proved and attacked.

    model: a module, or what `fit` or `load_trained` gave: of that k, region, names and classes are
    those of its training unless given, x the test part, and rows that it was trained or validated
    on are left out; all_rows=True audits them too, and the result says so. Of a module k is given,
    and region is L2(0.3) unless given. A fitted Pipeline that ends in a module, a skorch net or an
    R2ETClassifier: x and y are as it takes them, and its last step is audited on what the steps
    before make of x.
    cutoff: of two classes, the probability of class 1 from which on it is decided for: an attack
    has to leave the decision on its side of it, and the reasons are those of the class decided for.
    only: a class, by its label or number: rows that are decided otherwise are left out, so that
    figures are of the refused alone.

    x: (B, ...) rows as a tensor, array or DataFrame, or batches of them such as a DataLoader; y:
    their classes, 0, 1, ... (in a DataLoader, its second part). explainer: Gradient() for tables,
    summed over channels for pictures; a function (model, x, target) -> scores (B, n) will do (see
    CallableExplainer); "reasons" are the contributions that people are given, one for each column
    of the table that a model was trained on. budget: of each attack. minutes: about how long it may
    take; rows are taken in random order (a stream in its own), and what there was no time for is
    said. rows: take at most so many. baseline: what a removed feature is set to, a number or one
    per feature; 0, or for "reasons" what they are compared with, the average training row. engine:
    "serial", or spread over `workers` "processes" or the "ray" cluster at `address`, to the same
    result.
    partial: a file that keeps what is measured while the audit runs; called again, it goes on
    from there, as far as rows and what the model makes of them are as they were; note is told how
    many rows that are. names, classes: of features and classes, for people to read. ids: one per
    row, by which the result calls them. by: {column: one value per row}; AUC and
    calibration are given for the groups of each. schema: of the table that x was made from, as
    load_table(...).schema: changes are then shown in its words and units.
    """
    began, started = time.time(), time.monotonic()  # a clock may be set while it runs
    k, rows, seed, chunk = (as_whole(value) for value in (k, rows, seed, chunk))
    minutes = as_real(minutes)
    is_valid = minutes is None or (type(minutes) is float and 0 < minutes < math.inf)
    shown_as = repr(minutes) if isinstance(minutes, str) else minutes
    require(is_valid, WHERE, "minutes", "None or a positive number", shown_as)
    is_valid = name is None or isinstance(name, str)
    require(is_valid, WHERE, "name", "None or a text", name)
    is_valid = partial is None or isinstance(partial, str | os.PathLike)
    require(is_valid, WHERE, "partial", "None or a path", partial)
    subject = Subject.of(model)
    model, trained = subject.model, subject.trained
    if x is None:
        require(y is None, WHERE, "y", "given with x", "labels alone")
        x, y = subject.test_rows()
    else:
        x, y = subject.inputs(x), subject.classes_of(y)
    explainer = subject.explainer if explainer is None else explainer
    if isinstance(explainer, str):
        require(explainer == "reasons", WHERE, "explainer", "an Explainer or 'reasons'", explainer)
        explainer = contributions(subject)
        k = reasons_given(explainer) if k is None else k
        baseline = explainer.baseline if baseline is None else baseline
    if trained is not None:
        k = trained.k if k is None else k
        region = L2(trained.radius) if region is None else region
        classes = (trained.classes or None) if classes is None else classes
        schema = trained.schema if schema is None else schema
    region = L2(RADIUS) if region is None else region
    require(k is not None, WHERE, "k", "given for a model whose training is not known", "nothing")
    assert k is not None
    weight = next((p for p in model.parameters() if p.is_floating_point()), None)
    if weight is not None and is_too_fine(region, weight.dtype):
        model = copy.deepcopy(model).double()
    if only is not None and isinstance(classes, Iterable) and not isinstance(classes, str):
        classes = list(classes)
    labels = classes if isinstance(classes, list) else None
    wanted = None if only is None else DecidedClass.of(model, only, labels, as_real(cutoff))
    source = InputRows(model, x, y, rows, subject.seen, all_rows=all_rows, only=wanted)
    explainer = (
        default_explainer_for(tuple(source.first.shape[1:]))
        if explainer is None
        else as_explainer(WHERE, explainer)
    )
    size = chunk
    if size is None:
        tried = ALL_TRIED.get(str(budget), 1)
        points = min(region.most, tried) if isinstance(region, Feasible) else None
        size = rows_at_once(model, source.first.numel(), source.total, points)
    limit = BEYOND * getattr(region, "radius", 1.0)
    settings = AuditSettings(
        k,
        region,
        explainer,
        budget,
        seed,
        size,
        limit,
        baseline=0.0 if baseline is None else baseline,
        cutoff=as_real(cutoff),
    )
    if isinstance(region, Feasible):
        region.check(source.first if source.x is None else source.x)
        schema = region.schema if schema is None else schema
    if schema is not None:
        check_table(schema, source.first[0].numel())
    check_logits(WHERE, model, source.first)
    scores = explainer(model, source.first)
    known = source.names or subject.feature_names or (None if trained is None else trained.names)
    names = score_names(explainer, known, scores.shape[1]) if names is None else names
    names = _names("names", names, scores.shape[1], "score")
    count = max(2, batched_logits(model, source.first, WHERE).shape[1])
    classes = _names("classes", classes, count, "class of the model")
    two = cutoff is None or count == 2
    require(two, WHERE, "cutoff", "left out for a model of more than two classes", cutoff)
    decided = model if settings.cutoff is None else AtCutoff(model, settings.cutoff)
    check_labels(source.y, count)
    baseline_of(WHERE, settings.baseline, source.first)
    check_k(WHERE, k, scores.shape[1])
    ids, by = check_ids(ids, source.given), check_by(by, source.given)
    until = None if minutes is None else began + 60 * minutes
    kept = None if partial is None else AuditCheckpoint(partial, identity(model, settings))
    linear = LinearBaseline(subject.logistic, subject.boosted)
    parts: list[MeasuredChunk] = []
    work = MeasureChunk(decided, settings)
    chunks = waiting(source, work, linear, kept, until)
    shown = bar("audit", total=source.total, show=progress)
    try:
        with open_engine(engine, workers=workers, address=address) as run, shown as advance:
            for measured in measured_chunks(run, work, chunks, kept):
                parts.append(measured)
                advance(len(measured.columns["index"]))
    finally:
        if kept is not None:
            kept.close()
    if kept is not None and note is not None:
        for sentence in taken_over(kept):
            note(sentence)
    parts.sort(key=lambda part: part.number)
    columns, pictured = concatenated(parts)
    columns.update(linear.columns(part.number for part in parts))
    check_bracket(columns)
    proof, unproved = settle(columns, settings)
    late = until is not None and time.time() > until
    # Boosting is known on the test part alone: beside figures of training rows it would mislead.
    boosting = UNKNOWN if all_rows or wanted is not None else subject.boosting
    summary, counts = summarize(columns, settings, linear, boosting)
    skipped = left_out(parts, source, summary)
    if trained is not None and source.known is None:
        skipped.append({"what": "training rows", "why": UNKNOWN_ROWS})
    return Audit(
        {
            "format": FORMAT,
            "name": name or subject.title or type(subject.model).__name__,
            "versions": _versions(),
            "date": datetime.date.today().isoformat(),
            "seconds": time.monotonic() - started,
            "settings": {
                **settings.to_dict(),
                "minutes": minutes,
                "rows_given": source.given,
                "rows_asked": source.total,
                **({} if wanted is None else {"only": wanted.label}),
            },
            "config": settings.config(),
            "names": names,
            "shape": list(source.first.shape[1:]),
            "scores_shape": _layout(source.first, scores),
            "classes": classes,
            "class_count": count,
            "summary": summary,
            "counts": counts,
            "figures": _own_figures(),
            "skipped": [*skipped, *unproved],
            "training_rows": None if source.known is None else source.known.to_dict(),
            "proof": proof,
            "assumptions": assumptions_of(columns),
            "notes": [
                *subject.notes,
                *([] if wanted is None else [wanted.note]),
                # The feasible search follows no gradients of anything.
                *([] if settings.moves is not None else _notes(explainer)),
                *tie_notes(columns, settings),
            ],
            "durations": durations(parts),
            "inputs": inputs_of_tensors(subject.model, source.x, source.y),
            "rows": row_columns(columns, ids),
            "calibration": calibration(columns, settings),
            "grouped_by": [grouped_by(name, of, columns, settings) for name, of in by.items()],
            "curve": curve(columns, settings),
            "shown": example_rows(decided, settings, columns, pictured, quick=late, schema=schema),
        }
    )


def identity(model: nn.Module, settings: AuditSettings) -> dict[str, Any]:
    """What tells this audit from one of other weights or settings, in plain JSON."""
    return {
        "r2et": __version__,
        "model": str(model),
        "weights": weights_digest(model),
        "settings": settings.config(),
    }


def _notes(explainer: Explainer) -> list[str]:
    """What a reader must know beside the figures."""
    notes = (gradients_note(explainer),)
    return [note for note in notes if note is not None]


def score_names(explainer: Explainer, features: Sequence[str] | None, n: int) -> list[str] | None:
    """Names of n scores, from those of x's features: their own, or those of their columns."""
    if not features:
        return None
    groups = getattr(explainer, "groups", None)
    if groups is None:
        return list(features) if len(features) == n else None
    place = column_of(groups, len(features)).tolist()
    columns: dict[int, list[str]] = {}
    for name, column in zip(features, place, strict=True):
        columns.setdefault(column, []).append(name)
    return [names[0] if len(names) == 1 else common_name(names) for names in columns.values()]


def _names(name: str, names: Iterable[Any] | None, n: int, expected: str) -> list[str] | None:
    """One name for each of n, or none."""
    if names is None:
        return None
    listed = isinstance(names, Iterable) and not isinstance(names, str)
    require(listed, WHERE, name, f"{n} names, one per {expected}", names)
    texts = [str(value) for value in names]
    require(len(texts) == n, WHERE, name, f"{n} names, one per {expected}", f"{len(texts)} names")
    return texts


def _own_figures() -> list[dict[str, str]]:
    """How to read the figures that only this process knows of."""
    measured = [figure for measure in MEASURES.values() for figure in measure.figures]
    return [asdict(figure) for figure in measured if figure.name not in FIGURES]


def _layout(x: Tensor, scores: Tensor) -> list[int]:
    """How the scores lie: as the input's picture without channels, as the input, or in a row."""
    shape, n = list(x.shape[1:]), scores.shape[1]
    lying = (shape[i:] for i in reversed(range(len(shape))))
    return next((part for part in lying if math.prod(part) == n), [n])


def _versions() -> dict[str, str]:
    return {"r2et": __version__, "torch": torch.__version__, "python": platform.python_version()}
