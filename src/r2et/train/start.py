"""The model that a retraining starts from, and stays near to."""

from __future__ import annotations

from torch import Tensor, nn

from r2et.data import Data
from r2et.explain import Explainer
from r2et.rank import precision_at_k, ranking
from r2et.train.validation import auc

SLACK = 0.01  # how far a retraining may bring the validation AUC down


class Start:
    """Its rankings of the training rows, which are to be preserved, and where it stood (B.2.5)."""

    def __init__(self, model: nn.Module, explainer: Explainer, data: Data, k: int) -> None:
        device = next((p.device for p in model.parameters()), data.val.x.device)
        self.explainer, self.k, self.x = explainer, k, data.val.x.to(device)
        self.order: Tensor = ranking(explainer(model, data.train.x.to(device))).cpu()
        self.scores = explainer(model, self.x)
        self.auc = auc(model, data.val)

    def agreement(self, model: nn.Module) -> float:
        """Mean P@k between the first explanations of the validation rows and the model's."""
        return float(precision_at_k(self.scores, self.explainer(model, self.x), self.k).mean())

    def left(self, agreement: float, found: float | None, least: float) -> str:
        """Why a retrained model is no longer the one it started from; empty if it is."""
        if agreement < least:
            return f"P@{self.k} with the first ranking fell to {agreement:.3f}"
        if found is not None and self.auc is not None and found < self.auc - SLACK:
            return f"the validation AUC fell from {self.auc:.4f} to {found:.4f}"
        return ""
