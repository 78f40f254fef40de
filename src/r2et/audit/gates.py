"""Gates: whether figures of an audit are good enough to pass, and what there was no time for."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r2et.audit.measures import LATE, MEASURES
from r2et.errors import InputError, require
from r2et.results import FIGURES, INCLUDED, AuditResult, GateVerdict
from r2et.results.training_rows import is_included
from r2et.wording import rows_text

if TYPE_CHECKING:
    from r2et.audit.model_audit import Audit

WHERE = "audit"
USUAL = "precision_strong"  # what --fail-under is about, where no gate is named
COUNTS = ("rows", "k", "radius")  # of the summary, beside its figures
FORM = re.compile(r"\s*(\w*)\s*(>=|<=|>|<)\s*(\S*)\s*")
EXAMPLE = "a figure and its bound in quotes, as 'auc_clean>=0.8' (signs >=, <=, > and <)"
SIGNS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    ">=": (operator.ge, "{} or more"),
    "<=": (operator.le, "{} or less"),
    ">": (operator.gt, "above {}"),
    "<": (operator.lt, "below {}"),
}
DECIMALS = range(4, 17)


@dataclass(frozen=True)
class Gate:
    """A figure of the summary and a bound that it must keep.

    name: of the figure; with _low or _high, of an end of its interval.
    sign: ">=", "<=", ">" or "<".
    bound: what the figure is compared with.
    """

    name: str
    sign: str
    bound: float

    def __post_init__(self) -> None:
        require(self.sign in SIGNS, WHERE, "gate", EXAMPLE, self)
        known = gated_names()
        near = get_close_matches(self.name, known, n=3)
        expected = f"one of {', '.join(n for n in known if not _is_end(n))}, or an end of its"
        expected += " interval as auc_clean_low"
        if near:
            expected = f"a figure of the summary (near: {', '.join(near)})"
        require(self.name in known, WHERE, "gate", expected, self.name or "no name")
        is_valid = isinstance(self.bound, int | float) and math.isfinite(self.bound)
        require(is_valid, WHERE, f"gate {self.name}", "bounded by a number", self.bound)
        least, most = _range(self.name)
        expected = f"bounded by what it can be, {least:g} to {most:g}"
        require(least <= self.bound <= most, WHERE, f"gate {self.name}", expected, self.bound)

    @staticmethod
    def parse(text: str) -> Gate:
        """The gate that a text such as "auc_clean>=0.8" is."""
        parts = FORM.fullmatch(text) if isinstance(text, str) else None
        if parts is None:
            raise InputError(f"{WHERE}: gate must be {EXAMPLE}, got {text}.")
        name, sign, bound = parts.groups()
        try:
            number = float(bound)
        except ValueError:
            raise InputError(f"{WHERE}: gate must be {EXAMPLE}, got {text}.") from None
        return Gate(name, sign, number)

    @property
    def is_lower(self) -> bool:
        """Whether the figure may not be below the bound, rather than above it."""
        return self.sign in (">=", ">")

    def holds(self, value: float) -> bool:
        """Whether a figure of this value passes."""
        return SIGNS[self.sign][0](value, self.bound)

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.bound:g}"


@dataclass(frozen=True)
class GateResult:
    """What became of a gate.

    value: of the figure; None where it was not measured, or is beyond all that was looked at.
    end: of the figure's interval, the one on the side of the bound; None where it has none.
    reason: why the gate is shut, in a sentence; None where it is open.
    text: the value in words.
    """

    gate: Gate
    value: float | None
    end: float | None
    reason: str | None
    text: str

    @property
    def passed(self) -> bool:
        return self.reason is None

    def to_dict(self) -> GateVerdict:
        """Plain data for JSON."""
        return {
            "name": self.gate.name,
            "sign": self.gate.sign,
            "bound": self.gate.bound,
            "value": self.value,
            "end": self.end,
            "passed": self.passed,
            "text": self.text,
            "reason": self.reason,
        }

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        side = "low" if self.gate.is_lower else "high"
        end = "" if self.end is None else f" ({side} end {_digits(self.end, self.gate)})"
        return f"  {verdict}  {self.gate}: {self.text}{end}"


@dataclass(frozen=True)
class GateReport:
    """What became of all gates; true where every one is open."""

    results: tuple[GateResult, ...]

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)

    def __bool__(self) -> bool:
        return self.passed

    def __iter__(self) -> Iterator[GateResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        """A line for each gate."""
        count = sum(result.passed for result in self.results)
        return "\n".join([f"gates: {count} of {len(self)} passed", *map(str, self.results)])


def gates_of(texts: Sequence[str], fail_under: float | None = None) -> tuple[Gate, ...]:
    """The gates of a command line.

    fail_under: a lower bound for the one gate that is named without a bound; without such a gate,
    for precision_strong.
    """
    bare = [text.strip() for text in texts if text.strip().isidentifier()]
    if fail_under is None:
        require(not bare, WHERE, "gate", EXAMPLE, " and ".join(bare))
    expected = "one, whose bound --fail-under is, or given its own bound in quotes"
    require(len(bare) <= 1, WHERE, "gate", expected, " and ".join(bare))
    given = [Gate.parse(text) for text in texts if text.strip() not in bare]
    if fail_under is not None:
        require(0 <= fail_under <= 1, WHERE, "fail_under", "in 0..1, as 0.95", fail_under)
        given.insert(0, Gate(bare[0] if bare else USUAL, ">=", fail_under))
    return checked(given)


def checked(gates: Iterable[Gate]) -> tuple[Gate, ...]:
    """Gates of which each counts: one bound for a figure on either side, and room between them."""
    given = tuple(gates)
    lower: dict[str, Gate] = {}
    upper: dict[str, Gate] = {}
    for gate in given:
        side = lower if gate.is_lower else upper
        other = side.get(gate.name)
        expected = f"given one {'lower' if gate.is_lower else 'upper'} bound"
        require(other is None, WHERE, f"gate {gate.name}", expected, f"{other} and {gate}")
        side[gate.name] = gate
    for name in lower.keys() & upper.keys():
        low, high = lower[name], upper[name]
        room = low.bound < high.bound or (low.holds(high.bound) and high.holds(low.bound))
        require(room, WHERE, f"gate {name}", "given bounds that both can hold", f"{low} and {high}")
    return given


def check(audit: AuditResult, gates: Iterable[str | Gate]) -> GateReport:
    """What becomes of gates, each a Gate or a text such as "auc_clean>=0.8"."""
    require(not isinstance(gates, str), WHERE, "gates", "a list of gates", gates)
    given = checked(gate if isinstance(gate, Gate) else Gate.parse(gate) for gate in gates)
    require(bool(given), WHERE, "gates", "at least one gate", "none")
    return GateReport(tuple(_result(audit, gate) for gate in given))


def _result(audit: AuditResult, gate: Gate) -> GateResult:
    """A gate at its figure. One not measured, not on all rows, or on training rows is shut."""
    summary, name = audit["summary"], gate.name
    value = summary.get(name)
    end = summary.get(f"{name}_{'low' if gate.is_lower else 'high'}")
    must = f"{WHERE}: {name} must be {SIGNS[gate.sign][1].format(f'{gate.bound:g}')}"
    figure = re.sub("_(low|high)$", "", name) if _is_end(name) else name
    behind = audit.get("counts", {}).get(figure, 0)
    if value is None and not (behind and name == "radius_attacked_median"):
        why = "it has no interval" if _is_end(name) and behind else "it was not measured"
        text = f"nothing: {why}"
        return GateResult(gate, None, end, f"{must}, got {text}.", text)
    if value is None:  # the median row withstood everything that was tried
        limit = float(audit["settings"]["limit"])
        text = f"above {limit:g}, beyond which nothing was looked for"
        holds = gate.is_lower and gate.bound <= limit
    else:
        text, holds = _digits(value, gate), gate.holds(value)
    # A figure of the rows that there was time for says nothing about the others.
    is_partial = late(audit["skipped"], measures_of(figure))
    if is_partial:
        asked = rows_text(audit["settings"]["rows_asked"])
        text += f" of {behind} of {asked}: give it more minutes, or fewer rows"
    reason = None if holds else f"{must}, got {text}."
    if holds and is_included(audit):  # of rows that the model knows by heart
        text += f", {INCLUDED}"
        reason = f"{WHERE}: {name} must be of rows that the training has not seen, got {text}."
    if holds and is_partial:
        reason = f"{WHERE}: {name} must be measured on all rows to pass, got {text}."
    return GateResult(gate, value, end, reason, text)


def _digits(value: float, gate: Gate) -> str:
    """A figure in the digits that it takes to stand on its own side of the bound."""
    if isinstance(value, int):
        return str(value)
    texts = (f"{value:.{decimals}f}" for decimals in DECIMALS)
    return next((t for t in texts if gate.holds(float(t)) == gate.holds(value)), repr(value))


def gated_names() -> list[str]:
    """Everything in a summary that a bound can be set for."""
    measured = [figure.name for measure in MEASURES.values() for figure in measure.figures]
    figures = dict.fromkeys([*FIGURES, *measured])
    ends = [f"{name}_{end}" for name in figures for end in ("low", "high")]
    return [*figures, *COUNTS, *ends]


def _is_end(name: str) -> bool:
    return name.endswith(("_low", "_high"))


def _range(name: str) -> tuple[float, float]:
    """The least and greatest value that a figure can have."""
    figure = re.sub("_(low|high)$", "", name)
    described = {f.name: f for m in MEASURES.values() for f in m.figures} | FIGURES
    unit = described[figure].unit if figure in described else "count"
    if unit in ("share", "proved share", "fraction") or figure.startswith("auc_"):
        return 0.0, 1.0
    return (0.0, math.inf) if "radius" in unit or unit == "count" else (-math.inf, math.inf)


def late(skipped: Iterable[Any], measures: Iterable[str] | None = None) -> bool:
    """Whether there was no time for some rows, or for some of these measures; by default any."""
    of = None if measures is None else {"rows", *measures}
    return any(LATE in s["why"] and (of is None or s["what"] in of) for s in skipped)


def goes_on(audit: Audit, partial: Path) -> bool:
    """Whether there was no time for all, and more of it would go on from what is in the file."""
    return late(audit.skipped) and partial.exists() and partial.read_bytes().count(b"\n") > 1


def measures_of(name: str) -> list[str]:
    """The measures that a figure takes."""
    return [m.name for m in MEASURES.values() if any(figure.name == name for figure in m.figures)]
