"""Reading an audit's JSON, and saying in one sentence what is wrong with one."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast, get_type_hints

from r2et.errors import InputError, describe, require
from r2et.results.audit_schema import FORMAT, AuditResult, ColumnChange, GateVerdict
from r2et.results.entries import TEXT, check_columns, check_entries, check_sizes
from r2et.results.figures import Figure
from r2et.results.row_tables import CalibrationBin, GroupedBy, Subgroup
from r2et.wording import finite

KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}
# What the page cannot do without, and what that is.
NEEDED: dict[str, type] = {
    "name": str,
    "settings": dict,
    "summary": dict,
    "rows": dict,
    "shape": list,
    "scores_shape": list,
    "curve": list,
    "shown": list,
}


def read_audit(path: str | os.PathLike[str]) -> AuditResult:
    """The audit that a JSON file holds, checked."""
    where, text = "read_audit", os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read()
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: file must be a JSON text, got {text} (not UTF-8).") from error
    except OSError as error:
        got = f"{text} ({error.strerror or error})"
        raise InputError(f"{where}: file must be one that can be read, got {got}.") from error
    try:
        audit = json.loads(content)
    except ValueError as error:
        half = content.lstrip().startswith("{") and not content.rstrip().endswith("}")
        got = "half a file: it ends in the middle" if half or not content.strip() else str(error)
        raise InputError(f"{where}: file must be whole JSON, got {text} ({got}).") from error
    except RecursionError as error:
        raise InputError(f"{where}: file must be an audit, got {text} (nested).") from error
    check_audit(f"{where}: {text}", audit)
    return cast(AuditResult, audit)


def check_audit(where: str, audit: Any) -> None:
    """What the page builds on is there and fits together."""
    require(isinstance(audit, Mapping), where, "audit", "an object", type(audit).__name__)
    form = audit.get("format")
    version = re.fullmatch(r"r2et-audit/(\d+)", form) if isinstance(form, str) else None
    expected = f"{FORMAT!r}, as `r2et audit --json` writes it"
    if version is not None and form != FORMAT:
        expected = f"{FORMAT!r} (a newer r2et wrote this file: update r2et)"
    require(form == FORMAT, where, "format", expected, "none" if form is None else form)
    check_sizes(where, audit)
    for name, kind in NEEDED.items():
        value = audit.get(name)
        require(isinstance(value, kind), where, name, KINDS[kind], value)
    k = audit["summary"].get("k")
    n = _size(where, "scores_shape", audit["scores_shape"])
    require(type(k) is int and 0 < k <= n, where, "summary.k", f"in 1..{n}", k)
    rows = audit["summary"].get("rows")
    is_valid = type(rows) is int and 0 <= rows < 2**53
    require(is_valid, where, "summary.rows", "how many rows were audited", rows)
    _check_names(where, audit, n)
    _check_figures(where, audit.get("figures"))
    _check_gates(where, audit.get("gates"))
    _check_listed(where, "calibration", audit.get("calibration"), CalibrationBin)
    _check_listed(where, "grouped_by", audit.get("grouped_by"), GroupedBy)
    for by in audit.get("grouped_by") or ():
        listed = isinstance(by["groups"], list)
        require(listed, where, "grouped_by: groups", "a list", describe(by["groups"]))
        _check_listed(where, "grouped_by", by["groups"], Subgroup)
    inputs = audit.get("inputs")
    named = inputs if isinstance(inputs, Mapping) else {}
    parts = [named.get(name) for name in ("data", "weights")]
    is_valid = all(isinstance(part, Mapping | None) for part in (inputs, *parts))
    require(is_valid, where, "inputs", "null or an object of objects", describe(inputs))
    _check_rows(where, audit["rows"])
    _check_curve(where, audit["curve"])
    inputs = _size(where, "shape", audit["shape"])
    for number, row in enumerate(audit["shown"]):
        _check_shown(where, f"shown[{number}]", row, inputs, n)
    check_entries(where, audit)
    check_columns(where, audit, n)


def _size(where: str, name: str, shape: list[Any]) -> int:
    is_valid = bool(shape) and all(type(s) is int and s > 0 for s in shape)
    require(is_valid, where, name, "a list of positive whole numbers", shape)
    return math.prod(shape)


def _check_names(where: str, audit: Mapping[str, Any], n: int) -> None:
    names, skipped = audit.get("names"), audit.get("skipped") or []
    is_valid = names is None or (isinstance(names, list) and len(names) == n)
    is_valid = is_valid and all(map(TEXT.fits, names or ()))
    require(is_valid, where, "names", f"null or a list of {n}", names)
    listed = isinstance(skipped, list) and all(isinstance(s, Mapping) for s in skipped)
    require(listed, where, "skipped", "a list of objects", skipped)
    notes = audit.get("notes") or []
    listed = isinstance(notes, list) and all(isinstance(note, str) for note in notes)
    require(listed, where, "notes", "a list of texts", describe(notes))
    classes = audit.get("classes")
    require(isinstance(classes, list | None), where, "classes", "null or a list", classes)
    for name in ("versions", "counts", "training_rows"):
        value = audit.get(name)
        require(isinstance(value, Mapping | None), where, name, "an object", value)


def _check_figures(where: str, figures: Any) -> None:
    listed = isinstance(figures, list | None)
    require(listed, where, "figures", "null or a list of objects", describe(figures))
    names = {field.name for field in fields(Figure)}
    for number, described in enumerate(figures or ()):
        place = f"figures[{number}]"
        is_known = isinstance(described, Mapping) and {"name", "label"} <= set(described) <= names
        expected = f"an object with name, label, and others of {', '.join(sorted(names))}"
        require(is_known, where, place, expected, describe(described))
        try:
            Figure(**described)
        except InputError as error:
            require(False, where, place, "a figure", str(error).rstrip("."))


def _check_gates(where: str, gates: Any) -> None:
    listed = isinstance(gates, list | None)
    require(listed, where, "gates", "null or a list of objects", describe(gates))
    names = set(GateVerdict.__annotations__)
    for number, verdict in enumerate(gates or ()):
        is_whole = isinstance(verdict, Mapping) and names <= set(verdict)
        is_whole = is_whole and finite(verdict["bound"]) is not None
        expected = f"an object with {', '.join(sorted(names))}"
        require(is_whole, where, f"gates[{number}]", expected, describe(verdict))


def _check_listed(where: str, name: str, entries: Any, kind: type) -> None:
    kinds = get_type_hints(kind)
    is_valid = isinstance(entries, list | None) and all(
        isinstance(entry, Mapping) and set(kinds) <= set(entry) for entry in entries or ()
    )
    expected = f"null or a list of objects with {', '.join(sorted(kinds))}"
    require(is_valid, where, name, expected, describe(entries))
    for number, entry in enumerate(entries or ()):
        for key, hint in kinds.items():
            value, place = entry[key], f"{name}[{number}].{key}"
            if hint is str:
                require(isinstance(value, str), where, place, "a text", describe(value))
            elif hint in (int, float):
                require(finite(value) is not None, where, place, "a number", describe(value))
            elif hint == float | None and value is not None:
                is_valid = finite(value) is not None
                require(is_valid, where, place, "null or a number", describe(value))


def _check_rows(where: str, rows: Mapping[str, Any]) -> None:
    for name, column in rows.items():
        is_valid = isinstance(column, list | None)
        require(is_valid, where, f"rows.{name}", "null or a list", describe(column))
    lengths = {name: len(column) for name, column in rows.items() if column is not None}
    alike = len(set(lengths.values())) <= 1
    require(alike, where, "rows", "columns of one length", lengths)


def _check_curve(where: str, curve: list[Any]) -> None:
    parts = ("radius", "proved", "unknown", "broken")
    for entry in curve:
        is_valid = isinstance(entry, Mapping) and all(
            finite(entry.get(p)) is not None for p in parts
        )
        require(
            is_valid, where, "curve", f"a list of objects with numbers {', '.join(parts)}", entry
        )


def _check_shown(where: str, name: str, row: Any, inputs: int, n: int) -> None:
    is_valid = isinstance(row, Mapping) and isinstance(row.get("steps"), list)
    require(is_valid, where, name, "an object with steps", row)
    for place, part in ((name, row), *((f"{name}.steps[{i}]", s) for i, s in _numbered(row))):
        require(isinstance(part, Mapping), where, place, "an object", part)
        for key, size in (("x", inputs), ("scores", n)):
            numbers = part.get(key)
            is_valid = isinstance(numbers, list) and len(numbers) == size
            is_valid = is_valid and all(finite(v) is not None for v in numbers)
            require(
                is_valid, where, f"{place}.{key}", f"a list of {size} numbers", describe(numbers)
            )
        values = row.get("values", [""] * n)
        is_valid = isinstance(values, list) and len(values) == n
        is_valid = is_valid and all(isinstance(value, str) for value in values)
        require(is_valid, where, f"{name}.values", f"a list of {n} texts", describe(values))
        if part is not row:
            radius = finite(part.get("radius"))
            is_valid = radius is not None and radius >= 0
            require(is_valid, where, f"{place}.radius", "a number from 0 on", part.get("radius"))
            _check_changes(where, f"{place}.changes", part.get("changes"))


def _check_changes(where: str, name: str, changes: Any) -> None:
    listed = isinstance(changes, list | None)
    require(listed, where, name, "null or a list of objects", describe(changes))
    texts = [key for key in ColumnChange.__annotations__ if key != "possible"]
    for change in changes or ():
        is_valid = isinstance(change, Mapping)
        is_valid = is_valid and all(isinstance(change.get(key), str) for key in texts)
        is_valid = is_valid and isinstance(change.get("possible"), bool)
        expected = f"a list of objects with texts {', '.join(texts)} and possible"
        require(is_valid, where, name, expected, describe(change))


def _numbered(row: Mapping[str, Any]) -> list[tuple[int, Any]]:
    return list(enumerate(row["steps"]))
