"""Two audits of the same thing: what is equal to the bit, what within tolerance, what differs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from r2et.errors import printable, require
from r2et.results import AuditResult
from r2et.wording import finite

TOLERANCE = 1e-3  # of a number, relative to the larger one
LEAST = 1e-6  # and of numbers next to 0, absolute
SHOWN = 8  # differences on a terminal
# What tells of the run and not of the model: when, how long, where, by which command and versions.
OF_THE_RUN = ("date", "seconds", "durations", "versions", "inputs")
OF_THE_CLOCK = "minutes"  # a setting that only says when to stop
# Measured, as a rule; all else is what was asked for, and is equal or different.
MEASURED = ("summary", "rows", "curve", "shown", "calibration", "grouped_by", "gates")
ASKED = ("summary.radius", "rows.id")
PRINT = "page.pdf"  # which depends on the browser
PARTS = {
    "summary": "figures",
    "rows": "values of rows",
    "curve": "points of the curve",
    "shown": "values of example rows",
}
REST = "settings, groups and sentences"
EQUAL, CLOSE, DIFFERENT = "equal", "within tolerance", "different"


class Difference(NamedTuple):
    """A value that is not equal to the bit.

    place: where, as summary.auc_clean or rows.radius_certified[3].
    old, new: both values.
    close: whether they are numbers within tolerance.
    """

    place: str
    old: Any
    new: Any
    close: bool

    def __str__(self) -> str:
        return f"{self.place}: {_text(self.old)} in the pack, {_text(self.new)} now"


@dataclass(frozen=True)
class Verification:
    """What became of a repetition.

    counts: part -> how many of its values are equal to the bit, within tolerance, different.
    differences: all that are not equal to the bit.
    tolerance: relative.
    changed: what is not as it was: versions and machine, each as (name, then, now).
    pack: what was checked of the file before, in words.
    left_out: members that were not compared, or not vouched for, and why.
    unchecked: what the pack says and a repetition does not tell about, and why.
    """

    counts: Mapping[str, Mapping[str, int]]
    differences: tuple[Difference, ...]
    tolerance: float
    changed: tuple[tuple[str, str, str], ...] = ()
    pack: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)

    @property
    def repeated(self) -> bool:
        """Whether no value differs by more than the tolerance."""
        return all(difference.close for difference in self.differences)

    @property
    def passed(self) -> bool:
        """Whether it is repeated, and what people read says the same; a PDF is left to a reader."""
        return self.repeated and not set(self.left_out) - {PRINT}

    @property
    def outcome(self) -> str:
        """What became of it, in a line."""
        if not self.repeated:
            return "NOT repeated"
        how = "equal to the bit" if self.bit_equal else "within tolerance"
        names = ", ".join(self.left_out)
        if not self.passed:
            return f"figures repeated, {how}; NOT compared: {names}"
        return f"repeated, {how}" + (f"; not compared: {names}" if names else "")

    @property
    def bit_equal(self) -> bool:
        """Whether no value differs at all."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.passed

    def made(self, then: Any, now: Mapping[str, str]) -> Verification:
        """The same, with what has changed of versions and machine since."""
        old = then if isinstance(then, Mapping) else {}
        names = dict.fromkeys((*old, *now))
        pairs = ((str(n), str(old.get(n, "none")), str(now.get(n, "none"))) for n in names)
        return replace(self, changed=tuple(p for p in pairs if p[1] != p[2]))

    def compared(self, part: str, members: Mapping[str, bool]) -> Verification:
        """The same, with members that are, or are not, what the result gives."""
        other = [name for name, equal in members.items() if not equal]
        own = {EQUAL: len(members) - len(other), CLOSE: 0, DIFFERENT: len(other)}
        strange = (Difference(name, "other bytes", "made of audit.json", False) for name in other)
        differences = (*self.differences, *strange)
        return replace(self, counts={**self.counts, part: own}, differences=differences)

    def uncompared(self, members: Mapping[str, str]) -> Verification:
        """The same, with members that could not be compared, and why."""
        return replace(self, left_out={**self.left_out, **members})

    def of_sources(self, old: AuditResult, new: AuditResult, *, resaved: bool) -> Verification:
        """The same, with what both say of their files: names and SHA-256 beside the numbers.

        resaved: whether the file of the weights is one that the pack made of them.
        """
        differences, unchecked = list(self.differences), dict(self.unchecked)
        first, second = (_inputs(result) for result in (old, new))
        for part in ("data", "weights"):
            then, now = first.get(part) or {}, second.get(part) or {}
            for name in ("name", "sha256", "of"):
                place, old_value, new_value = f"inputs.{part}.{name}", then.get(name), now.get(name)
                if old_value == new_value:
                    continue
                other_kind = then.get("of") != now.get("of") or now.get("name") is None
                if other_kind or (resaved and part == "weights"):
                    unchecked[place] = "of a file that was not used again"
                elif part == "data" and name == "name" and now.get("of") == "file":
                    unchecked[place] = "of a file that has another name now"
                else:
                    differences.append(Difference(place, old_value, new_value, False))
        if "files" in first and "files" not in second:
            unchecked["inputs.files"] = "of a folder that was not used again"
        return replace(self, differences=tuple(differences), unchecked=unchecked)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "outcome": self.outcome,
            "passed": self.passed,
            "repeated": self.repeated,
            "bit_equal": self.bit_equal,
            "tolerance": self.tolerance,
            "pack": dict(self.pack),
            "counts": {name: dict(own) for name, own in self.counts.items()},
            "differences": [each._asdict() for each in self.differences],
            "left_out": dict(self.left_out),
            "unchecked": dict(self.unchecked),
            "changed": [dict(zip(("name", "then", "now"), c, strict=True)) for c in self.changed],
        }

    def __str__(self) -> str:
        lines = []
        for part, own in self.counts.items():
            total = sum(own.values())
            text = f"{own[EQUAL]} of {total} equal to the bit"
            if own[CLOSE]:
                text += f", {own[CLOSE]} within {self.tolerance:g}"
            if own[DIFFERENT]:
                text += f", {own[DIFFERENT]} DIFFERENT"
            lines.append(f"  {part:32} {text}")
        worst = sorted(self.differences, key=lambda each: each.close)
        lines += [f"  {'close' if d.close else 'DIFFERENT'}: {d}" for d in worst[:SHOWN]]
        if len(worst) > SHOWN:
            lines.append(f"  ... and {len(worst) - SHOWN} more")
        for name, then, now in self.changed:
            lines.append(f"  not as it was: {name}: {then} then, {now} now")
        lines += [f"  not compared: {name} ({why})" for name, why in self.left_out.items()]
        for why in dict.fromkeys(self.unchecked.values()):
            names = ", ".join(name for name, own in self.unchecked.items() if own == why)
            lines.append(f"  not checked: {names} ({why})")
        # Names and texts of a pack may hold anything, a terminal's own codes among it.
        return "\n".join(printable(line) for line in (self.outcome, *lines))


