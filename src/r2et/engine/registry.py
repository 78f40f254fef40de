"""The engines there are, and one of them by its name."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from r2et.engine.base import Engine
from r2et.engine.processes import ProcessEngine
from r2et.engine.ray_cluster import RayEngine
from r2et.engine.serial import SerialEngine
from r2et.errors import InputError, require

ENGINES: dict[str, Callable[[int | None], Engine]] = {
    "serial": SerialEngine,
    "processes": ProcessEngine,
    "ray": RayEngine,
}
ALIASES = {"here": "serial"}  # its name up to version 0.1


def engine(
    kind: str | Engine = "processes", workers: int | None = None, address: str | None = None
) -> Engine:
    """Where to run: "serial", "processes" on this machine, "ray", or an Engine, given back as is.

    workers: by default as many as there are cores. address: of a Ray cluster to join, "auto" or
    host:port; by default Ray is started on this machine and ended with the engine.
    """
    if isinstance(kind, Engine):
        return kind
    alone = address is None or (kind == "ray" and isinstance(address, str))
    require(alone, "engine", "address", "None for an engine that is not ray", address)
    if address is not None:
        return RayEngine(workers, address)
    name = ALIASES.get(kind, kind) if isinstance(kind, str) else ""
    if name not in ENGINES:
        near = difflib.get_close_matches(str(kind), ENGINES, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        expected = f"one of {', '.join(ENGINES)}, or an Engine"
        raise InputError(f"engine: kind must be {expected}, got {kind!r}{hint}.")
    return ENGINES[name](workers)
