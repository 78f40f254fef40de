"""What is watched while a network learns, beside its AUC: how thick its explanations are."""

from __future__ import annotations

from torch import Tensor, nn

from r2et.explain import Explainer
from r2et.models.output import undisturbed
from r2et.rank import thickness
from r2et.region import L2

WATCHED = 128  # rows whose thickness is measured after each epoch


def watched_thickness(
    model: nn.Module, explainer: Explainer, x: Tensor, k: int, radius: float
) -> float:
    """Mean share of pairs in order, over the first rows of the validation part (Sec. 4.1)."""
    with undisturbed(model):
        shares_in_order = thickness(
            model,
            x[:WATCHED],
            k,
            kind="probability",
            explainer=explainer,
            region=L2(radius),
            samples=4,
            points=4,
        )
    return float(shares_in_order.mean())
