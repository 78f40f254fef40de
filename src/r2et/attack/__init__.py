"""Attacks on explanations: the worst x' found in a region."""

from r2et.attack.base import Attack, AttackResult
from r2et.attack.feasible import FeasibleSearch
from r2et.attack.gradient import ERAttack, MSEAttack, SwapAttack, TopMassAttack
from r2et.attack.minimum_norm import MinimumNorm
from r2et.attack.random_search import RandomSearch
from r2et.attack.strong import StrongAttack

__all__ = [
    "Attack",
    "AttackResult",
    "ERAttack",
    "FeasibleSearch",
    "MSEAttack",
    "MinimumNorm",
    "RandomSearch",
    "StrongAttack",
    "SwapAttack",
    "TopMassAttack",
]
