"""The model that a retraining starts from, and stays near to."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from r2et.data import Data
from r2et.explain import Explainer
from r2et.metrics import split_auc
from r2et.rank import precision_at_k, ranking
from r2et.train.protocol import SLACK, reaches

ROWS = 4096


class ReferenceModel:
    """Its rankings of the training rows, which are to be preserved, and where it stood (B.2.5)."""

    def __init__(self, model: nn.Module, explainer: Explainer, data: Data, k: int) -> None:
        device = next((p.device for p in model.parameters()), data.val.x.device)
        self.explainer, self.k, self.x = explainer, k, data.val.x.to(device)
        # In chunks, and in 32 bits: as many numbers as the training part has.
        parts = torch.split(data.train.x, ROWS)
        orders = [ranking(explainer(model, part.to(device))).int().cpu() for part in parts]
        self._order = torch.cat(orders)
        self.scores = explainer(model, self.x)
        self.auc = split_auc(model, data.val)

    def order(self, rows: Tensor) -> Tensor:
        """The first ranking of some training rows: (B, n)."""
        return self._order[rows].long()

    def agreement(self, model: nn.Module) -> float:
        """Mean P@k between the first explanations of the validation rows and the model's."""
        return float(precision_at_k(self.scores, self.explainer(model, self.x), self.k).mean())

    def left(self, agreement: float, auc: float | None, least: float) -> str:
        """Why a retrained model is no longer the one it started from; empty if it is."""
        if agreement < least:
            return f"P@{self.k} with the first ranking fell to {agreement:.3f}"
        if self.auc is not None and not reaches(auc, self.auc - SLACK):
            return f"the validation AUC fell from {self.auc:.4f} to {auc:.4f}"
        return ""
