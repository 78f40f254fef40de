"""Operators: one class each, with its bounds. Importing them here is what registers them."""

from r2et.certify.operators import (
    activation,
    arithmetic,
    clip,
    elementary,
    embedding,
    gates,
    joining,
    layer_norm,
    linear,
    pooling,
    products,
    softmax,
)

__all__ = [
    "activation",
    "arithmetic",
    "clip",
    "elementary",
    "embedding",
    "gates",
    "joining",
    "layer_norm",
    "linear",
    "pooling",
    "products",
    "softmax",
]
