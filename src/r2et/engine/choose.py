"""An engine by its name."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from r2et.engine.base import Engine
from r2et.engine.cluster import Cluster
from r2et.engine.here import Here
from r2et.engine.processes import Processes
from r2et.errors import InputError, require

ENGINES = ("here", "processes", "ray")


def engine(
    kind: str | Engine = "processes", workers: int | None = None, address: str | None = None
) -> Engine:
    """Where to run: "here", "processes" on this machine, "ray", or an Engine, given back as it is.

    workers: by default as many as there are cores. address: of a Ray cluster to join, "auto" or
    host:port; by default Ray is started on this machine and ended with the engine.
    """
    if isinstance(kind, Engine):
        return kind
    good = address is None or (kind == "ray" and isinstance(address, str))
    require(good, "engine", "address", "None for an engine that is not ray", address)
    if kind == "ray":
        return Cluster(workers, address)
    local: dict[str, Callable[[int | None], Engine]] = {"here": Here, "processes": Processes}
    if kind not in local:
        near = difflib.get_close_matches(str(kind), ENGINES, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        what = f"one of {', '.join(ENGINES)}, or an Engine"
        raise InputError(f"engine: kind must be {what}, got {kind!r}{hint}.")
    return local[kind](workers)
