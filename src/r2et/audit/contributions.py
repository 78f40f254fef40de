"""What people's reasons are read from: signed contributions of a table's columns."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from r2et.audit.settings import WHERE
from r2et.audit.subject import Subject
from r2et.defaults import REASONS
from r2et.errors import require
from r2et.explain import IntegratedGradients
from r2et.explain.grouping import column_of
from r2et.models.output import batched_logits, classes, log_odds
from r2et.train.defaults import schema_groups

POINTS = (16, 32, 64, 128)  # on the way from the baseline: as few as are enough
OFF = 0.01  # that contributions may miss of what they add up to, which is its mean over rows
MOST = 0.95  # of the rows have to be within that
ROWS = 256  # that it is looked at for


def contributions(subject: Subject) -> IntegratedGradients:
    """Integrated gradients of the log-odds from the average training row, one score per column."""
    trained = subject.trained
    mean = None if trained is None else trained.mean
    expected = "an Explainer for a model whose training on a table is not known"
    require(mean is not None, WHERE, "explainer", expected, "'reasons'")
    assert trained is not None
    assert mean is not None
    stored = trained.extra.get("groups", ())
    groups = stored if trained.schema is None else schema_groups(trained.schema)
    method = IntegratedGradients(baseline=mean.tolist(), groups=groups, reduce="signed")
    return enough_points(subject.model, method, known_rows(subject, len(mean)))[0]


def known_rows(subject: Subject, features: int) -> Tensor | None:
    """Rows that belong to a model: test rows kept with it, else random ones of 0..1.

    None of a module of whose training nothing is known.
    """
    if subject.seen is not None and subject.seen.held_out is not None:
        return subject.seen.held_out.x
    if subject.trained is None:
        return None
    return torch.rand(ROWS, features, generator=torch.Generator().manual_seed(0))


def enough_points(
    model: nn.Module,
    method: IntegratedGradients,
    x: Tensor | None,
    toward: int | None = None,
) -> tuple[IntegratedGradients, float]:
    """The same with as many points as a network takes, and how far it is off then, beyond OFF.

    Contributions are to add up to what tells a row's log-odds from the baseline's. Along the way
    a smooth network needs few points for that, one with a kink at every bin of its columns many.
    x: (B, n) rows to look at, the same whoever is asked about; where there are none, the points are
    as many as there may be. toward: the class of the log-odds, by default the one decided for.
    Second comes what 95 % of the rows are off by at most; 0 where that is little.
    """
    if x is None or not len(x):
        return replace(method, points=POINTS[-1]), 0.0
    x = x[:ROWS]
    start = torch.as_tensor(method.baseline, dtype=torch.float64).to(x).expand(x.shape[1])
    logits = batched_logits(model, x)
    target = (classes(logits) if toward is None else torch.full((len(x),), toward)).to(x.device)
    begin = log_odds(batched_logits(model, start[None]).double().expand(*logits.shape), target)
    change = log_odds(logits.double(), target) - begin
    allowed, off = OFF * float(change.abs().mean()), 0.0
    for points in POINTS:
        method = replace(method, points=points)
        added = method(model, x, target).double().sum(1).to(change)
        off = float((added - change).abs().quantile(MOST))
        if off <= allowed:
            return method, 0.0
    return method, off


def reasons_given(explainer: IntegratedGradients) -> int:
    """How many a person is given: four, or one less than there are columns."""
    features = torch.as_tensor(explainer.baseline).numel()
    columns = int(column_of(explainer.groups, features).max()) + 1
    return max(1, min(REASONS, columns - 1))
