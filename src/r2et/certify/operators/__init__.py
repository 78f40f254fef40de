"""Operators: one class each, with its bounds. Importing them here is what registers them."""

from r2et.certify.operators import activation, arithmetic, linear, pooling

__all__ = ["activation", "arithmetic", "linear", "pooling"]
