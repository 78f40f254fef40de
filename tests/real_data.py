"""Real data sets, for tests that run only where somebody has laid them out."""

from functools import lru_cache

import pytest

from r2et.data import Data, load
from r2et.data.inventory import state


@lru_cache(maxsize=2)  # some take hundreds of megabytes
def _loaded(name: str) -> Data:
    return load(name)


def real(name: str) -> Data:
    """The data set; the test is skipped where its files are not on this machine."""
    if state(name) not in {"here", "built in"}:
        pytest.skip(f"{name} is not here: set R2ET_DATA to a folder that has it")
    return _loaded(name)
