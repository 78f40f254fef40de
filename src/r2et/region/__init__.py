"""Where a perturbed input may lie."""

from r2et.region.balls import L2, Linf
from r2et.region.base import Region

__all__ = ["L2", "Linf", "Region"]
