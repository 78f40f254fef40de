"""Proofs: the radius within which the top k cannot change."""

from r2et.certify.margin import Margins, margins

__all__ = ["Margins", "margins"]
