"""Single rows before and after: what the page shows, and what its script steps through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from r2et.report import images
from r2et.report.shares import moves_of, search_limit
from r2et.report.words import listed
from r2et.results import AuditResult, ColumnChange, ExampleRow, ExampleStep
from r2et.wording import (
    NONE,
    apart,
    compact,
    count,
    finite,
    lowered,
    percent,
    proved_radius,
    significant,
)

RUNNERS_UP = 3  # features below the top k that are drawn too
CHANGES = 8  # of the input, drawn one by one
STATES = {"proved": "proved to stay", "unknown": "unknown", "broken": "broken by an attack"}


def row_views(audit: AuditResult) -> list[dict[str, Any]]:
    """The shown rows, each with its unchanged self (step 0) and the worst found at each radius."""
    return [_row(audit, row) for row in audit["shown"]]


def top(scores: Sequence[float], k: int) -> list[int]:
    """The k highest scores, best first, ties by the order of features."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]


def _row(audit: AuditResult, row: ExampleRow) -> dict[str, Any]:
    k, radius = audit["summary"]["k"], finite(audit["summary"].get("radius"))
    steps = sorted(row["steps"], key=lambda s: float(s["radius"]))
    drawn = _drawn([row["scores"], *(s["scores"] for s in steps)], k)
    clean: ExampleStep = {
        "radius": 0,
        "x": row["x"],
        "scores": row["scores"],
        "precision": 1.0,
        "probability": row.get("probability"),
        "proved_precision": 1.0,
    }
    views = [_step(audit, row, step, drawn) for step in (clean, *steps)]
    start = 0
    for number, step in enumerate(steps, 1):
        # At least one step away from the unchanged row, at most to the audit's radius.
        if number == 1 or radius is None or step["radius"] <= radius * (1 + 1e-9):
            start = number
    view: dict[str, Any] = {
        "kind": "worst" if row.get("kind") == "worst" else "ordinary",
        "title": _title(audit, row),
        "about": _about(audit, row),
        "bracket": [] if moves_of(audit) else _bracket(row, search_limit(audit)),
        "start": start,
        "steps": views,
    }
    if images.is_map(audit["scores_shape"]):
        view["input"] = _picture(audit, row, row["x"])
        view["before"] = images.heat_map(row["scores"], audit["scores_shape"])
    else:
        ranks = _ranks(row["scores"])
        bars = _bars(row["scores"], drawn)
        view["features"] = [
            [_named(audit, row, i), ranks[i], bar] for i, bar in zip(drawn, bars, strict=True)
        ]
    return view


def _bracket(row: ExampleRow, limit: float | None) -> list[list[str]]:
    """Up to which change the row is proved, and from which on it is broken."""
    certified, attacked = finite(row.get("radius_certified")), finite(row.get("radius_attacked"))
    proved, broken = significant(certified and lowered(certified)), significant(attacked)
    if certified is not None and attacked is not None:
        proved, broken = apart(certified, attacked)
    tried = any(finite(s.get("precision")) is not None for s in row["steps"])
    if certified is not None:
        proved = proved_radius(proved, certified, limit)
    if attacked is None and tried:
        broken = "none found"
    return [["Proved up to", proved], ["Changed from", broken]]


def _step(
    audit: AuditResult, row: ExampleRow, step: ExampleStep, drawn: list[int]
) -> dict[str, Any]:
    """One radius: what became of the top k, and by which change."""
    k = audit["summary"]["k"]
    before, after = top(row["scores"], k), top(step["scores"], k)
    kept = finite(step.get("precision"))
    if kept is not None and kept >= 1:  # the audit knows better than scores rounded to near ties
        after = before
    left = [i for i in before if i not in set(after)]
    entered = [i for i in after if i not in set(before)]
    pixels = images.is_map(audit["scores_shape"])
    state = _state(row, step)
    view: dict[str, Any] = {
        **_size(audit, step),
        "state": state,
        "facts": _facts(audit, row, step, state),
        "where": _where(audit, row, step),
        "say": _say(audit, step, k - len(left) if kept is None else round(kept * k), pixels),
        "moved": "" if pixels else _moved(audit, left, entered),
        "changes": _changes(audit, row, step),
        "more": _more(row, step, pixels),
    }
    if pixels:
        shape = audit["scores_shape"]
        stay = set(before) & set(after)
        view["after"] = images.heat_map(step["scores"], shape)
        view["change"] = images.change_picture(step["x"], row["x"], _layout(audit))
        for name, features, form in (
            ("stay", stay, "square"),
            ("left", left, "cross"),
            ("entered", entered, "plus"),
        ):
            view[name] = images.mark(features, shape, form)
    else:
        ranks, words = _ranks(step["scores"]), dict.fromkeys(before, "stays")
        words |= dict.fromkeys(left, "left") | dict.fromkeys(entered, "entered")
        bars = zip(drawn, _bars(step["scores"], drawn), strict=True)
        view["after"] = [[ranks[i], bar, words.get(i, "")] for i, bar in bars]
    return view


