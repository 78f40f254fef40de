"""What the file of a claim may hold, entry by entry; ValueError says what is not so."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
RECIPE = re.compile(r"[\w.:-]{1,200}")  # its own name, or module:name
WORD = re.compile(r"[a-z_]{1,40}")  # a setting that is a choice, such as "worst"
LARGEST = 1e12  # of a number: a table could not show a larger one

Check = Callable[[Any], bool]


def is_name(value: Any) -> bool:
    """What a file can be called, and a table can show."""
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def _is_recipe(value: Any) -> bool:
    return isinstance(value, str) and RECIPE.fullmatch(value) is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= LARGEST


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and isinstance(value, int)


def _is_one_line(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= 200


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


def _is_asked(value: Any) -> bool:
    """A quick look's number, or weights to try; nothing, as usually."""
    return value is None or _is_one_line(value) or _is_number(value) or _list_of(_is_number)(value)


CLAIM: dict[str, tuple[str, Check]] = {
    "table": ("a name", is_name),
    "data": ("a name", is_name),
    "recipe": ("a name", _is_recipe),
    "chosen": ("an object", _is_object),
    "unreliable": ("a list of texts", _list_of(_is_text)),
    "numbers": ("an object", _is_object),
    "settings": ("an object", _is_object),
    "made": ("an object", _is_object),
    "choices": ("a list of texts", _list_of(_is_text)),
    "trained": ("a list of texts", _list_of(_is_text)),
    "candidates": ("an object", _is_object),
}
NEEDED = ("table", "data", "recipe", "chosen", "unreliable", "numbers")
VALUES: dict[str, tuple[str, Check]] = {
    "seeds": ("a list of numbers", _list_of(_is_number)),
    "reported": ("a number or null", _or_none(_is_number)),
    "rows": ("a list of numbers", _list_of(_is_number)),
    "records": ("a list of texts", _list_of(_is_text)),
    "failed": ("a text or null", _or_none(_is_text)),
    "unreliable": ("a list of texts", _list_of(_is_text)),
    "below": ("a text", _is_text),
    "tied": ("a share", _is_share),
}
NEEDED_VALUES = ("seeds", "rows", "records", "unreliable")
SETTINGS: dict[str, tuple[str, Check]] = {
    "k": ("a whole number", _is_count),
    "seeds": ("a whole number", _is_count),
    "regime": ("long or papers", lambda value: value in ("long", "papers")),
    "epochs": ("a number", _is_asked),
    "rows": ("a number", _is_asked),
    "steps": ("a number", _is_asked),
    "weights": ("numbers", _is_asked),
    "weights_sha256": ("a text", _is_one_line),
    "by": ("a text", _is_text),
    "source": ("a text", _is_text),
    "rules": ("an object", _is_object),
    "linear": ("true or false", lambda value: isinstance(value, bool)),
}
MADE: dict[str, tuple[str, Check]] = {
    "r2et": ("a text", _is_text),
    "torch": ("a text", _is_text),
    "python": ("a text", _is_text),
    "machine": ("a text", _is_text),
    "cpu": ("a text", _is_text),
    "date": ("a text", _is_text),
    "seconds": ("a number", _is_number),
}


def check_claim(stored: Any, form: str) -> None:
    """A claim's file, in this format."""
    if not isinstance(stored, Mapping) or stored.get("format") != form:
        raise ValueError(f"its format is not {form}")
    entries = {name: value for name, value in stored.items() if name != "format"}
    _check("it", entries, CLAIM, NEEDED, closed=True)
    for name, value in entries["chosen"].items():
        word = isinstance(value, str) and WORD.fullmatch(value) is not None
        fits = _is_one_line(name) and (value is True or _is_number(value) or word)
        _require(fits, "chosen", name, "a number, true or a word, by its name")
    for name, values in entries["numbers"].items():
        _require(_is_one_line(name) and _is_object(values), "numbers", name, "an object")
        _check(f"numbers.{name}", values, VALUES, NEEDED_VALUES, closed=True)
    _check("settings", entries.get("settings", {}), SETTINGS)
    made = entries.get("made", {})
    _check("made", made, MADE, ("date", "seconds") if made else ())


def _check(
    where: str,
    entries: Mapping[str, Any],
    rules: Mapping[str, tuple[str, Check]],
    needed: tuple[str, ...] = (),
    closed: bool = False,
) -> None:
    for name in needed:
        _require(name in entries, where, name, "there")
    for name, value in entries.items():
        if name in rules:
            expected, check = rules[name]
            _require(check(value), where, name, expected)
        else:
            _require(not closed, where, name, f"one of {', '.join(rules)}")


def _require(ok: bool, where: str, name: str, expected: str) -> None:
    if not ok:
        raise ValueError(f"{where}: {name} is not {expected}")
