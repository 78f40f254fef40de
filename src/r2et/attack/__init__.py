"""Attacks on explanations: the worst x' found in a region."""

from r2et.attack.base import Attack
from r2et.attack.feasible_search import FeasibleSearch
from r2et.attack.gradient_attacks import ERAttack, MSEAttack, SwapAttack, TopMassAttack
from r2et.attack.judge import AttackResult, Judge, Proposal
from r2et.attack.minimum_norm import MinimumNorm
from r2et.attack.pareto import ParetoAttack
from r2et.attack.problem import AttackProblem
from r2et.attack.random_search import RandomSearch
from r2et.attack.strong import StrongAttack
from r2et.attack.trust_region_attack import TrustRegionAttack, TrustRegionTrace
from r2et.attack.trust_region_search import Outcome

__all__ = [
    "Attack",
    "AttackProblem",
    "AttackResult",
    "ERAttack",
    "FeasibleSearch",
    "Judge",
    "MSEAttack",
    "MinimumNorm",
    "Outcome",
    "ParetoAttack",
    "Proposal",
    "RandomSearch",
    "StrongAttack",
    "SwapAttack",
    "TopMassAttack",
    "TrustRegionAttack",
    "TrustRegionTrace",
]
