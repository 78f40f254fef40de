"""Attacks on explanations: the worst x' found in a region."""

from r2et.attack.base import Attack, AttackResult
from r2et.attack.gradient import ERAttack, MSEAttack, SwapAttack, TopMassAttack

__all__ = ["Attack", "AttackResult", "ERAttack", "MSEAttack", "SwapAttack", "TopMassAttack"]
