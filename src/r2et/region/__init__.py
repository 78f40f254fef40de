"""Where a perturbed input may lie."""

from r2et.region.base import Region
from r2et.region.feasible import Feasible
from r2et.region.norm_ball import NormBall, as_ball
from r2et.region.norms import L2, Linf

__all__ = ["L2", "Feasible", "Linf", "NormBall", "Region", "as_ball"]
