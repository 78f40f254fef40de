"""How good a model and its explanations are: prediction, faithfulness, likeness, statistics."""

from r2et.metrics.faithfulness import (
    Faithfulness,
    comprehensiveness,
    dffot,
    faithfulness,
    sufficiency,
)
from r2et.metrics.pareto import pareto_front
from r2et.metrics.prediction import (
    auc,
    auc_of_logits,
    changed_predictions,
    sensitivity,
    split_auc,
)
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
    "Interval",
    "PairedTest",
    "auc",
    "auc_of_logits",
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
    "pareto_front",
    "pearson",
    "precision_at_k",
    "sensitivity",
    "share_interval",
    "split_auc",
    "sufficiency",
]
