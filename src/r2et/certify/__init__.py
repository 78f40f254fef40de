"""Proofs: the radius within which the top k cannot change."""

from r2et.certify.base import Certificate, Certifier
from r2et.certify.interval import IntervalCertifier
from r2et.certify.margin import Margins, margins

__all__ = ["Certificate", "Certifier", "IntervalCertifier", "Margins", "margins"]
