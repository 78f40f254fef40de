"""One audit as plain data: what its JSON file holds, key by key."""

from __future__ import annotations

from typing import Any, TypedDict

from r2et.results.row_tables import CalibrationBin, GroupedBy, Inputs

FORMAT = "r2et-audit/1"
INCLUDED = "training rows included"  # what figures are called that are of such rows too


class Skipped(TypedDict):
    """Something that was not measured, and why."""

    what: str
    why: str


class TrainingRows(TypedDict):
    """How many of the rows given the model's training has seen.

    given: rows there were.
    training, validation: those that it was trained on, and that it was watched or chosen by.
    alike: rows kept that are the same as a training row in every column, by chance.
    included: whether those that it has seen are audited too.
    label: what the figures then are: "training rows included".
    """

    given: int
    training: int
    validation: int
    alike: int
    included: bool
    label: str


class CurvePoint(TypedDict):
    """Shares of rows whose top k is proved, unknown and broken at a radius; they sum to 1."""

    radius: float
    proved: float
    unknown: float
    broken: float


class ColumnChange(TypedDict):
    """How a column of a table changed, in its own words and units.

    change: by how much, in the column's unit; "switched" for a category.
    possible: whether a row of the table can hold what is after.
    """

    column: str
    before: str
    after: str
    change: str
    possible: bool


class _StepNeeded(TypedDict):
    radius: float
    x: list[float]
    scores: list[float]
    precision: float | None
    probability: float | None
    proved_precision: float | None


class ExampleStep(_StepNeeded, total=False):
    """The worst that was found for an example row within a radius.

    radius: of a ball; 1 where the changes are those of a table, all of them.
    changes: of the table's columns, where its schema is known; the largest first.
    """

    changes: list[ColumnChange]


class ExampleValues(TypedDict, total=False):
    """What an example row holds in each column, in words, where scores are of columns."""

    values: list[str]


class ExampleRow(ExampleValues):
    """A row that people look at: its input and scores, and its steps away from them.

    kind: "worst" or "ordinary".
    """

    index: int
    kind: str
    target: int
    label: int | None
    probability: float
    x: list[float]
    scores: list[float]
    radius_certified: float | None
    radius_attacked: float | None
    steps: list[ExampleStep]


class GateVerdict(TypedDict):
    """A figure, the bound that it must keep, and whether it does.

    sign: ">=", "<=", ">" or "<".
    end: of the figure's interval, on the side of the bound.
    text: the value in words.
    reason: why it does not pass, in a sentence.
    """

    name: str
    sign: str
    bound: float
    value: float | None
    end: float | None
    passed: bool
    text: str
    reason: str | None


class _Needed(TypedDict):
    """What a page cannot do without."""

    format: str
    name: str
    settings: dict[str, Any]
    summary: dict[str, Any]
    rows: dict[str, list[Any] | None]
    shape: list[int]
    scores_shape: list[int]
    curve: list[CurvePoint]
    shown: list[ExampleRow]


class AuditResult(_Needed, total=False):
    """What an audit found about one model.

    name: of the model.
    settings: what was asked for.
    summary: figure -> value, with _low and _high the ends of its interval; None was skipped.
    rows: column -> one entry per row; a column that was not measured is None.
    shape, scores_shape: of an input, and of its scores as a picture of them lies.
    curve: over radii up to the largest that was looked at.
    shown: the example rows.
    config: what identifies the settings.
    names, classes: of the scores and classes, where known.
    counts: figure -> how many rows are behind it.
    figures: how to read those of the summary that are not in FIGURES.
    skipped: what was not measured.
    proof: how rows were proved where the changes have no radius: what was tried one by one.
    assumptions: those of the proof, where there was one.
    notes: what a reader must know beside the figures, in sentences.
    durations: measure -> seconds, over all workers.
    gates: what became of each gate, where there were some.
    inputs: files and digests of what was audited.
    calibration: by predicted probability, how often it came true.
    grouped_by: of chosen columns, AUC and calibration of each group of rows.
    training_rows: of a model whose training is known, what it has seen of the rows.
    """

    config: dict[str, Any]
    names: list[str] | None
    classes: list[str] | None
    class_count: int
    counts: dict[str, int]
    figures: list[dict[str, str]]
    skipped: list[Skipped]
    proof: str | None
    assumptions: str | None
    notes: list[str]
    durations: dict[str, float]
    gates: list[GateVerdict]
    inputs: Inputs
    calibration: list[CalibrationBin] | None
    grouped_by: list[GroupedBy]
    versions: dict[str, str]
    date: str
    seconds: float
    training_rows: TrainingRows | None