def compare_results(old: AuditResult, new: AuditResult, tolerance: float) -> Verification:
    """Every value that tells of the model, place by place; |a - b| <= tolerance max(|a|, |b|)."""
    is_valid = isinstance(tolerance, int | float) and 0 <= tolerance < 1
    require(is_valid, "verify", "tolerance", "0 or more, and below 1", tolerance)
    counts: dict[str, dict[str, int]] = {}
    differences: list[Difference] = []
    before, after = _comparable(old), _comparable(new)
    if not ("files" in before["inputs"] and "files" in after["inputs"]):
        before["inputs"].pop("files", None), after["inputs"].pop("files", None)
    for place, first, second in _values(before, after, ""):
        part = PARTS.get(place.partition(".")[0].partition("[")[0], REST)
        own = counts.setdefault(part, {EQUAL: 0, CLOSE: 0, DIFFERENT: 0})
        if type(first) is type(second) and first == second:
            own[EQUAL] += 1
            continue
        close = is_close(first, second, tolerance if _is_measured(place) else 0.0)
        own[CLOSE if close else DIFFERENT] += 1
        differences.append(Difference(place, first, second, close))
    order = [*PARTS.values(), REST]
    counts = {part: counts[part] for part in order if part in counts}
    return Verification(counts, tuple(differences), float(tolerance))


def is_close(first: Any, second: Any, tolerance: float) -> bool:
    """Whether both are numbers that differ by no more than the tolerance; of whole ones by nothing.

    A row's number, a reason, a seed, a count: next to each other they are others.
    """
    a, b = finite(first), finite(second)
    if a is None or b is None:
        return False
    if not (isinstance(first, float) and isinstance(second, float)):
        return bool(first == second)
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=LEAST if tolerance else 0.0)


def _comparable(result: AuditResult) -> dict[str, Any]:
    """What an audit tells of its model, as JSON holds it."""
    whole: dict[str, Any] = json.loads(json.dumps(result))
    sources = _inputs(result)
    compared = {name: value for name, value in whole.items() if name not in OF_THE_RUN}
    compared["settings"] = {n: v for n, v in compared["settings"].items() if n != OF_THE_CLOCK}
    compared["inputs"] = {name: _digest(sources.get(name)) for name in ("data", "weights")}
    compared["inputs"] |= {name: sources[name] for name in ("rows", "files") if name in sources}
    return compared


def _inputs(result: AuditResult) -> dict[str, Any]:
    """What was audited; empty in older files."""
    return dict(result.get("inputs") or {})


def _is_measured(place: str) -> bool:
    """Whether numbers there were measured, rather than asked for."""
    return place.startswith(MEASURED) and not place.startswith(ASKED)


def _digest(source: Any) -> Any:
    """Of the numbers, whatever file they came from."""
    own = source if isinstance(source, Mapping) else {}
    return own.get("tensors") or own.get("sha256")


def _values(old: Any, new: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Place by place the values of two results; of what one lacks, "nothing"."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            inner = f"{place}.{name}" if place else str(name)
            yield from _values(old.get(name, "nothing"), new.get(name, "nothing"), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _values(first, second, f"{place}[{number}]")
    else:
        yield place, old, new


def _text(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"{len(value)} values"
    text = repr(value) if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
