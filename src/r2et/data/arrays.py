"""Arrays of a supplied file, used only once their shape, kind and values are right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2et.errors import InputError, require

# How far the two halves of a symmetric matrix may differ, against its largest entry.
SYMMETRIC = 1e-3


def numbers(where: str, name: str, array: NDArray[Any], shape: tuple[str, ...]) -> NDArray[Any]:
    """Real, finite numbers as float32; `shape` names the axes, none of which may be empty."""
    _check_axes(where, name, array, shape)
    real = array.dtype.kind in "buif"
    require(real, where, name, "an array of real numbers", f"one of {array.dtype}")
    with np.errstate(over="ignore"):
        converted = array.astype(np.float32)
    require(bool(np.isfinite(converted).all()), where, name, "finite", "NaN or infinity")
    return converted


def labels(where: str, name: str, array: NDArray[Any], count: int, of: str) -> NDArray[Any]:
    """`count` whole numbers as int64, one for each of `of`; 1.0 is whole, 0.5 is not."""
    _check_axes(where, name, array, (of,))
    require(len(array) == count, where, name, f"one number for each of {count} {of}", len(array))
    require(array.dtype.kind in "buif", where, name, "whole numbers", f"an array of {array.dtype}")
    inside = array.astype(np.float64)
    whole = np.isfinite(inside) & (inside == np.floor(inside)) & (np.abs(inside) < 2**53)
    if not whole.all():
        wrong = int(np.flatnonzero(~whole)[0])
        require(False, where, name, "whole numbers", f"{array[wrong]} in place {wrong}")
    return array.astype(np.int64)


def triangles(where: str, name: str, matrices: NDArray[Any]) -> NDArray[Any]:
    """(people, N, N) symmetric matrices -> (people, N (N - 1) / 2) upper triangles, row by row.

    The diagonal is not looked at: that of Fisher z values is infinite.
    """
    _check_axes(where, name, matrices, ("people", "nodes", "nodes"))
    nodes = matrices.shape[1]
    row, column = np.triu_indices(nodes, 1)
    require(len(row) > 0, where, name, "of two nodes or more", f"{nodes} node")
    upper = numbers(where, name, matrices[:, row, column], ("people", "edges"))
    lower = numbers(where, name, matrices[:, column, row], ("people", "edges"))
    apart = np.abs(upper - lower).max(1) > SYMMETRIC * np.abs(upper).max(1)
    if apart.any():
        expected = "symmetric (give triangles as fc_triu)"
        require(False, where, name, expected, f"another matrix in place {int(apart.argmax())}")
    return upper


def _check_axes(where: str, name: str, array: NDArray[Any], shape: tuple[str, ...]) -> None:
    expected = f"an array of shape ({', '.join(shape)}{',' * (len(shape) == 1)})"
    filled = array.ndim == len(shape) and array.size > 0
    sides = {
        axis: {n for a, n in zip(shape, array.shape, strict=False) if a == axis} for axis in shape
    }
    if not filled or any(len(lengths) > 1 for lengths in sides.values()):
        raise InputError(f"{where}: {name} must be {expected}, got {array.shape}.")
