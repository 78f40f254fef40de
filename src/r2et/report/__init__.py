"""Audits as one HTML page for the owner of a model, and whoever has to believe them."""

from r2et.report.page import page
from r2et.results import read_audit

__all__ = ["page", "read_audit"]
