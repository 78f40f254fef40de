"""Networks, and how their outputs are read."""

from r2et.models.mlp import MLP
from r2et.models.output import predict, undisturbed

__all__ = ["MLP", "predict", "undisturbed"]
