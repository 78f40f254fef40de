"""The reasons of people, as plain data, a table, sentences or a page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from r2et.files import csv_text, write_result
from r2et.wording import lowered, significant

# The first eight are a contract; more may follow.
COLUMNS = (
    "row",
    "rank",
    "column",
    "value",
    "contribution",
    "proved",
    "radius",
    "code",
    "reference",
    "sentence",
    "broken_by",
    "alternative",
    "decision",
    "probability",
    "toward",
)
PERSON = ("row", "decision", "probability", "toward")


@dataclass(frozen=True)
class Reason:
    """One column that pushed a person toward a class.

    rank: from 1 on, the strongest first.
    column, value: its name, and what the person's row holds, in words.
    reference: what the reference population has there.
    contribution: how much it adds to the log-odds of the class, compared with the reference.
    proved: whether no change of the region takes it from the reasons; None where none was asked.
    radius: up to how many times the region it is proved to stay; 0 where it is not at all.
    broken_by: a change of the region that takes it away, where one was found.
    alternative: the nearest value of this column that, alone, would change the decision.
    code, sentence: of the user's list.
    values_tried: how many values of this column were tried for that, alone; 0 where none was.
    """

    rank: int
    column: str
    value: str
    reference: str
    contribution: float
    proved: bool | None = None
    radius: float | None = None
    broken_by: str | None = None
    alternative: str | None = None
    code: str = ""
    sentence: str = ""
    values_tried: int = 0


@dataclass(frozen=True)
class PersonReasons:
    """A row's decision and its reasons.

    row: its number in what was given, or its identifier.
    decision, probability: the class decided for, and how likely the model takes that.
    toward: the class that the reasons are of.
    reasons: the strongest first; fewer than k where fewer push that way.
    proved: whether exactly these stay the reasons for every change of the region.
    broken_by: a change that makes it other reasons, in words.
    replaced_by: the columns that would be named instead.
    excluded: columns that must not be named, and would have been among the reasons.
    """

    row: Any
    decision: str
    probability: float
    toward: str
    reasons: tuple[Reason, ...]
    proved: bool | None = None
    broken_by: str | None = None
    replaced_by: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its reasons."""
        return tuple(reason.column for reason in self.reasons)

    def __str__(self) -> str:
        head = f"row {self.row}: {self.decision} ({100 * self.probability:.0f} %)"
        against = "" if self.decision == self.toward else f", toward {self.toward}"
        lines = [f"{head}{against}"]
        for reason in self.reasons:
            state = _state(reason.proved, reason.broken_by)
            tail = f"  [{state}]" if state else ""
            code = f"{reason.code} " if reason.code else ""
            number = f"{reason.contribution:+.2f}"
            lines.append(f"  {reason.rank}. {code}{reason.sentence}  {number}{tail}")
        if not self.reasons:
            lines.append(f"  no column speaks for {self.toward}")
        if self.excluded:
            lines.append(f"  not named, though strong enough: {', '.join(self.excluded)}")
        if self.proved:
            lines.append("  proved: no change asked about gives other reasons")
        elif self.broken_by:
            other = f": then {', '.join(self.replaced_by)}" if self.replaced_by else ""
            lines.append(f"  other reasons with {self.broken_by}{other}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Reasons:
    """The reasons of several rows, and what they were asked under.

    people: one entry per row.
    k: how many reasons at most.
    baseline: whom contributions are measured from, in words.
    changes: the region that proofs and attacks are about, in words; None where none was given.
    excluded: columns that were not to be named.
    explainer: how contributions are computed.
    notes: what was not done, and why.
    assumptions: of the proofs.
    rule: when a class is decided for, where a cut-off was given.
    """

    people: tuple[PersonReasons, ...]
    k: int
    baseline: str
    changes: str | None = None
    excluded: tuple[str, ...] = ()
    explainer: str = ""
    notes: tuple[str, ...] = ()
    assumptions: str = ""
    rule: str = ""

    def __len__(self) -> int:
        return len(self.people)

    def __iter__(self) -> Iterator[PersonReasons]:
        return iter(self.people)

    def __getitem__(self, place: int) -> PersonReasons:
        return self.people[place]

    def sentences(self) -> list[list[str]]:
        """What each person is told, in order."""
        return [[reason.sentence for reason in person.reasons] for person in self.people]

    def shares(self) -> dict[str, float | None]:
        """Shares of rows whose reasons are proved, broken, neither; None where none was asked."""
        if self.changes is None or not self.people:
            return {"proved": None, "unknown": None, "broken": None}
        count = len(self.people)
        proved = sum(bool(person.proved) for person in self.people)
        broken = sum(person.broken_by is not None for person in self.people)
        left = count - proved - broken
        return {"proved": proved / count, "unknown": left / count, "broken": broken / count}

    def to_frame(self) -> Any:
        """A pandas DataFrame, one line per reason; a row without any has none."""
        import pandas as pd

        lines = []
        for person in self.people:
            own = {name: getattr(person, name) for name in PERSON}
            lines += [{**own, **asdict(reason)} for reason in person.reasons]
        return pd.DataFrame(lines, columns=list(COLUMNS))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table, whole or not at all; no cell is a formula to a spreadsheet."""
        write_result("to_csv", path, csv_text(self.to_frame()))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "shares": self.shares()}

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything, whole or not at all."""
        write_result("to_json", path, json.dumps(self.to_dict(), allow_nan=False) + "\n")

    def to_html(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """A page that the people themselves can read."""
        from r2et.report.people import people_page

        people_page(self.to_dict(), path, title=title)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from r2et.report.notebook import reasons_html

        return reasons_html(self.to_dict())

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int | None = None) -> str:
        """What a terminal shows: the people, at most so many of them, and what holds for all."""
        shown = self.people[:most]
        lines = [str(person) for person in shown]
        if len(shown) < len(self.people):
            lines.append(f"... and {len(self.people) - len(shown)} more rows")
        lines.append(f"Contributions are compared with {self.baseline}.")
        if self.rule:
            lines.append(f"{self.rule}.")
        if self.excluded:
            lines.append(f"Never named: {', '.join(self.excluded)}.")
        shares = self.shares()
        if shares["proved"] is not None:
            counts = ", ".join(f"{100 * (v or 0):.0f} % {name}" for name, v in shares.items())
            lines.append(f"For {self.changes}: {counts}.")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Reasons({len(self.people)} rows, k={self.k}, compared with {self.baseline})"


def _state(proved: bool | None, broken_by: str | None) -> str:
    if proved:
        return "proved"
    if broken_by is not None:
        return f"lost with {broken_by}"
    return "" if proved is None else "not proved"


def radius_text(radius: float | None) -> str:
    """A proved multiple of the region, never more than was proved."""
    return "" if radius is None else significant(lowered(radius, 2), 2)
