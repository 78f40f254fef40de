"""The named data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from r2et.data.adult import load_adult
from r2et.data.dataset import Data
from r2et.errors import require


@dataclass(frozen=True)
class Named:
    """A data set that `load` knows: one line about it, and what loads it."""

    summary: str
    loader: Callable[[], Data]


DATASETS: dict[str, Named] = {
    "adult": Named("income over 50K from 28 features of a census row; built in", load_adult),
}


def load(name: str) -> Data:
    """The data set of this name, one of DATASETS."""
    near = get_close_matches(str(name).lower(), DATASETS, n=1)
    known = f"one of {', '.join(sorted(DATASETS))}"
    hint = f"{known} (did you mean {near[0]!r}?)" if near else known
    require(isinstance(name, str) and name in DATASETS, "load", "name", hint, name)
    return DATASETS[name].loader()
