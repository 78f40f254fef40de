"""What ties an audit to its inputs, and what it says of groups of rows: plain data."""

from __future__ import annotations

from typing import TypedDict


class _SourceNeeded(TypedDict):
    name: str | None
    sha256: str | None
    of: str


class Source(_SourceNeeded, total=False):
    """Where rows or weights came from.

    name: of the file or data set; None where they were handed over in memory.
    sha256: of the file, as any tool computes it, or of the tensors and their names.
    of: "file" or "tensors".
    tensors: where it is of a file, the digest of the tensors that were made of it.
    """

    tensors: str | None


class _InputsNeeded(TypedDict):
    data: Source
    weights: Source
    rows: int | None
    command: str | None


class Inputs(_InputsNeeded, total=False):
    """What was audited.

    rows: how many there were; None for a stream.
    command: the command line, where there was one.
    files: of a model's folder, the SHA-256 of each file that was read, by name.
    """

    files: dict[str, str]


class CalibrationBin(TypedDict):
    """Rows whose predicted probability lies in a range, and how often it came true.

    low, high: the range.
    predicted: their mean probability.
    observed: the share of them that came true; observed_low, observed_high: its interval.
    """

    low: float
    high: float
    rows: int
    predicted: float
    observed: float
    observed_low: float
    observed_high: float


class Subgroup(TypedDict):
    """The rows that have one value, or a range of values, in a column.

    auc: None where the group has rows of one class alone.
    predicted, observed: mean probability, and the share that came true; None without labels.
    precision: mean P@k under the strongest attack; None where there was none.
    """

    value: str
    rows: int
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    predicted: float | None
    observed: float | None
    observed_low: float | None
    observed_high: float | None
    precision: float | None
    precision_low: float | None
    precision_high: float | None


class GroupedBy(TypedDict):
    """The subgroups of a column."""

    column: str
    groups: list[Subgroup]
