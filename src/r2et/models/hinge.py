"""The network for tables that is trained against a proof: smooth hinges beside a linear model."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from r2et.checks import check_input
from r2et.errors import require
from r2et.models.network import Network, check_counts
from r2et.models.table import inner_edges

KNOTS = 4  # of a column, where the table has few columns of numbers
MOST_KNOTS = 256  # of all columns together
SHARPNESS = 4.0  # how many units of a softplus lie between two knots
NARROWEST = 0.02  # of a column's range: knots closer than this bend as if they were this far apart
SPREAD = 4.0  # how much larger than torch's the first weights of the other units are
QUIET = 0.1  # how loud the hidden units begin
LOUDER = 3.0  # how much hinges are above the units that begin at random
LEAST_SCALE = 0.02  # a hinge that varies less counts as one that varies so much
STEP = 0.6  # a weight is this many times the parameter behind it
ROWS = 5000  # that the scales of hinges are taken from


@final
class HingeMLP(Network):
    """One layer of smooth units beside a linear function of x, added to the logits.

    One matrix sees x. Its first rows go through softplus, are divided by a scale, and are weighed;
    its last rows are the linear function:

        z = W x + b,  logits = V (softplus(z_1..h) / scale) + z_h+1..h+classes.

    `fitted` lets some units begin as hinges of one column each, softplus(s (x_j - knot)), with few
    knots a column, and a third of its standard deviation for a scale; the other units, `width` of
    them, begin at random, with scale 1. All of W, b and V is trained.
    Few and smooth bends are what can be proved: over a ball a gradient moves by no more than the
    ball is wide for the softplus, where a ReLU's kink lets it jump; and bounds of one layer that
    alone sees x are exact but for the slopes' intervals (r2et.certify.training_bounds).

    x: (B, features), as scaled to 0..1 in training. Returns (B, classes) logits. Weights are 0.6 of
    the parameters behind them: with Adam's usual step of 0.01 they move by 0.006.

    Args:
        features: of a row.
        width: how many units begin at random.
        hinges: how many begin as a hinge of one column.
        classes: how many logits.
    """

    scale: Tensor

    def __init__(
        self, features: int, width: int = 16, hinges: int = 0, *, classes: int = 2
    ) -> None:
        super().__init__()
        check_counts("HingeMLP", features=features, width=width, classes=classes)
        is_valid = type(hinges) is int and 0 <= hinges <= 2**20
        require(is_valid, "HingeMLP", "hinges", "a whole number from 0 on", hinges)
        self.settings: dict[str, Any] = {
            "features": features,
            "width": width,
            "hinges": hinges,
            "classes": classes,
        }
        units = width + hinges
        self.first = nn.Linear(features, units + classes)
        self.activation = nn.Softplus()
        self.last = nn.Linear(units, classes)
        self.register_buffer("scale", torch.ones(units))
        with torch.no_grad():
            self.first.weight[:width] *= SPREAD
            # Not 0: bounds are by the length of a row, which has no slope at 0.
            self.first.weight[units:] *= 1e-4
            self.first.bias[units:] = 0
            self.last.weight *= QUIET
            self.last.bias.zero_()
            for parameter in self.parameters():
                parameter.div_(STEP)

    @classmethod
    def fitted(
        cls, x: Tensor, width: int = 16, *, classes: int = 2, knots: int | None = None
    ) -> HingeMLP:
        """One whose knots divide the training rows x (B, features) into equal parts.

        knots: of a column, by default 4, fewer where the columns are many. Columns of two values
        have none. A value of more than 30 % of the rows does not count for where the knots are.
        """
        where = "HingeMLP.fitted"
        check_input(where, x)
        require(x.ndim == 2, where, "x", "rows of shape (B, features)", x)
        is_count = knots is None or (type(knots) is int and knots >= 0)
        require(is_count, where, "knots", "None or a whole number from 0 on", knots)
        values = x.detach().cpu().double().numpy()
        columns = [np.unique(column, return_counts=True) for column in values.T]
        several = sum(len(distinct) > 2 for distinct, _ in columns)
        most = min(KNOTS, MOST_KNOTS // max(several, 1)) if knots is None else knots
        hinges = []
        for feature, (distinct, counts) in enumerate(columns):
            edges = inner_edges(distinct, counts, most + 1)
            ends = [float(distinct[0]), *edges, float(distinct[-1])]
            for before, knot, after in zip(ends, edges, ends[2:], strict=False):
                hinges.append((feature, knot, max((after - before) / 2, NARROWEST)))
        network = cls(x.shape[1], width, len(hinges), classes=classes)
        with torch.no_grad():
            for unit, (feature, knot, apart) in enumerate(hinges, width):
                network.first.weight[unit] = 0
                network.first.weight[unit, feature] = SHARPNESS / apart / STEP
                network.first.bias[unit] = -SHARPNESS * knot / apart / STEP
            if hinges:
                out = network.units(x[:ROWS].detach().to(network.scale))[:, width:]
                network.scale[width:] = (out.std(0, correction=0) / LOUDER).clamp(min=LEAST_SCALE)
        return network

    def start_at(self, weight: Tensor, bias: Tensor) -> None:
        """Begin near a linear model: logits x @ weight.T + bias, weight (classes, features)."""
        features, classes = self.settings["features"], self.settings["classes"]
        for given, shape in ((weight, (classes, features)), (bias, (classes,))):
            is_valid = given.shape == shape and bool(given.isfinite().all())
            expected = f"finite numbers of shape {shape}"
            require(is_valid, "HingeMLP.start_at", "weight and bias", expected, given)
        with torch.no_grad():
            # What all classes share changes no probability; without it no row is left at 0.
            self.first.weight[-classes:] += (weight - weight.mean(0)) / STEP
            self.first.bias[-classes:] = (bias - bias.mean()) / STEP

    def forget(self, features: Tensor) -> None:
        """Make features (n,) bool count for nothing, whatever they are."""
        with torch.no_grad():
            self.first.weight[:, features] = 0

    def units(self, x: Tensor) -> Tensor:
        """(B, width + hinges): the hidden units, before they are divided by their scales."""
        return self._split(x)[0]

    def forward(self, x: Tensor) -> Tensor:
        features = self.settings["features"]
        require(x.shape[-1:] == (features,), "HingeMLP", "x", f"rows of shape (B, {features})", x)
        hidden, straight = self._split(x)
        weight = STEP * self.last.weight / self.scale
        return F.linear(hidden, weight, STEP * self.last.bias) + straight

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = F.linear(x, STEP * self.first.weight, STEP * self.first.bias)
        units = len(self.scale)
        hidden: Tensor = self.activation(z[:, :units])
        return hidden, z[:, units:]
