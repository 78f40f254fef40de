"""Where a network for tables may start: at a sum of functions of one column each."""

from __future__ import annotations

import warnings
from typing import Any

import sklearn
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import cross_entropy

from r2et.data import Data
from r2et.models import TableMLP
from r2et.train.baselines import START_C, Logistic, logistic_regression, some_rows
from r2et.train.trial_measures import auc_drop, can_tell

NUMBERS = 1 << 21  # of the encoded rows that are fitted: what is fitted beyond takes long
COSTS = (0.03, 0.1, 0.3, 1.0)  # scikit-learn's C: the least keeps a few bins of a few columns
_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
LASSO: dict[str, Any] = {"penalty": "l1"} if _VERSION < (1, 8) else {"l1_ratio": 1.0}


def additive_start(
    network: TableMLP, data: Data, linear: Logistic, weights: Tensor | None = None
) -> Logistic | None:
    """A sparse logistic regression on the network's bins, one on columns' ranks, or a mean of two.

    Its weights (2, parts) belong to `network.encoded`. Sparse by an l1 penalty, whose size the
    log-loss of the validation rows chooses: a table of many columns has few whose bins matter, and
    a network that starts without them learns the others by heart. Beside it stands `linear`, or
    the same on the columns' ranks where these rows prefer that: outliers have no say in ranks.
    Where the 95 % interval of the difference of validation AUCs leaves out 0, the better of the
    two is taken, None for `linear`; where the rows cannot tell, the mean of their logits, which is
    seldom worse than either. None for more than two classes, and where the validation rows are too
    few to choose by.
    weights: (rows,) what training rows count for.
    """
    y = data.val.y.cpu()
    if network.settings["classes"] != 2 or int(y.max()) > 1 or not can_tell(y):
        return None
    rows = some_rows(len(data.train.y), max(1, NUMBERS // len(network.encoding)))
    labels = data.train.y[rows].cpu()
    counted = torch.ones(len(rows)) if weights is None else weights[rows].cpu()
    if len(torch.unique(labels[counted > 0])) < 2:
        return None
    inside, seen = (network.encoded(x).double().cpu() for x in (data.train.x[rows], data.val.x))
    ranks = _ranks(network)
    of_ranks = logistic_regression(inside @ ranks, labels, counted, c=START_C)
    lines = [
        _on_bins(network, linear),
        Logistic(of_ranks.weight @ ranks.T, of_ranks.bias),
    ]
    line = min(lines, key=lambda model: _loss(model, seen, y))
    sparse = [_lasso(inside, labels, counted.double(), cost) for cost in COSTS]
    best = min(sparse, key=lambda model: _loss(model, seen, y))
    gain, half_width = auc_drop(best.logits(seen), line.logits(seen), y)
    if abs(gain) <= half_width:
        return _mean(best, line)
    if gain > 0:
        return best
    return None if line is lines[0] else line


def _loss(model: Logistic, x: Tensor, y: Tensor) -> float:
    return float(cross_entropy(model.logits(x), y))


def _ranks(network: TableMLP) -> Tensor:
    """(parts, features): what makes of encoded rows the share of its bins that a value is above.

    A column without bins is taken as it is.
    """
    ranks, part = torch.zeros(len(network.encoding), network.settings["features"]).double(), 0
    for feature, count in enumerate(network.settings["bins"]):
        ranks[part : part + count, feature] = 1 / count
        part += count + (count > 1)
    return ranks


def _on_bins(network: TableMLP, linear: Logistic) -> Logistic:
    """The same model as a function of the network's encoding."""
    alone, shift = network.alone
    weight = linear.weight.new_zeros(len(linear.weight), len(network.encoding))
    weight[:, alone] = linear.weight
    return Logistic(weight, linear.bias - shift * linear.weight.sum(1))


def _mean(one: Logistic, other: Logistic) -> Logistic:
    """The model whose logits are the means of theirs."""
    return Logistic((one.weight + other.weight) / 2, (one.bias + other.bias) / 2)


def _lasso(x: Tensor, y: Tensor, counted: Tensor, cost: float) -> Logistic:
    """One fit, as logits of both classes."""
    model = LogisticRegression(
        C=cost, solver="liblinear", intercept_scaling=10.0, tol=1e-3, random_state=0, **LASSO
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start need not be the optimum
        model.fit(x.numpy(), y.numpy(), counted.numpy())
    weight, bias = (torch.from_numpy(part) for part in (model.coef_, model.intercept_))
    return Logistic(torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2)
