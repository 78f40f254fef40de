"""The network, the explanation and what is kept of a training, where nobody says otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import accumulate
from typing import Any, Literal

import torch
from torch import Tensor, nn

from r2et.data import Data
from r2et.errors import require
from r2et.explain import Explainer, Gradient, GradientTimesInput
from r2et.models import MLP, HingeMLP, ResNet18, SiameseCNN, SiameseGCN, TableMLP
from r2et.penalty import CertifiedRanking, Penalty
from r2et.region import Feasible, Linf, Region
from r2et.region.table_layout import TableSchema
from r2et.train.additive_start import additive_start
from r2et.train.baselines import LEAST, START_C, Logistic, logistic_regression, some_rows
from r2et.train.loop import Keep
from r2et.train.recipe import Recipe

WIDTH = 16  # of a ResNet18 that a computer without a GPU can train
SMALL = 32  # pictures of more pixels across are made smaller first
FITTED = 100_000  # rows that bins and the linear start are made from
USUAL_STEPS, HINGE_STEPS, TABLE_STEPS = 3000, 1500, 1000  # batches of a training
ROWS_PER_EPOCH = 32  # these see their rows at most once for every so many of them
COOL_DOWN, TABLE_COOL_DOWN = 0.7, 0.9  # share of a training in which the learning rate falls
UNLIKELY = -10.0  # log-odds, at the start, of a class that no training row has


def default_network(data: Data, widths: Sequence[int] | None = None, seed: int = 0) -> nn.Module:
    """The papers' network for data of this shape, its weights drawn from the seed.

    widths: of the hidden layers, for tables (by default 32) and graphs (256, 128); the one width of
    a picture's ResNet18 (16, where the papers have 64).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _network(tuple(data.train.x.shape[1:]), _classes(data), widths)


def table_network(
    data: Data,
    recipe: Recipe,
    widths: Sequence[int] | None = None,
    seed: int = 0,
    weights: Tensor | None = None,
) -> nn.Module:
    """The network that a table is trained with where none is given: a TableMLP.

    Its bins and the logistic regression it starts at are of training rows, with their weights
    (rows,). Kinks in every column leave little to prove: recipes that train against the proof get a
    HingeMLP, or, where widths are given, the papers' MLP; so do those that smooth a network, and
    those of reasons. Without a penalty a TableMLP may start at a sparse sum of functions of one
    column each, at a regression on the columns' ranks, or halfway (r2et.train.additive_start).
    """
    widths = recipe.hidden if widths is None else widths
    penalty = recipe.penalty
    proved = isinstance(penalty, CertifiedRanking)
    of_reasons = penalty is not None and penalty.of_reasons
    plain = recipe.linear or recipe.rho is not None or of_reasons
    hinges = proved and widths is None and not plain
    plain = plain or (proved and not hinges)
    if plain or (widths is not None and len(widths) == 0):
        return default_network(data, () if recipe.linear else widths, seed)
    x = data.train.x[some_rows(len(data.train.y), FITTED)]
    start = linear_start(data, _classes(data), weights)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if hinges:
            network: HingeMLP | TableMLP = HingeMLP.fitted(x, classes=_classes(data))
        else:
            wide = (256,) if widths is None else widths
            network = TableMLP.fitted(x, wide, classes=_classes(data))
            if penalty is None:
                torch.manual_seed(seed)
                binned = TableMLP.fitted(x, wide, classes=_classes(data), additive=True)
                sparse = additive_start(binned, data, start, weights)
                network, start = (network, start) if sparse is None else (binned, sparse)
    network.start_at(start.weight.float(), start.bias.float())
    return network


def linear_start(data: Data, classes: int, weights: Tensor | None = None) -> Logistic:
    """The logistic regression of training rows that a network begins at.

    A class that they lack is unlikely, by e to the -10 beside the others on average, and not
    impossible: a network would not come back from there.
    weights: (rows,) what training rows count for.
    """
    rows = some_rows(len(data.train.y), FITTED)
    x, counted = data.train.x[rows], None if weights is None else weights[rows]
    start = logistic_regression(x, data.train.y[rows], counted, classes, c=START_C)
    lacking = start.bias == LEAST
    if not bool(lacking.any()):
        return start
    usual = start.logits(x)[:, ~lacking].logsumexp(1).mean()
    return Logistic(start.weight, torch.where(lacking, usual + UNLIKELY, start.bias))


def silence(network: nn.Module, features: Tensor) -> None:
    """Make features (n,) bool of a network for tables count for nothing, whatever they are.

    Of those that are 0 in all training rows: a loss does not move their weights; left as drawn they
    would be part of every explanation, and a penalty may move them.
    """
    if isinstance(network, HingeMLP | TableMLP):
        network.forget(features)
        return
    first = next(module for module in network.modules() if isinstance(module, nn.Linear))
    with torch.no_grad():
        first.weight[:, features] = 0


def scheduled(recipe: Recipe, network: nn.Module) -> Recipe:
    """The recipe with the learning rate of its network, where it has none of its own.

    That of a HingeMLP falls to 0 over the last 70 % of a training: loss and bounds pull against
    each other, and which of them wins in the last batches would be chance. That of a TableMLP
    without a penalty falls nearly from the start, as its training is short.
    """
    if recipe.cool_down > 0:
        return recipe
    if isinstance(network, HingeMLP):
        return replace(recipe, cool_down=COOL_DOWN)
    if isinstance(network, TableMLP) and recipe.penalty is None:
        return replace(recipe, cool_down=TABLE_COOL_DOWN)
    return recipe


