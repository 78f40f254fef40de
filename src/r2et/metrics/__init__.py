"""How good a model and its explanations are: prediction, faithfulness, likeness, statistics."""

from r2et.metrics.faithfulness import (
    Faithfulness,
    comprehensiveness,
    dffot,
    faithfulness,
    sufficiency,
)
from r2et.metrics.prediction import auc, changed_predictions, sensitivity
from r2et.metrics.running import Individuality, Running, RunningIndividuality, RunningMean
from r2et.metrics.statistics import (
    Interval,
    PairedTest,
    bootstrap_interval,
    paired_test,
    share_interval,
)
from r2et.rank import (
    distinct_top_k,
    effective_top_k,
    largest_top_k_share,
    mse,
    pearson,
    precision_at_k,
)

__all__ = [
    "Faithfulness",
    "Individuality",
    "Interval",
    "PairedTest",
    "Running",
    "RunningIndividuality",
    "RunningMean",
    "auc",
    "bootstrap_interval",
    "changed_predictions",
    "comprehensiveness",
    "dffot",
    "distinct_top_k",
    "effective_top_k",
    "faithfulness",
    "largest_top_k_share",
    "mse",
    "paired_test",
    "pearson",
    "precision_at_k",
    "sensitivity",
    "share_interval",
    "sufficiency",
]
