"""Rankings of features: order, gaps, thickness, and how alike two explanations are."""

from r2et.rank.bounds import ThicknessBounds, first_order_thickness, thickness_bounds
from r2et.rank.order import ranking, top_k, top_k_mask
from r2et.rank.pairs import gap, gap_sum, pair_gap, pairs
from r2et.rank.similarity import (
    distinct_top_k,
    effective_top_k,
    largest_top_k_share,
    mse,
    pearson,
    precision_at_k,
)
from r2et.rank.thickness import pairwise_thickness, thickness

__all__ = [
    "ThicknessBounds",
    "distinct_top_k",
    "effective_top_k",
    "first_order_thickness",
    "gap",
    "gap_sum",
    "largest_top_k_share",
    "mse",
    "pair_gap",
    "pairs",
    "pairwise_thickness",
    "pearson",
    "precision_at_k",
    "ranking",
    "thickness",
    "thickness_bounds",
    "top_k",
    "top_k_mask",
]