def usual_epochs(network: nn.Module, rows: int, batch: int, *, plain: bool = False) -> int:
    """How long a training of so many rows is where nobody says otherwise.

    As many epochs as make 3000 batches, within 10..200. Networks that begin at a logistic
    regression are nearly trained: a HingeMLP has 1500 batches, a TableMLP 1000 where the loss is
    all there is (plain), and of few rows fewer, an epoch for every 32, since they soon know them by
    heart.
    """
    steps, most = USUAL_STEPS, 200
    if isinstance(network, HingeMLP):
        steps, most = HINGE_STEPS, rows // ROWS_PER_EPOCH
    elif isinstance(network, TableMLP) and plain:
        steps, most = TABLE_STEPS, rows // ROWS_PER_EPOCH
    return min(max(math.ceil(steps / math.ceil(rows / batch)), 10), max(most, 10), 200)


def default_keep(data: Data, *, retrain: bool = False) -> Keep:
    """Which epoch's weights a training returns: of a table the best by its validation rows."""
    table = data.train.x.ndim == 2 and len(torch.unique(data.val.y)) > 1
    return "best" if table and not retrain else "last"


def default_explainer(data: Data, of: Literal["log_odds", "probability"] = "log_odds") -> Explainer:
    """The papers' explanation of data of this shape (B.1.3)."""
    return default_explainer_for(tuple(data.train.x.shape[1:]), of)


def default_explainer_for(
    shape: tuple[int, ...], of: Literal["log_odds", "probability"] = "log_odds"
) -> Explainer:
    """The same, of inputs of this shape: a row of a table, a picture, a pair of either."""
    if len(shape) == 1:
        return Gradient(of=of)
    if shape[0] == 2 and len(shape) == 2:
        return GradientTimesInput(of=of)
    if shape[0] == 2:
        return Gradient(of=of, normalize=True)
    return Gradient(of=of, reduce="abs_sum") if len(shape) >= 3 else Gradient(of=of)


def reasons_explainer(data: Data, like: Explainer) -> Explainer:
    """Contributions of a table's columns, compared with its average training row.

    like: how they are computed; its groups and baseline are those of the data.
    """
    require(data.train.x.ndim == 2, "fit", "data", "a table, of whose columns reasons are", data)
    own = {f.name for f in fields(like)}
    mean = data.train.x.double().mean(0).tolist()
    wanted: dict[str, Any] = {"groups": column_groups(data), "baseline": mean}
    return replace(like, **{name: value for name, value in wanted.items() if name in own})


def column_groups(data: Data) -> tuple[tuple[int, ...], ...]:
    """The features of each column of a table, a missing-flag with its number."""
    if data.schema is None:
        grouped = {i for group in data.groups for i in group}
        alone = ((i,) for i in range(data.train.x.shape[1]) if i not in grouped)
        return tuple(sorted((*data.groups, *alone)))
    return schema_groups(data.schema)


def schema_groups(schema: TableSchema) -> tuple[tuple[int, ...], ...]:
    """The features of each column of a schema."""
    ends = list(accumulate(len(column.features) for column in schema.columns))
    return tuple(tuple(range(a, b)) for a, b in zip([0, *ends], ends, strict=False))


def reasons_region(data: Data, given: Region | None, penalty: Penalty) -> Region | None:
    """The changes for which reasons are to stay: those given, else what rows are usually off by.

    Where a penalty needs a ball, the box of the numbers' moves; None where nothing is known of the
    table.
    """
    region = given
    if region is None and data.schema is not None:
        region = Feasible(data.schema, moves=data.schema.usual_moves(data.train.x))
    if isinstance(penalty, CertifiedRanking) and isinstance(region, Feasible):
        return moves_box(region)
    return region


def moves_box(region: Feasible) -> Linf:
    """The box of a table's numbers, one unit as far as each may move; labels stay."""
    reach = dict(region.reaches)
    scale: list[float] = []
    frozen: list[int] = []
    for column in region.schema.columns:
        for place in range(len(column.features)):
            free = place == 0 and column.name in reach
            frozen += [] if free else [len(scale)]
            scale.append(reach[column.name] / (column.high - column.low) if free else 1.0)
    return Linf(1.0, scale=scale, frozen=frozen)


def _network(shape: tuple[int, ...], classes: int, widths: Sequence[int] | None) -> nn.Module:
    if len(shape) == 1:
        return MLP(shape[0], (32,) if widths is None else widths, classes=classes)
    if len(shape) == 2 and shape[0] == 2:
        nodes = (1 + math.isqrt(1 + 8 * shape[1])) // 2
        return SiameseGCN(nodes, (256, 128) if widths is None else widths)
    if len(shape) == 3 and shape[0] != 2:
        is_valid = widths is None or len(widths) == 1
        require(is_valid, "train", "hidden", "one width, of a ResNet18", widths)
        stem = "small" if max(shape[1:]) <= SMALL else "large"
        width = WIDTH if widths is None else widths[0]
        return ResNet18(channels=shape[0], classes=classes, width=width, stem=stem)
    require(widths is None, "train", "hidden", "left out for pairs of pictures", widths)
    return SiameseCNN()


def _classes(data: Data) -> int:
    return max(len(data.classes), int(data.train.y.max()) + 1)
