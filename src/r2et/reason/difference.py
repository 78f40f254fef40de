"""Two models, the same people: who gets other reasons though the decision is the same."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from r2et.errors import require
from r2et.files import csv_text, write_result
from r2et.metrics import share_interval
from r2et.reason.result import PersonReasons, Reasons

WHERE = "diff"
COLUMNS = ("row", "decision_before", "decision_after", "before", "after", "lost", "gained")
NAMED = 5  # columns that a line tells


@dataclass(frozen=True)
class ChangedPerson:
    """A person whom two models tell different things.

    row: its number or identifier.
    decision_before, decision_after: of the two models.
    before, after: the columns that each names, the strongest first.
    """

    row: Any
    decision_before: str
    decision_after: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def lost(self) -> tuple[str, ...]:
        """Columns that are no longer named."""
        return tuple(name for name in self.before if name not in self.after)

    @property
    def gained(self) -> tuple[str, ...]:
        """Columns that were not named before."""
        return tuple(name for name in self.after if name not in self.before)


@dataclass(frozen=True)
class ReasonsDifference:
    """What changes for people when one model takes another's place.

    rows: people who were looked at.
    same_decision: those whom both models decide alike.
    changed: those of them who get other columns as reasons.
    reordered: those of them who get the same in another order.
    shared: of the reasons of people decided alike, the mean share that both models name.
    people: who is told something else, in the order of the rows.
    k: how many reasons at most.
    """

    rows: int
    same_decision: int
    changed: int
    reordered: int
    shared: float | None
    people: tuple[ChangedPerson, ...]
    k: int

    @property
    def changed_share(self) -> float | None:
        """Of the people decided alike, how many get other reasons; None where there are none."""
        return self.changed / self.same_decision if self.same_decision else None

    def summary(self) -> dict[str, Any]:
        """Flat: each share with _low and _high, the ends of its exact 95 % interval."""
        figures: dict[str, Any] = {
            "rows": self.rows,
            "k": self.k,
            "same_decision": self.same_decision,
            "changed": self.changed,
            "reordered": self.reordered,
            "shared": self.shared,
        }
        pairs = {
            "changed_share": (self.changed, self.same_decision),
            "decision_changed_share": (self.rows - self.same_decision, self.rows),
        }
        for name, (part, whole) in pairs.items():
            ends = share_interval(part, whole) if whole else None
            figures[name] = part / whole if whole else None
            figures[f"{name}_low"] = None if ends is None else ends.low
            figures[f"{name}_high"] = None if ends is None else ends.high
        return figures

    def columns(self) -> list[tuple[str, int, int]]:
        """Each column that some person loses or gains as a reason: name, lost, gained."""
        alike = [p for p in self.people if p.decision_before == p.decision_after]
        lost = Counter(name for person in alike for name in person.lost)
        gained = Counter(name for person in alike for name in person.gained)
        names = sorted({*lost, *gained}, key=lambda name: (-lost[name] - gained[name], name))
        return [(name, lost[name], gained[name]) for name in names]

    def to_frame(self) -> Any:
        """A pandas DataFrame of the people who are told something else."""
        import pandas as pd

        lines = [
            {
                "row": person.row,
                "decision_before": person.decision_before,
                "decision_after": person.decision_after,
                **{n: "; ".join(getattr(person, n)) for n in ("before", "after", "lost", "gained")},
            }
            for person in self.people
        ]
        return pd.DataFrame(lines, columns=list(COLUMNS))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table of people, whole or not at all; no cell is a formula to a spreadsheet."""
        write_result("to_csv", path, csv_text(self.to_frame()))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        columns = [{"column": n, "lost": a, "gained": b} for n, a, b in self.columns()]
        people = [asdict(person) for person in self.people]
        return {"summary": self.summary(), "columns": columns, "people": people}

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything, whole or not at all."""
        write_result("to_json", path, json.dumps(self.to_dict(), allow_nan=False) + "\n")

    def __str__(self) -> str:
        figures = self.summary()
        lines = [f"{self.rows} people, at most {self.k} reasons each"]
        lines.append(f"  another decision             {_share(figures, 'decision_changed_share')}")
        lines.append(f"  same decision, other reasons {_share(figures, 'changed_share')}")
        if self.shared is not None:
            lines.append(f"  reasons that both name       {self.shared:.1%}")
        if self.reordered:
            lines.append(f"  the same in another order    {self.reordered}")
        for name, lost, gained in self.columns()[:NAMED]:
            lines.append(f"    {name}: no longer a reason for {lost}, newly one for {gained}")
        return "\n".join(lines)


def difference(before: Reasons, after: Reasons) -> ReasonsDifference:
    """What two models' reasons of the same rows have in common, and what not."""
    require(before.k == after.k, WHERE, "k", f"{before.k} for both models", after.k)
    same = [p.row for p in before] == [p.row for p in after]
    require(same, WHERE, "rows", "the same for both models", f"{len(before)} and {len(after)}")
    pairs = list(zip(before, after, strict=True))
    alike = [pair for pair in pairs if pair[0].decision == pair[1].decision]
    other = [(a, b) for a, b in alike if set(a.columns) != set(b.columns)]
    turned = [(a, b) for a, b in alike if a.columns != b.columns]
    shares = [_overlap(a, b) for a, b in alike]
    changed = [
        (a, b) for a, b in pairs if a.decision != b.decision or set(a.columns) != set(b.columns)
    ]
    return ReasonsDifference(
        rows=len(pairs),
        same_decision=len(alike),
        changed=len(other),
        reordered=len(turned) - len(other),
        shared=sum(shares) / len(shares) if shares else None,
        people=tuple(
            ChangedPerson(a.row, a.decision, b.decision, a.columns, b.columns) for a, b in changed
        ),
        k=before.k,
    )


def _overlap(a: PersonReasons, b: PersonReasons) -> float:
    """Reasons that both name, of those that either does; 1 where neither has any."""
    either = set(a.columns) | set(b.columns)
    return len(set(a.columns) & set(b.columns)) / len(either) if either else 1.0


def _share(figures: dict[str, Any], name: str) -> str:
    value = figures[name]
    if value is None:
        return "nobody to compare"
    return f"{value:.1%}  [{figures[f'{name}_low']:.1%}, {figures[f'{name}_high']:.1%}]"
