"""Proofs: the radius within which the top k cannot change."""

from r2et.certify.base import Certificate, Certifier
from r2et.certify.hessian import HessianCertifier
from r2et.certify.interval import IntervalCertifier
from r2et.certify.risk import RankingRisk, ranking_risk_bound
from r2et.certify.training_bounds import Margins, margins

__all__ = [
    "Certificate",
    "Certifier",
    "HessianCertifier",
    "IntervalCertifier",
    "Margins",
    "RankingRisk",
    "margins",
    "ranking_risk_bound",
]
