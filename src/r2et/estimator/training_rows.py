"""Rows to train a classifier on: dense, weighted, some of them set aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from r2et.errors import require

WHERE = "R2ETClassifier"
DENSE = 2**26  # numbers that a sparse X is written out to: half a gigabyte


def dense(rows: Any) -> NDArray[np.float64]:
    """Rows as an array; a sparse matrix is written out where that is not too much."""
    if not issparse(rows):  # in one layout: sums of another differ in their last bits
        return np.ascontiguousarray(rows)
    size = rows.shape[0] * rows.shape[1]
    expected = f"dense, or a sparse matrix of at most {DENSE} numbers with its zeros"
    got = f"{rows.shape[0]} rows of {rows.shape[1]} features"
    require(size <= DENSE, WHERE, "X", expected, got)
    return np.asarray(rows.toarray())


def row_weights(
    class_weight: Any,
    classes: NDArray[Any],
    codes: NDArray[np.int64],
    sample_weight: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """(rows,) what each row counts for, of its own and of its class; None: all alike."""
    given = class_weight
    if given is None:
        return sample_weight
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    name, expected = "class_weight", "None, 'balanced' or {label: weight}"
    if isinstance(given, str):
        require(given == "balanced", WHERE, name, expected, given)
        masses = np.bincount(codes, weights=weights)
        by_class = weights.sum() / (len(masses) * masses)
        return np.asarray(weights * by_class[codes])
    require(isinstance(given, Mapping), WHERE, name, expected, given)
    known = classes.tolist()
    strange = [label for label in given if label not in known]
    labels = ", ".join(map(str, known))
    require(not strange, WHERE, name, f"of the labels {labels}", strange[:1])
    by_class = np.array([given.get(label, 1.0) for label in known], dtype=np.float64)
    is_valid = bool((np.isfinite(by_class) & (by_class >= 0)).all() and by_class.any())
    require(is_valid, WHERE, name, "of finite weights from 0 on, not all 0", given)
    return np.asarray(weights * by_class[codes])


def held_out(
    codes: NDArray[np.int64], share: float, random: np.random.RandomState
) -> NDArray[np.bool_]:
    """(rows,), which are set aside; the same share of each class."""
    held = np.zeros(len(codes), dtype=bool)
    for label in range(codes.max() + 1):
        own = random.permutation(np.flatnonzero(codes == label))
        held[own[: int(share * len(own))]] = True
    return held
