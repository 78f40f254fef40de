"""Where a network for tables may start: at a sum of functions of one column each."""

from __future__ import annotations

import warnings
from typing import Any

import sklearn
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from r2et.data import Data
from r2et.models import TableMLP
from r2et.train.baselines import Logistic, some_rows
from r2et.train.trial_measures import auc_drop, can_tell

NUMBERS = 1 << 21  # of the encoded rows that are fitted: what is fitted beyond takes long
COSTS = (0.03, 0.1, 0.3, 1.0)  # scikit-learn's C: the least keeps a few bins of a few columns
_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
LASSO: dict[str, Any] = {"penalty": "l1"} if _VERSION < (1, 8) else {"l1_ratio": 1.0}


def additive_start(
    network: TableMLP, data: Data, linear: Logistic, weights: Tensor | None = None
) -> Logistic | None:
    """A sparse logistic regression on the network's bins, or the mean of it and `linear`.

    Its weights (2, parts) belong to `network.encoded`. Sparse by an l1 penalty, whose size the
    log-loss of the validation rows chooses: a table of many columns has few whose bins matter, and
    a network that starts without them learns the others by heart. Where the 95 % interval of the
    difference of validation AUCs leaves out 0, the better of the two is taken, None for `linear`;
    where the rows cannot tell, the mean of their logits, which is seldom worse than either. None
    for more than two classes, and where the validation rows are too few to choose a penalty by.
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
    fitted = []
    for cost in COSTS:
        model = _lasso(inside, labels, counted.double(), cost)
        logits = model.logits(seen)
        fitted.append((float(torch.nn.functional.cross_entropy(logits, y)), model, logits))
    _, best, logits = min(fitted, key=lambda entry: entry[0])
    gain, half_width = auc_drop(logits, linear.logits(data.val.x), y)
    if abs(gain) > half_width:
        return best if gain > 0 else None
    return _mean(best, _on_bins(network, linear))


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
