"""A row -> its few principal reasons, one per column, in words, each with its proof."""

from r2et.reason.codes import ReasonCode
from r2et.reason.difference import ReasonsDifference, difference
from r2et.reason.principal_reasons import reasons
from r2et.reason.result import PersonReasons, Reason, Reasons
from r2et.reason.retraining import Retraining, agreement, retrained

__all__ = [
    "PersonReasons",
    "Reason",
    "ReasonCode",
    "Reasons",
    "ReasonsDifference",
    "Retraining",
    "agreement",
    "difference",
    "reasons",
    "retrained",
]
