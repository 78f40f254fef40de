"""What people's reasons are read from: signed contributions of a table's columns."""

from __future__ import annotations

import torch

from r2et.audit.settings import WHERE
from r2et.audit.subject import Subject
from r2et.defaults import REASONS
from r2et.errors import require
from r2et.explain import IntegratedGradients
from r2et.explain.grouping import column_of
from r2et.train.defaults import schema_groups

POINTS = 16  # on the way from the baseline


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
    return IntegratedGradients(
        points=POINTS, baseline=mean.tolist(), groups=groups, reduce="signed"
    )


def reasons_given(explainer: IntegratedGradients) -> int:
    """How many a person is given: four, or one less than there are columns."""
    features = torch.as_tensor(explainer.baseline).numel()
    columns = int(column_of(explainer.groups, features).max()) + 1
    return max(1, min(REASONS, columns - 1))