def _say(audit: AuditResult, step: ExampleStep, stay: int, pixels: bool) -> str:
    """What happens at this radius, as a sentence."""
    k, thing = audit["summary"]["k"], "pixels" if pixels else "reasons"
    if not step["radius"]:
        return f"the {k} {thing} as they are shown."
    sentence = f"{f'all {k}' if stay == k else f'{stay} of {k}'} {thing} stay."
    proved = finite(step.get("proved_precision"))
    return sentence if proved is None else f"{sentence} Proved: {_of(proved, k, 'at least ')}."


def _moved(audit: AuditResult, left: list[int], entered: list[int]) -> str:
    """Which features left the top k, and which came instead."""
    out, new = ([_name(audit, i) for i in some] for some in (left, entered))
    return f"Left: {listed(out)}. Entered: {listed(new)}." if left else ""


def _title(audit: AuditResult, row: ExampleRow) -> str:
    """The row's number and, where it has one, its identifier."""
    index, ids = audit["rows"].get("index") or [], audit["rows"].get("id") or []
    number = row.get("index")
    known = str(ids[index.index(number)]) if ids and number in index else ""
    return f"Row {number}, id {known}" if known else f"Row {number}"


def _size(audit: AuditResult, step: ExampleStep) -> dict[str, str]:
    """How large the change is: beside the slider, in a title, and for a screen reader."""
    radius = significant(step["radius"])
    if moves_of(audit) is None:
        return {"radius": radius, "at": f"at radius {radius}", "spoken": f"radius {radius}"}
    whole = "changed as allowed" if step["radius"] else "unchanged"
    return {"radius": whole, "at": whole, "spoken": whole}


def _where(audit: AuditResult, row: ExampleRow, step: ExampleStep) -> str:
    size = f"change up to {significant(step['radius'])}"
    size = size if moves_of(audit) is None else "changed as allowed"
    return f"{_title(audit, row)}, {size if step['radius'] else 'unchanged'}:"


def _facts(audit: AuditResult, row: ExampleRow, step: ExampleStep, state: str) -> list[list[str]]:
    k = audit["summary"]["k"]
    before, after = finite(row.get("probability")), finite(step.get("probability"))
    kept, proved = finite(step.get("precision")), finite(step.get("proved_precision"))
    return [
        ["At this radius" if moves_of(audit) is None else "For these changes", STATES[state]],
        ["Kept (P@k)", NONE if kept is None else f"{percent(kept)} ({_of(kept, k)})"],
        ["Proved to stay", NONE if proved is None else _of(proved, k, "at least ")],
        ["Probability", f"{percent(before)} → {percent(after)}"],
    ]


def _state(row: ExampleRow, step: ExampleStep) -> str:
    kept, proved = finite(step.get("precision")), finite(step.get("proved_precision"))
    radius = finite(row.get("radius_certified"))
    if kept is not None and kept < 1:
        return "broken"
    sure = (proved is not None and proved >= 1) or (radius is not None and radius >= step["radius"])
    return "proved" if sure else "unknown"


def _of(share: float, k: int, least: str = "") -> str:
    """A share of k as a count of features; "at least" is not said of all and of none."""
    # What was proved is rounded down.
    number = math.floor(share * k + 1e-6) if least else round(share * k)
    return f"all {k}" if number == k else f"{least if number else ''}{number} of {k}"


