"""Work for engines, in a module that other processes can import.

`python engine_work.py KIND FOLDER` runs work that never ends, for tests to interrupt and kill.
"""

import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from r2et.engine import engine
from r2et.errors import require


def square(item: int) -> int:
    return item * item


@dataclass(frozen=True)
class Mean:
    """Holds a tensor, as a model would."""

    weights: torch.Tensor

    def __call__(self, item: torch.Tensor) -> torch.Tensor:
        return self.weights @ item


@dataclass(frozen=True)
class Counted:
    """Leaves a file each time it is unpacked in a worker."""

    folder: str

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        (Path(self.folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()

    def __call__(self, item: int) -> int:  # noqa: ARG002
        return os.getpid()


def threads(item: int) -> tuple[int, str]:  # noqa: ARG001
    return torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]


@dataclass(frozen=True)
class Dies:
    """Its worker is killed over item 3: each time, or until the file is there."""

    once: str | None = None

    def __call__(self, item: int) -> int:
        if item == 3 and (self.once is None or not Path(self.once).exists()):
            if self.once is not None:
                Path(self.once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item


class AwkwardError(Exception):
    """Cannot be sent: its constructor wants two arguments."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def refuses(item: int) -> int:
    require(item < 2, "refuses", "item", "below 2", item)
    return item


def awkward(item: int) -> int:
    raise AwkwardError(item, item)


def unpicklable_result(item: int) -> object:
    return lambda: item


@dataclass(frozen=True)
class Sleeps:
    """Says which process it is in, and stays."""

    folder: str

    def __call__(self, item: int) -> int:
        (Path(self.folder) / str(os.getpid())).touch()
        time.sleep(300)
        return item


def hungry(item):
    """Asks for a terabyte where there is little: as a worker of a small machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (64 * 2**30, hard))
    try:
        return len(bytearray(2**40)) + item
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


if __name__ == "__main__":
    kind, folder = sys.argv[1:]
    with engine(kind, workers=2) as run:
        list(run(Sleeps(folder), range(4)))
