"""The network for tables: an MLP that sees each column through a piecewise-linear encoding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from r2et.checks import check_input
from r2et.errors import require
from r2et.models.network import Network, check_counts, check_widths

BINS = 24  # of a column, where the table has few columns of numbers
MOST_BINS = 1536  # of all columns together
COMMON = 0.3  # a value of more rows than this share gets no say in where the bins are
NARROW = 1e-4  # the least width of a bin: what float32 makes of narrower ones is noise
STRAIGHT = -1.0  # a unit that begins here is linear in all of 0..1, and some way beyond
STEP = 0.05  # a weight is this many times the parameter behind it


@final
class TableMLP(Network):
    """A fully connected network that sees each column of numbers through its bins.

    A column with bins b_0 < ... < b_T becomes T numbers, (x - b_t) / (b_t+1 - b_t) cut to 0..1
    (the first and the last are not cut on the outside), and x itself beside them; a column without
    bins is x alone. That is written as ReLUs of one column each, relu(x - b_t), and a fixed matrix,
    so that what proves an MLP proves it. x stays the input: explanations have a score per feature.
    A linear function of x is added to the logits, or one of these numbers, which is a sum of
    functions of one column each; `start_at` makes the network begin as one.

    x: (B, features), as scaled to 0..1 in training. Returns (B, classes) logits. Weights are 0.05
    of the parameters behind them: with Adam's usual step of 0.01 they move by 0.0005.

    Args:
        features: of a row.
        bins: how many each feature has, as a list; 0 or 1 for one that is seen as it is.
        widths: of the hidden layers.
        classes: how many logits.
        additive: add a linear function of the encoding to the logits, not one of x.
    """

    column: Tensor
    begin: Tensor
    encoding: Tensor
    mean: Tensor

    def __init__(
        self,
        features: int,
        bins: Sequence[int],
        widths: Sequence[int] = (256,),
        *,
        classes: int = 2,
        additive: bool = False,
    ) -> None:
        super().__init__()
        check_counts("TableMLP", features=features, classes=classes)
        check_widths("TableMLP", widths)
        require(len(widths) > 0, "TableMLP", "widths", "one or more (or take MLP)", widths)
        require(type(additive) is bool, "TableMLP", "additive", "True or False", additive)
        _check_bins(features, bins)
        counts = [max(1, count) for count in bins]
        self.settings: dict[str, Any] = {
            "features": features,
            "bins": counts,
            "widths": list(widths),
            "classes": classes,
            "additive": additive,
        }
        units, parts = sum(counts), sum(count + (count > 1) for count in counts)
        self.register_buffer("column", torch.zeros(units, features))
        self.register_buffer("begin", torch.zeros(units))
        self.register_buffer("encoding", torch.zeros(parts, units))
        self.register_buffer("mean", torch.zeros(parts))
        sizes = [parts, *widths, classes]
        self.hinge = nn.ReLU()
        self.linears = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.activations = nn.ModuleList(nn.ReLU() for _ in widths)
        self.straight = nn.Linear(parts if additive else features, classes)
        with torch.no_grad():
            for parameter in self.linears.parameters():
                parameter.div_(STEP)
            for parameter in self.straight.parameters():
                parameter.zero_()
        self.set_edges([list(np.linspace(0, 1, count + 1)) for count in counts])

    @classmethod
    def fitted(
        cls,
        x: Tensor,
        widths: Sequence[int] = (256,),
        *,
        classes: int = 2,
        bins: int | None = None,
        additive: bool = False,
    ) -> TableMLP:
        """One whose bins hold equally many of the training rows x (B, features).

        bins: of a column, by default 24, fewer where the columns are many. Two-valued columns have
        none. A value that more than 30 % of the rows have (the zero of "capital gain") does not
        count for the edges; these lie between values, not on them. additive: as in the class; there
        is then an edge between any two values of a column of few, a common one or not.
        """
        check_input("TableMLP.fitted", x)
        require(x.ndim == 2, "TableMLP.fitted", "x", "rows of shape (B, features)", x)
        is_count = bins is None or (type(bins) is int and bins > 0)
        require(is_count, "TableMLP.fitted", "bins", "None or a positive whole number", bins)
        values = x.detach().cpu().double().numpy()
        columns = [np.unique(column, return_counts=True) for column in values.T]
        several = sum(len(distinct) > 2 for distinct, _ in columns)
        most = min(BINS, MOST_BINS // max(several, 1)) if bins is None else bins
        edges = [_edges(distinct, counts, most, apart=additive) for distinct, counts in columns]
        sizes = [len(e) - 1 for e in edges]
        network = cls(x.shape[1], sizes, widths, classes=classes, additive=additive)
        network.set_edges(edges, x)
        return network

    def set_edges(self, edges: Sequence[Sequence[float]], x: Tensor | None = None) -> None:
        """Place the bins: of each feature its count + 1 edges, ascending. x: rows to centre on."""
        column, begin = torch.zeros_like(self.column), torch.zeros_like(self.begin)
        encoding = torch.zeros_like(self.encoding)
        if column.is_meta:  # a description without weights: what is stored comes later
            return
        unit = part = 0
        for feature, ends in enumerate(edges):
            count = self.settings["bins"][feature]
            expected = f"{count + 1} ascending numbers for feature {feature}"
            rising = len(ends) == count + 1 and all(a < b for a, b in pairwise(ends))
            require(rising, "TableMLP", "edges", expected, ends)
            own = slice(unit, unit + count)
            column[own, feature] = 1.0
            begin[own] = torch.tensor([STRAIGHT, *ends[1:-1]])
            if count > 1:
                slope = torch.tensor([1 / (b - a) for a, b in pairwise(ends)])
                # A bin's number rises from where its unit begins to where the next one does.
                encoding[part : part + count, own] = slope.diag() - (slope[:-1].diag(1))
                part += count
            encoding[part, unit] = 1.0
            unit, part = unit + count, part + 1
        with torch.no_grad():
            self.column.copy_(column)
            self.begin.copy_(begin)
            self.encoding.copy_(encoding)
            if x is not None:
                self.mean.copy_((self._units(x.to(column)) @ encoding.T).mean(0))

    @property
    def alone(self) -> tuple[Tensor, float]:
        """Which part of the encoding is each feature itself, (features,), and how much is added."""
        counts = torch.tensor([count + (count > 1) for count in self.settings["bins"]])
        return counts.cumsum(0) - 1, -STRAIGHT

    def start_at(self, weight: Tensor, bias: Tensor) -> None:
        """Begin near a linear model: logits x @ weight.T + bias, weight (classes, features).

        Of an additive network: encoded(x) @ weight.T + bias, weight (classes, parts).
        The last hidden layer is heard at a tenth, so that a training starts there and goes on.
        """
        for given, own in ((weight, self.straight.weight), (bias, self.straight.bias)):
            is_valid = given.shape == own.shape and bool(given.isfinite().all())
            expected = f"finite numbers of shape {tuple(own.shape)}"
            require(is_valid, "TableMLP.start_at", "weight and bias", expected, given)
        with torch.no_grad():
            self.straight.weight.copy_(weight / STEP)
            self.straight.bias.copy_(bias / STEP)
            for parameter in self.linears[-1].parameters():
                parameter.mul_(0.1)

    def forget(self, features: Tensor) -> None:
        """Make features (n,) bool count for nothing, whatever they are."""
        with torch.no_grad():
            own = features
            if self.settings["additive"]:
                own = (self.encoding.abs() @ self.column)[:, features].any(1)
            self.straight.weight[:, own] = 0
            self.column[:, features] = 0

    def forward(self, x: Tensor) -> Tensor:
        features = self.settings["features"]
        require(x.shape[-1:] == (features,), "TableMLP", "x", f"rows of shape (B, {features})", x)
        first, *others = (_weights(linear) for linear in self.linears)
        weight, bias = first
        units = self._units(x)
        out = F.linear(units, weight @ self.encoding, bias - weight @ self.mean)
        for activation, later in zip(self.activations, others, strict=True):
            out = F.linear(activation(out), *later)
        weight, bias = _weights(self.straight)
        if self.settings["additive"]:
            return out + F.linear(units, weight @ self.encoding, bias)
        return out + F.linear(x, weight, bias)

    @torch.no_grad()
    def encoded(self, x: Tensor) -> Tensor:
        """(B, parts): the place of each value in its column's bins, and the value itself."""
        return self._units(x.to(self.begin)) @ self.encoding.T

    def _units(self, x: Tensor) -> Tensor:
        """(B, units): how far each value is beyond where a unit begins."""
        out: Tensor = self.hinge(F.linear(x, self.column, -self.begin))
        return out