def _changes(audit: AuditResult, row: ExampleRow, step: ExampleStep) -> list[list[Any]]:
    """What moves most of the input: name, before, after, change; columns of a table, if known."""
    columns = step.get("changes")
    if columns is not None:
        return [[c["column"], c["before"], c["after"], c["change"]] for c in columns[:CHANGES]]
    moves = _moves(row, step)[:CHANGES]
    if images.is_map(audit["scores_shape"]):
        return []
    names = audit.get("names") if len(row["x"]) == len(row["scores"]) else None
    return [
        [
            f"input {i}" if names is None else str(names[i]),
            significant(row["x"][i]),
            significant(step["x"][i]),
            ("+" if d > 0 else "") + significant(d, 2),
        ]
        for i, d in moves
    ]


def _more(row: ExampleRow, step: ExampleStep, pixels: bool) -> str:
    """What the table of changes, or the picture of them, leaves out."""
    moves = _moves(row, step)
    if not moves:
        return "The input is unchanged."
    columns = step.get("changes")
    if columns is not None:
        return _more_columns(columns)
    largest = f"Largest change of an input value: {significant(abs(moves[0][1]), 2)}."
    rest = moves[CHANGES:]
    if not rest:
        return largest
    listed_here = "" if pixels else f": these {CHANGES}, and {count(len(rest))} smaller"
    return f"{count(len(moves))} input values move{listed_here}. {largest}"


def _more_columns(columns: list[ColumnChange]) -> str:
    """The same of a table's columns, and how much of the change no row of the table could have."""
    many = f"{count(len(columns))} column{'s change' if len(columns) > 1 else ' changes'}"
    rest = len(columns) - CHANGES
    shown = f": these {CHANGES}, and {count(rest)} that change less" if rest > 0 else ""
    impossible = sum(not change["possible"] for change in columns)
    if not impossible:
        return f"{many}{shown}."
    return f"{many}{shown}. {count(impossible)} of them to what the table cannot hold."


def _moves(row: ExampleRow, step: ExampleStep) -> list[tuple[int, float]]:
    pairs = enumerate(zip(row["x"], step["x"], strict=True))
    moves = [(i, b - a) for i, (a, b) in pairs if a != b]
    return sorted(moves, key=lambda move: -abs(move[1]))


def _about(audit: AuditResult, row: ExampleRow) -> str:
    """Which class is explained, and which one is true."""
    classes = audit.get("classes") or []

    def word(number: Any) -> str:
        known = type(number) is int and 0 <= number < len(classes)
        return str(classes[number]) if known else f"class {number}"

    sentence = f"Decision: {word(row.get('target'))} ({percent(row.get('probability'))})"
    label = row.get("label")
    return sentence if label is None else f"{sentence}; in truth: {word(label)}"


def _drawn(all_scores: list[list[float]], k: int) -> list[int]:
    """Features to draw: ever in the top k, and the first ones below, in the clean order."""
    clean = top(all_scores[0], len(all_scores[0]))
    ever = {i for scores in all_scores for i in top(scores, k)} | set(clean[: k + RUNNERS_UP])
    return [i for i in clean if i in ever]


def _ranks(scores: Sequence[float]) -> list[int]:
    ranks = [0] * len(scores)
    for rank, feature in enumerate(top(scores, len(scores)), 1):
        ranks[feature] = rank
    return ranks


def _bars(scores: Sequence[float], drawn: list[int]) -> list[float]:
    """Lengths in hundredths of the explanation's own largest score."""
    largest = max(abs(s) for s in scores) or 1.0
    return [compact(round(100 * scores[i] / largest, 1)) for i in drawn]


def _name(audit: AuditResult, feature: int) -> str:
    names = audit.get("names")
    return f"feature {feature}" if names is None else str(names[feature])


def _named(audit: AuditResult, row: ExampleRow, feature: int) -> str:
    """A score's name, with what the row holds there where that is known."""
    values = row.get("values")
    name = _name(audit, feature)
    return name if values is None else f"{name}: {values[feature]}"


def _layout(audit: AuditResult) -> list[int]:
    """How to draw an input: its own shape if that is a picture, else the scores' if it fits."""
    shape, scores = list(audit["shape"]), list(audit["scores_shape"])
    if len(shape) >= 2:
        return shape
    return scores if math.prod(scores) == shape[0] else [1, *shape]


def _picture(audit: AuditResult, row: ExampleRow, x: Sequence[float]) -> str:
    return images.input_picture(x, _layout(audit), row["x"])
