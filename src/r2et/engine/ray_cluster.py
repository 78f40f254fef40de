"""Work on a Ray cluster: one started here, or one that is there."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, final

from r2et.engine.base import Engine, Later, Lost, Numbered
from r2et.engine.outcome import attempt, unpack
from r2et.errors import InputError, R2ETError, UnavailableError, first_line

# Before ray is imported: no statistics sent home, no advice printed, and an item whose worker runs
# out of memory is tried as often as one whose worker is killed.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_task_oom_retries": "1",
}
RETRIES = 1
AHEAD = 2  # items per worker that are under way


@final
class RayEngine(Engine):
    """Ray tasks of one core each; Ray itself moves them away from workers and machines that die.

    address: None starts Ray on this machine, on the loopback address alone, and ends it again.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        super().__init__(workers)
        self._asked = workers
        self.address = address
        self._ray: Any = None
        self._started = False

    def run(self, work: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """A bounded number of items is under way; the work is stored once and read by reference."""
        ray = self._connect()
        stored = _put(ray, "work", work)
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_attempt)
        under_way: dict[Any, int] = {}
        paths = [path for path in sys.path if path]
        numbered = Numbered(items)
        try:
            while True:
                while len(under_way) < self._most():
                    taken = numbered.take()
                    if taken is None or isinstance(taken, Later):
                        break
                    index, item = taken
                    reference = task.remote([stored], [_put(ray, "items", item)], paths)
                    under_way[reference] = index
                if not under_way:
                    return
                done, _ = ray.wait(list(under_way), num_returns=1)
                index = under_way.pop(done[0])
                yield index, _outcome(ray, done[0])
        finally:
            for reference in under_way:
                with suppress(Exception):  # the cluster may be gone
                    ray.cancel(reference, force=True)

    def count(self) -> int:
        self._connect()
        return self.workers

    def _most(self) -> int:
        """Items under way: some wait at the workers, unless fewer were asked for than fit."""
        return self.workers if self._asked is not None and self.address else AHEAD * self.workers

    def _connect(self) -> Any:
        """Ray, started or joined; one that the caller has already set up is used as it is."""
        if self._ray is not None:
            return self._ray
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                import ray
            except ImportError as error:
                expected = "installed for this engine (pip install 'r2et[cluster]')"
                raise UnavailableError(f"engine: ray must be {expected}, got {error}.") from error
            module: Any = ray  # with or without it, mypy sees the same
            if not module.is_initialized():
                self._initialise(module)
        self._ray = module
        if self._asked is None and (self.address is not None or not self._started):
            self.workers = max(1, int(module.cluster_resources().get("CPU", 1)))
        return module

    def _initialise(self, ray: Any) -> None:
        quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        try:
            if self.address is None:
                local = {"num_cpus": self.workers, "include_dashboard": False}
                # "local": never a cluster that RAY_ADDRESS or an earlier `ray start` names.
                ray.init(address="local", _node_ip_address="127.0.0.1", **local, **quiet)
            else:
                ray.init(address=self.address, **quiet)
        except Exception as error:  # ray raises its own, ConnectionError, ValueError and more
            where = "startable on this machine" if self.address is None else "that of a Ray cluster"
            reason = f"{self.address!r}: {first_line(error)}"
            raise R2ETError(f"engine: address must be {where}, got {reason}.") from error
        self._started = True

    def close(self) -> None:
        """Leave the cluster; end Ray if it was started here."""
        if self._ray is not None and self._started:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._ray.shutdown()
        self._ray, self._started = None, False


_KNOWN: dict[str, Any] = {}  # in a Ray worker: the last work it was given


def _attempt(work: list[Any], item: list[Any], paths: list[str]) -> bytes:
    """One item in a Ray worker. Lists, so that Ray hands over references: work is read once.

    paths: where the caller imports from, for a worker on the same machine.
    """
    import ray

    sys.path += [path for path in paths if path not in sys.path]
    name = work[0].hex()
    if name not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[name] = ray.get(work[0])
    return attempt(_KNOWN[name], ray.get(item[0]))


def _put(ray: Any, name: str, value: Any) -> Any:
    try:
        return ray.put(value)
    except Exception as error:
        reason = f"{type(value).__name__}: {first_line(error)}"
        expected = "picklable, to be sent to another process"
        raise InputError(f"engine: {name} must be {expected}, got {reason}.") from error


def _outcome(ray: Any, reference: Any) -> Any:
    try:
        packed = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise R2ETError(f"engine: work must be readable in a worker, got {error.cause}.") from error
    except ray.exceptions.RayError as error:
        return Lost(f"its worker ended with {type(error).__name__}, {RETRIES + 1} times")
    return unpack(packed)
