"""A model at a batch, as penalties see it: every quantity with its graph, computed once."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor, nn

from r2et.checks import check_same_shape
from r2et.errors import require
from r2et.explain import Explainer
from r2et.explain.base import predicted
from r2et.explain.gradient import LocalExplainer
from r2et.explain.path_gradients import PathExplainer
from r2et.models.output import classes, logits, target_classes


class ExplainedBatch:
    """Attribution, scores and ranking of a model at x (B, ...), and its attribution elsewhere."""

    def __init__(
        self,
        where: str,
        explainer: Explainer,
        model: nn.Module,
        x: Tensor,
        target: Tensor | None = None,
        out: Tensor | None = None,
        order: Tensor | None = None,
        noise: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> None:
        self.where, self.explainer, self.model = where, explainer, model
        # What is differentiated by x must be a leaf of its own, or the very x that gave `out`.
        self.x = x if out is not None else x.detach().requires_grad_()
        self.given_target, self._out, self._order, self._noise = target, out, order, noise
        self._labels = labels

    @cached_property
    def out(self) -> Tensor:
        """(B, C) logits at x."""
        if self._out is None:
            return logits(self.model, self.x, self.where)
        return self._out[:, None] if self._out.ndim == 1 else self._out

    @cached_property
    def target(self) -> Tensor:
        """(B,) explained classes."""
        if self.given_target is not None:
            return target_classes(self.where, self.given_target, self.out)
        if isinstance(self.explainer, LocalExplainer) or self._out is not None:
            return classes(self.out.detach())
        return predicted(self.where, self.model, self.x)

    @property
    def known_target(self) -> Tensor | None:
        """(B,) the same, if they are given or follow from logits that are."""
        if self.given_target is None and self._out is None:
            return None
        return self.target

    @cached_property
    def labels(self) -> Tensor:
        """(B,) true classes, by default the explained ones."""
        if self._labels is None:
            return self.target
        return target_classes(self.where, self._labels, self.out)

    @cached_property
    def _explained(self) -> Tensor | None:
        """The target, for explanations of a class."""
        return self.target if isinstance(self.explainer, PathExplainer) else self.given_target

    @cached_property
    def raw(self) -> Tensor:
        """The attribution at x before its reduction to scores: x's shape, or (B, concepts)."""
        if isinstance(self.explainer, LocalExplainer):
            return self._local(self.x, self.out, self.target)
        return self.explainer.attribute(self.model, self.x, self._explained, create_graph=True)

    def raw_at(self, points: Tensor) -> Tensor:
        """The attribution at points (B, ...), with a graph in the model's weights.

        And in the points, if they are a leaf that requires a gradient.
        """
        if not (points.is_leaf and points.requires_grad):
            points = points.detach().requires_grad_()
        if isinstance(self.explainer, LocalExplainer):
            out = logits(self.model, points, self.where)
            return self._local(points, out, self.target)
        return self.explainer.attribute(self.model, points, self._explained, create_graph=True)

    @cached_property
    def scores(self) -> Tensor:
        """(B, n) scores at x."""
        return self.explainer.reduced(self.raw)

    def top(self, count: int) -> Tensor:
        """(B, count) the first places of the ranking to preserve, best first.

        Not a whole ranking: sorting 1568 pixels costs as much as a training step. Which of two
        equal scores comes first matters to nobody here.
        """
        given = None if self._order is None else self.given_top(count, self.scores)
        return self.scores.detach().topk(count, 1).indices if given is None else given

    def given_top(self, count: int, like: Tensor) -> Tensor | None:
        """(B, count) the same of the ranking given, if one was; like: of the scores' shape."""
        if self._order is None:
            return None
        check_same_shape(self.where, self._order, like, "order", "the scores")
        n = like.shape[1]
        low, high = (int(end) for end in self._order.aminmax())
        wrong = low if low < 0 else high
        require(low >= 0 and high < n, self.where, "order", f"of features 0..{n - 1}", wrong)
        return self._order[:, :count].long()

    @cached_property
    def noise(self) -> Tensor:
        """(B, ...) standard normal numbers."""
        if self._noise is None:
            return torch.randn_like(self.x.detach())
        check_same_shape(self.where, self._noise, self.x, "noise", "x")
        return self._noise.to(self.x.dtype)

    def _local(self, x: Tensor, out: Tensor, target: Tensor) -> Tensor:
        assert isinstance(self.explainer, LocalExplainer)
        expected = "differentiable in x (no detach, argmax, numpy or no_grad inside)"
        require(out.requires_grad, self.where, "model", expected, "an output without a gradient")
        return self.explainer.from_logits(x, out, target)
