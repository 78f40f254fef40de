"""What is to be proved: a network's graph in float64, its rows, their clean top k; or a refusal."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from r2et.certify.bounds.interval_bounds import Ball, Box, Norm
from r2et.certify.bounds.pairwise_bounds import PairwiseBounds, scores_over
from r2et.certify.bounds.per_feature_bounds import PerFeatureBounds
from r2et.certify.bounds.propagation import (
    LinearBounds,
    Sides,
    interval_bounds,
    linear_bounds,
)
from r2et.certify.bounds.rounding import limits, unit_of
from r2et.certify.graph import Graph, graph_of
from r2et.certify.precision import check_convolutions, check_precision
from r2et.checks import check_k, check_model_input
from r2et.errors import InputError, require
from r2et.explain import Explainer, Gradient
from r2et.explain.base import Of
from r2et.models.output import logits, target_classes, target_rows
from r2et.rank import top_k_mask

PLAIN = "Gradient with reduce abs or signed, and no part"


CHECK_NUMBERS = 2**22  # held at once where the graph's gradient is compared with the model's


@dataclass(frozen=True)
class CertificationProblem:
    """A model's graph, rows, and their explanation.

    graph: in float64.
    x: (B, ...).
    target: (B,) the class explained.
    top: (B, n) bool, the clean top k as the model's own arithmetic finds it.
    side: (B, n) signs of its gradient.
    clean: (B, n) the gradient itself, up to the factor that `of` has to the log-odds.
    of: what is explained.
    signed: whether signs count, or sizes alone.
    normalized: whether scores are divided by their sum.
    unit: the spacing of the model's numbers around 1.
    """

    graph: Graph
    x: Tensor
    target: Tensor
    top: Tensor
    side: Tensor
    clean: Tensor
    of: Of
    signed: bool
    normalized: bool
    unit: float

    @staticmethod
    def from_model(
        where: str,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        k: int,
        target: Tensor | int | None,
    ) -> CertificationProblem:
        """Refuse what cannot be certified, and trace what the model computes."""
        check_model_input(where, model, x)
        plain = isinstance(explainer, Gradient) and explainer.part is None
        require(
            plain and explainer.reduce in ("abs", "signed"), where, "explainer", PLAIN, explainer
        )
        assert isinstance(explainer, Gradient)
        check_k(where, k, x[0].numel())
        training = [name or "the model" for name, m in model.named_modules() if m.training]
        if training:
            given_mode = f"{training[0]} in train mode"
            require(False, where, "model", "in eval mode (call model.eval())", given_mode)
        kinds = {t.dtype for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()}
        alike = x.dtype in (torch.float32, torch.float64) and kinds <= {x.dtype}
        require(alike, where, "model", "of float32 or float64, as x is", sorted(map(str, kinds)))
        check_precision(where, x)
        given = target_rows(where, target, x)
        with torch.inference_mode(False), torch.no_grad():
            x = x.detach().clone()
            out = logits(model, x, where)
            chosen = target_classes(where, given, out)
            scores = explainer(model, x, chosen)
            # The log-odds' gradient is that of probability and loss, but for a factor.
            of: Of = "logit" if explainer.of == "logit" else "log_odds"
            raw = replace(explainer, reduce="signed", normalize=False, of=of)(model, x, chosen)
            plain_gradient = raw.double() * (-1.0 if explainer.of == "loss" else 1.0)
            graph = graph_of(where, model, x)
            check_convolutions(where, graph, x)
            same = torch.equal(out, logits(model, x, where))
            require(same, where, "model", "one that gives equal rows equal logits", "other ones")
        side = torch.where(plain_gradient < 0, -1.0, 1.0).double()
        problem = CertificationProblem(
            graph,
            x.double(),
            chosen,
            top_k_mask(scores, k),
            side,
            plain_gradient,
            explainer.of,
            explainer.reduce == "signed",
            explainer.normalize,
            unit_of(x.dtype),
        )
        with torch.inference_mode(False), torch.no_grad():
            problem.check_gradient(where)
        return problem

    def rows(self, chosen: Tensor) -> CertificationProblem:
        """The same about some of the rows."""
        return replace(
            self,
            x=self.x[chosen],
            target=self.target[chosen],
            top=self.top[chosen],
            side=self.side[chosen],
            clean=self.clean[chosen],
        )

    def visible(self, low: Tensor, high: Tensor) -> Tensor:
        """(B,) gaps above which features stay apart, for gradients in low..high (B, n).

        The probability's and the loss's gradient is the log-odds' times a factor that the explainer
        keeps above the square root of the smallest normal number, and `normalize` divides by the
        sum: either may leave the normal numbers, and features tie.
        """
        tiny, huge = limits(self.unit)
        size = torch.maximum(low.abs(), high.abs()).sum(1)
        least = torch.zeros_like(size)
        if self.of in ("probability", "loss"):
            least = least + 4 * math.sqrt(tiny)
        if self.normalized:
            least = least + torch.where(size <= huge, 4 * tiny * size, torch.inf)
        return least

    def ball(self, radius: Tensor, norm: Norm) -> Ball:
        """Balls of these radii (B,) around the rows."""
        return Ball(self.x, radius, norm, self.unit)

    def pairwise_bounds(
        self, ball: Ball, sides: Sides | None = None
    ) -> tuple[PairwiseBounds, LinearBounds]:
        """Bounds of all pairs of scores over a ball, and of the values they come from.

        sides: the part of the ball where chosen values are on one side of 0.
        """
        graph = self.graph
        sources, _ = graph.linear_suffix
        bounds = linear_bounds(graph, ball, self.target, self.of, ends=sources, sides=sides)
        scores = scores_over(graph, ball, bounds)
        return PairwiseBounds(scores, ball.radius, ball.norm, self.signed), bounds

    def gradient_box(self, ball: Ball) -> Box:
        """The gradient of what is explained over a ball: (B, ...)."""
        return interval_bounds(self.graph, ball, self.target, self.of)[self.graph.gradient]

    def check_gradient(self, where: str) -> None:
        """The graph, in float64, must give the gradient that the model itself gives, rounded."""
        size = max(1, CHECK_NUMBERS // self.graph.width)
        rows = torch.arange(len(self.x), device=self.x.device)
        for start in range(0, len(rows), size):
            part = self.rows(rows[start : start + size])
            box = part.gradient_box(part.ball(part.x.new_zeros(len(part.x)), "l2"))
            low, high = PerFeatureBounds(box, part.unit, True).interval()
            if bool(((part.clean < low) | (part.clean > high)).any()):
                expected = "one that computes the same at every call, whatever the batch"
                raise InputError(f"{where}: model must be {expected}, got another gradient.")
