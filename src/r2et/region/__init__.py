"""Where a perturbed input may lie."""

from r2et.region.ball import Ball, as_ball
from r2et.region.balls import L2, Linf
from r2et.region.base import Region
from r2et.region.feasible import Feasible

__all__ = ["L2", "Ball", "Feasible", "Linf", "Region", "as_ball"]
