"""What to add to a loss so that explanations hold still."""

from r2et.penalty.adversarial import AdversarialTraining
from r2et.penalty.base import Penalty
from r2et.penalty.certified import CertifiedRanking
from r2et.penalty.certified_ratio import CertifiedRatio
from r2et.penalty.curvature import SSR, EstimatedHessian, ExactHessian
from r2et.penalty.ranking import R2ET, BallR2ET
from r2et.penalty.reason_gaps import ReasonGaps

__all__ = [
    "R2ET",
    "SSR",
    "AdversarialTraining",
    "BallR2ET",
    "CertifiedRanking",
    "CertifiedRatio",
    "EstimatedHessian",
    "ExactHessian",
    "Penalty",
    "ReasonGaps",
]
