"""A text about results whose {words} are looked up in claims and panels."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TypeVar

from r2et.bench.claim import Claim
from r2et.bench.figure_statistics import spearman
from r2et.bench.panel import Panel
from r2et.bench.paper_tables import table_spec
from r2et.bench.papers import ADDITIONS, OTHER_METHODS, R2ET_VARIANTS
from r2et.bench.record import Record
from r2et.bench.table_plan import ResultColumn
from r2et.errors import InputError
from r2et.train.defaults import USUAL_STEPS
from result_pages.figure_tables import follows
from result_pages.verdicts import best, measured, reported

GROUPS = {"variants": R2ET_VARIANTS, "others": OTHER_METHODS, "additions": ADDITIONS}
PLACE = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class TextTemplate:
    """What a text can ask for: each method is a word, its arguments the words that follow.

    claims, panels: of all tables and figures, by their names.
    runs: records of the runs, that of the tables first.
    """

    claims: Mapping[str, Sequence[Claim]]
    panels: Mapping[str, Sequence[Panel]]
    runs: Sequence[Mapping[str, Record]] = ()

    def fill(self, text: str) -> str:
        """The text with every {word ...} in it looked up; one that is unknown is an error."""
        plain = PLACE.sub(lambda match: self.look_up(match[1]), text)
        return "\n".join(map(_wrapped, re.split(r"\n(?=- |#|\n)", plain)))

    def look_up(self, words: str) -> str:
        """One number, as it is shown."""
        name, *rest = words.split()
        known: dict[str, Callable[..., str]] = {n: getattr(self, n) for n in WORDS}
        try:
            return known[name](*rest)
        except (KeyError, TypeError, ValueError) as error:
            expected = f"one of {', '.join(WORDS)} with what it is of"
            raise InputError(f"results: a text must ask for {expected}, got {words!r}.") from error

    def claim(self, table: str, data: str, recipe: str) -> Claim:
        """One row."""
        return _only(self.claims[table], data, recipe)

    def here(self, table: str, data: str, recipe: str, key: str) -> str:
        """Our number, mean over seeds."""
        column = _column_of(table, data, key)
        value = self.claim(table, data, recipe).numbers[key].mean
        if value is None:
            raise KeyError(key)
        return f"{column.scale * value:.{column.digits}f}"

    def theirs(self, table: str, data: str, recipe: str, key: str) -> str:
        """The papers' number."""
        column = _column_of(table, data, key)
        return f"{reported(column, data)[recipe]:.{1 if column.scale == 100 else 2}f}"

    def best(self, table: str, data: str, key: str, group: str) -> str:
        """The best of ours in a group, and whose it is."""
        leader = best(self._column(table, data, key), GROUPS[group])
        if leader is None:
            raise KeyError(group)
        return f"{leader[0]:.1f} (`{leader[1]}`)"

    def best_papers(self, table: str, data: str, key: str, group: str) -> str:
        """The papers' best in a group, and whose it is."""
        leader = best(reported(_column_of(table, data, key), data), GROUPS[group])
        if leader is None:
            raise KeyError(group)
        return f"{leader[0]:.1f} (`{leader[1]}`)"

    def gain(self, table: str, data: str, key: str) -> str:
        """Of the best variant of R2ET over Vanilla, here."""
        return _gain(self._column(table, data, key))

    def gain_papers(self, table: str, data: str, key: str) -> str:
        """The same in the papers."""
        return _gain(reported(_column_of(table, data, key), data))

    def below(self, table: str, data: str, recipe: str) -> str:
        """Why a row is not compared."""
        return "; ".join(self.claim(table, data, recipe).unreliable)

    def most_tied(self, table: str, data: str, key: str) -> str:
        """The largest share of tied rows, in percent."""
        tied = [c.numbers[key].tied for c in self.claims[table] if c.data == data]
        return f"{100 * max(tied):.0f}"

    def tried(self, data: str, recipe: str) -> str:
        """Validation P@k of each weight that was tried, in the order of weights."""
        candidates = self.claim("table1", data, recipe).candidates["scratch"]
        each = [f"{100 * c['precision']:.1f} at {c['changes']['weight']:g}" for c in candidates]
        return ", ".join(each)

    def moved(self, data: str) -> str:
        """How far the farthest retraining ends from Vanilla, in points."""
        rows = {c.recipe: c for c in self.claims["table8"] if c.data == data}
        column = measured(_column_of("table8", data, "retrained"), rows)
        plain = column.pop("vanilla")
        return f"{max(abs(value - plain) for value in column.values()):.1f}"

    def retrained(self, data: str) -> str:
        """How many recipes have a retrained number, beside Vanilla."""
        rows = [c for c in self.claims["table8"] if c.data == data and c.recipe != "vanilla"]
        return str(sum(c.numbers["retrained"].mean is not None for c in rows))

    def length(self, data: str, epochs: str, name: str) -> str:
        """Of Vanilla after so many epochs: er, er_last or auc."""
        values = self._panel("lengths", data, "vanilla").values
        value = mean(values[name][values["epochs"].index(int(epochs))])
        return f"{value:.3f}" if name == "auc" else f"{100 * value:.1f}"

    def last_point(self) -> str:
        """The most that the best point of an attack costs Vanilla over its last, in points."""
        gaps = []
        for panel in self.panels["lengths"]:
            both = zip(panel.values["er"], panel.values["er_last"], strict=True)
            gaps += [100 * (mean(last) - mean(best)) for best, last in both]
        return f"{max(gaps):.1f}"

    def pairs(self, recipe: str, count: str) -> str:
        """Of Figure 9: P@k with k' pairs on Bank."""
        values = self._panel("figure9", "bank", recipe).values
        return f"{100 * mean(values['precision'][values['counts'].index(int(count))]):.1f}"

    def rho(self, data: str, recipe: str, name: str, rows: str = "all") -> str:
        """Of Figure 4: Spearman's with the steps to the first flip, over seeds."""
        panel = self._panel("figure4", data, recipe)
        return spearman(panel, f"{name}_rows", every=rows == "all")

    def follows(self, data: str, recipe: str) -> str:
        """Of Figure 4: whether thickness is above 0.5 and above the Hessian norm."""
        return follows(self._panel("figure4", data, recipe))

    def apart(self, name: str) -> str:
        """How far records of the same task are apart in two runs, at most: auc or precision.

        On validation rows, in points of P@k, or of AUC.
        """
        value = {"auc": "auc_validation", "precision": "precision"}[name]
        one, *others = self.runs
        both = [
            (one[n], r)
            for other in others
            for n, r in other.items()
            if n in one and "-validation-" in n
        ]
        most = max(abs(a.measured[value] - b.measured[value]) for a, b in both)
        return f"{most:.4f}" if name == "auc" else f"{100 * most:.1f}"

    def batches(self) -> str:
        """About how many every network is trained for."""
        return str(USUAL_STEPS)

    def _panel(self, figure: str, data: str, recipe: str) -> Panel:
        return _only(self.panels[figure], data, recipe)

    def _column(self, table: str, data: str, key: str) -> dict[str, float]:
        rows = {c.recipe: c for c in self.claims[table] if c.data == data}
        return measured(_column_of(table, data, key), rows)


