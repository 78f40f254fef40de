"""Of which type each entry of an audit is, so that whatever is made of one can be made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from r2et.errors import describe, require

LARGEST = 1e300  # beyond, sums and shares in percent overflow
DEEPEST = 64  # lists within lists
COLUMNS_OF_CLASSES = ("target", "label")
SCALARS = (int, float, str, bool)


class Kind(NamedTuple):
    """What an entry must be, in words, and whether a value is."""

    words: str
    fits: Callable[[Any], bool]


def or_null(kind: Kind) -> Kind:
    return Kind(f"null or {kind.words}", lambda value: value is None or kind.fits(value))


def list_of(kind: Kind, words: str) -> Kind:
    fits = kind.fits
    return Kind(words, lambda value: isinstance(value, list) and all(map(fits, value)))


def object_of(kind: Kind, words: str) -> Kind:
    fits = kind.fits
    return Kind(words, lambda value: isinstance(value, Mapping) and all(map(fits, value.values())))


TEXT = Kind("a text", lambda value: isinstance(value, str))
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
WHOLE = Kind("a whole number", lambda value: type(value) is int and abs(value) < 2**53)
COUNT = Kind("a whole number, 0 or more", lambda value: WHOLE.fits(value) and value >= 0)
NUMBER = Kind("a number", lambda value: type(value) in (int, float))
PLAIN = Kind("a number, a text, a truth or null", lambda v: v is None or type(v) in SCALARS)
OBJECT = Kind("an object", lambda value: isinstance(value, Mapping))
TEXTS = list_of(TEXT, "a list of texts")

ENTRIES: dict[str, Kind] = {
    "date": or_null(TEXT),
    "seconds": or_null(NUMBER),
    "config": or_null(OBJECT),
    "classes": or_null(TEXTS),
    "class_count": or_null(COUNT),
    "counts": or_null(object_of(COUNT, "an object of whole numbers")),
    "versions": or_null(object_of(TEXT, "an object of texts")),
    "durations": or_null(object_of(NUMBER, "an object of numbers")),
    "proof": or_null(TEXT),
    "assumptions": or_null(TEXT),
}
SETTINGS = dict.fromkeys(("radius", "limit", "level", "cutoff", "minutes"), or_null(NUMBER))
SOURCE = {
    "name": or_null(TEXT),
    "sha256": or_null(TEXT),
    "of": TEXT,
    "tensors": or_null(TEXT),
}
INPUTS = {
    "rows": or_null(COUNT),
    "command": or_null(TEXT),
    "files": or_null(object_of(TEXT, "an object of texts")),
}
TRAINING_ROWS = {
    **dict.fromkeys(("given", "training", "validation", "alike"), COUNT),
    "included": TRUTH,
    "label": TEXT,
}
SKIPPED = {"what": TEXT, "why": TEXT}
GATE = {
    **dict.fromkeys(("name", "sign", "text"), TEXT),
    **dict.fromkeys(("value", "end"), or_null(NUMBER)),
    "passed": TRUTH,
    "reason": or_null(TEXT),
}
SHOWN = {"index": WHOLE, "kind": TEXT, "target": WHOLE}
SHOWN_ALSO = {
    "label": or_null(WHOLE),
    **dict.fromkeys(("probability", "radius_certified", "radius_attacked"), or_null(NUMBER)),
}
STEP = dict.fromkeys(("precision", "probability", "proved_precision"), or_null(NUMBER))


def check_entries(where: str, audit: Mapping[str, Any]) -> None:
    """Each entry is of its type; those that may be missing may be null as well, or missing."""
    check_kinds(where, "", audit, ENTRIES)
    check_kinds(where, "settings.", audit["settings"], SETTINGS)
    inputs = audit.get("inputs") or {}
    check_kinds(where, "inputs.", inputs, INPUTS)
    for name in ("data", "weights"):
        check_kinds(where, f"inputs.{name}.", inputs.get(name) or {}, SOURCE)
    if audit.get("training_rows") is not None:
        check_kinds(where, "training_rows.", audit["training_rows"], TRAINING_ROWS, whole=True)
    for name, kinds in (("skipped", SKIPPED), ("gates", GATE)):
        for number, entry in enumerate(audit.get(name) or ()):
            check_kinds(where, f"{name}[{number}].", entry, kinds, whole=True)
    figure = Kind("null or a number", lambda value: value is None or NUMBER.fits(value))
    check_kinds(where, "summary.", audit["summary"], dict.fromkeys(audit["summary"], figure))
    for number, row in enumerate(audit["shown"]):
        place = f"shown[{number}]."
        check_kinds(where, place, row, SHOWN, whole=True)
        check_kinds(where, place, row, SHOWN_ALSO)
        for step, entry in enumerate(row["steps"]):
            check_kinds(where, f"{place}steps[{step}].", entry, STEP)
    _check_config(where, audit.get("config"))


def check_kinds(
    where: str,
    place: str,
    entries: Mapping[str, Any],
    kinds: Mapping[str, Kind],
    *,
    whole: bool = False,
) -> None:
    """Entries of these names are of these kinds; whole: and all of them are there."""
    for name, kind in kinds.items():
        if name in entries or whole:
            value = entries.get(name, "nothing")
            is_valid = name in entries and kind.fits(value)
            require(is_valid, where, f"{place}{name}", kind.words, describe(value))


def check_columns(where: str, audit: Mapping[str, Any], n: int) -> None:
    """Columns of rows: whole numbers where they call something else, plain values elsewhere."""
    classes = audit.get("classes")
    many = len(classes) if classes else LARGEST
    place = Kind("", lambda value: WHOLE.fits(value) and 0 <= value < n)
    known = Kind("", lambda value: COUNT.fits(value) and value < many)
    below = f" below {many}" if classes else ""
    own = {
        "index": (COUNT, "whole numbers"),
        "top": (list_of(place, ""), f"lists of whole numbers below {n}"),
        **dict.fromkeys(COLUMNS_OF_CLASSES, (or_null(known), f"whole numbers{below}, or null")),
    }
    for name, column in audit["rows"].items():
        kind, words = own.get(name, (PLAIN, "numbers, texts, truths and nulls"))
        bad = [value for value in column or () if not kind.fits(value)]
        got = f"{describe(bad[0])} among them" if bad else ""
        require(not bad, where, f"rows.{name}", f"null or a list of {words}", got)


def check_sizes(where: str, audit: Any) -> None:
    """No number is beyond all use, and nothing is nested without end."""
    left: list[tuple[Any, int, str]] = [(audit, 0, "audit")]
    while left:
        value, depth, place = left.pop()
        require(depth <= DEEPEST, where, place, f"nested {DEEPEST} deep at most", "more")
        if isinstance(value, Mapping):
            left += [(part, depth + 1, str(name)) for name, part in value.items()]
        elif isinstance(value, list):
            left += [(part, depth + 1, place) for part in value]
        elif isinstance(value, int | float) and not abs(value) <= LARGEST:
            require(False, where, place, f"of numbers up to {LARGEST:g}", describe(value)[:40])


def _check_config(where: str, config: Any) -> None:
    """What identifies the settings: names are texts, and what is usual is listed by name."""
    left = [] if config is None else [config]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            check_kinds(where, "config: ", value, {"name": TEXT, "defaults": TEXTS})
            left += value.values()
        elif isinstance(value, list):
            left += value
