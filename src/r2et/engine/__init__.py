"""Engines: run independent pieces of work in this process, in several, or on a Ray cluster."""

from r2et.engine.base import LATER, Engine, Lost
from r2et.engine.registry import ENGINES, engine

__all__ = ["ENGINES", "LATER", "Engine", "Lost", "engine"]