WORDS = (
    *("here", "theirs", "best", "best_papers", "gain", "gain_papers", "below", "most_tied"),
    *("tried", "moved", "retrained", "length", "last_point", "pairs", "rho", "follows", "apart"),
    "batches",
)


def _wrapped(text: str) -> str:
    """A paragraph or a point of a list in lines of 100."""
    if text.startswith("#") or not text.strip():
        return text
    margin = "  " if text.startswith("- ") else ""
    wrapper = textwrap.TextWrapper(100, subsequent_indent=margin)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.fill(" ".join(text.split()))


def _column_of(table: str, data: str, key: str) -> ResultColumn:
    spec = table_spec(
        table.removesuffix("-papers"), data
    )  # those of a regime have the same columns
    return next(column for column in spec.columns if column.key == key)


Kept = TypeVar("Kept", Claim, Panel)


def _only(items: Iterable[Kept], data: str, recipe: str) -> Kept:
    for item in items:
        if item.data == data and item.recipe == recipe:
            return item
    raise KeyError(recipe)


def _gain(column: Mapping[str, float]) -> str:
    leader = best(column, R2ET_VARIANTS)
    if leader is None:
        raise KeyError("r2et")
    return f"{round(leader[0], 1) - round(column['vanilla'], 1):+.1f}"
