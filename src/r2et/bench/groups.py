"""Which recipes are the papers' R2ET, which are the papers' other methods, and which are ours."""

from __future__ import annotations

R2ET_VARIANTS = ("r2et", "r2et-mm", "r2et-nh", "r2et-mm-nh")
OTHERS = ("wd", "sp", "est-h", "exact-h", "ssr", "at", "cl")
ADDITIONS = ("r2et-ball", "certified", "certified-individual")  # in no paper
BASELINE = "linear"  # a constant ranking: printed, and not in the race


def family(recipe: str) -> bool:
    """Whether a recipe is R2ET or one of our additions; a module:name of others is not."""
    return recipe in R2ET_VARIANTS or recipe in ADDITIONS
