"""Which features of an encoded table are one column: what OneHotEncoder made of its categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2et.errors import require

Groups = tuple[tuple[int, ...], ...]
MARK = "_"  # between column and category in scikit-learn's names
STEP = "__"  # between transformer and feature
EXPECTED = "neighbouring features of which exactly one is 1 in every row"


def groups_by_name(names: Sequence[str], rows: NDArray[np.float64]) -> Groups:
    """Neighbours that are called alike up to a "_", exactly one of which is 1 in every row.

    Categories that no row holds are of the column that they are called like.
    """
    binary = ((rows == 0) | (rows == 1)).all(0)
    groups: list[tuple[int, ...]] = []
    start = 0
    while start < len(names):
        stop = _end(names, rows, binary, start)
        if stop - start > 1:
            groups.append(tuple(range(start, stop)))
        start = stop
    return tuple(groups)


def _end(
    names: Sequence[str], rows: NDArray[np.float64], binary: NDArray[np.bool_], start: int
) -> int:
    """Where the column that begins at this feature ends; start + 1 where it is of one feature."""
    total, place = np.zeros(len(rows)), start
    while place < len(names) and binary[place] and stem(names[start : place + 1]):
        total = total + rows[:, place]
        place += 1
        if (total > 1).any():
            return start + 1
        if place > start + 1 and (total == 1).all():
            title = stem(names[start:place])
            while (
                place < len(names) and names[place].startswith(title) and not rows[:, place].any()
            ):
                place += 1
            return place
    return start + 1


def stem(names: Sequence[str]) -> str:
    """What the names begin with, up to a "_" and with it; "" where they differ from the start."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    whole = "".join(letter for letter, _ in same)
    # The column's own name is no category: "job_" needs something after it in every name.
    while whole and not (whole.endswith(MARK) and all(len(name) > len(whole) for name in names)):
        whole = whole[:-1]
    return "" if whole.endswith(STEP) or whole == MARK else whole


def given_groups(
    where: str, groups: Any, names: Sequence[str], rows: NDArray[np.float64]
) -> Groups:
    """The groups that somebody gave, by the names or places of their features."""
    expected = "None, or a list of lists of features, by name or place"
    listed = isinstance(groups, Iterable) and not isinstance(groups, str)
    require(listed, where, "groups", expected, groups)
    places = {name: place for place, name in enumerate(names)}
    out: list[tuple[int, ...]] = []
    for group in groups:
        listed = isinstance(group, Iterable) and not isinstance(group, str)
        require(listed, where, "groups", expected, group)
        own = []
        for feature in group:
            whole = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
            known = 0 <= feature < len(names) if whole else feature in places
            shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            require(known, where, "groups", f"of features ({shown}) or their places", feature)
            own.append(int(feature) if whole else places[feature])
        own.sort()
        together = len(own) > 1 and own == list(range(own[0], own[0] + len(own)))
        require(together, where, "groups", EXPECTED, list(group))
        part = rows[:, own]
        wrong = ~(((part == 0) | (part == 1)).all(1) & (part.sum(1) == 1))
        got = f"{[names[i] for i in own]} with {part[int(np.argmax(wrong))].tolist()}"
        require(not wrong.any(), where, "groups", EXPECTED, f"{got} in row {int(np.argmax(wrong))}")
        out.append(tuple(own))
    used = [i for group in out for i in group]
    twice = sorted({names[i] for i in used if used.count(i) > 1})
    require(not twice, where, "groups", "without a feature in two of them", twice)
    return tuple(sorted(out))


def column_titles(names: Sequence[str], groups: Groups) -> tuple[str, ...]:
    """What the columns are called, in their order: "onehot__job_clerk", "onehot__job_cook" -> job.

    A ColumnTransformer's own prefix goes where all features have one and names stay different.
    """
    later = {i for group in groups for i in group[1:]}
    first = {group[0]: group for group in groups}
    titles = []
    for place, name in enumerate(names):
        if place in first:
            own = [names[i] for i in first[place]]
            titles.append(stem(own)[: -len(MARK)] or " / ".join(own[:3]))
        elif place not in later:
            titles.append(name)
    short = [title.partition(STEP)[2] for title in titles]
    return tuple(short if all(short) and len(set(short)) == len(short) else titles)
