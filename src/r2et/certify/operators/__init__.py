"""Operators: one class each, with its bounds. Importing them here is what registers them."""

from r2et.certify.operators import activation, arithmetic, clip, linear, pooling

__all__ = ["activation", "arithmetic", "clip", "linear", "pooling"]