def _weights(linear: nn.Module) -> tuple[Tensor, Tensor]:
    """What a layer multiplies by and adds: its parameters, in the units Adam's step is small in."""
    assert isinstance(linear, nn.Linear)
    return STEP * linear.weight, STEP * linear.bias


def _check_bins(features: int, bins: Any) -> None:
    listed = isinstance(bins, Sequence) and not isinstance(bins, str)
    whole = listed and all(type(count) is int and 0 <= count <= 2**20 for count in bins)
    expected = f"a list of {features} whole numbers, one per feature"
    require(whole and len(bins) == features, "TableMLP", "bins", expected, bins)


def _edges(
    distinct: NDArray[np.float64], counts: NDArray[np.int64], most: int, *, apart: bool = False
) -> list[float]:
    """Edges of a column's bins, from its distinct values and how many rows have each.

    apart: between any two values, where these are no more than the bins.
    """
    low, high = float(distinct[0]), float(distinct[-1])
    inside = inner_edges(distinct, counts, most)
    if apart and 2 < len(distinct) <= most:
        inside = _wide_enough((distinct[:-1] + distinct[1:]) / 2, low, high)
    return [low, *inside, high] if inside else [low, max(high, low + 1.0)]


def inner_edges(distinct: NDArray[np.float64], counts: NDArray[np.int64], most: int) -> list[float]:
    """The borders between at most `most` bins that hold equally many rows; none of two values."""
    if len(distinct) <= 2 or most < 2:
        return []
    if counts.max() > COMMON * counts.sum():
        rare = np.delete(np.arange(len(distinct)), counts.argmax())
    else:
        rare = np.arange(len(distinct))
    reached = np.cumsum(counts[rare]) / counts[rare].sum()
    # Of the value at each quantile, the border to the next distinct value above.
    places = rare[np.searchsorted(reached, np.arange(1, most) / most - 1e-12)]
    places = np.unique(places[places < len(distinct) - 1])
    borders = (distinct[places] + distinct[places + 1]) / 2
    return _wide_enough(borders, float(distinct[0]), float(distinct[-1]))


def _wide_enough(borders: NDArray[np.float64], low: float, high: float) -> list[float]:
    """Those of ascending borders that leave no bin narrower than NARROW."""
    kept: list[float] = []
    for border in map(float, borders):
        if border - (kept[-1] if kept else low) >= NARROW and high - border >= NARROW:
            kept.append(border)
    return kept
