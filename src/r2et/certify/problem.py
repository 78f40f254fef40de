"""What is to be proved: a network's graph in float64, its rows, their clean top k; or a refusal."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from r2et.certify.bounds.domain import Domain
from r2et.certify.bounds.interval_bounds import Ball, Box, Norm
from r2et.certify.bounds.pairwise_bounds import PairwiseBounds
from r2et.certify.bounds.per_feature_bounds import PerFeatureBounds
from r2et.certify.bounds.propagation import LinearBounds, Sides
from r2et.certify.bounds.rounding import limits, unit_of
from r2et.certify.bounds.score_bounds import ScoreMap, mean_sources, score_bounds, score_box
from r2et.certify.bounds.symbols import Symbols
from r2et.certify.graph import Graph, graph_of
from r2et.certify.precision import check_convolutions, check_precision
from r2et.checks import check_k, check_model_input
from r2et.errors import InputError, require
from r2et.explain import (
    Explainer,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    SmoothGrad,
)
from r2et.explain.base import Of
from r2et.explain.grouping import membership
from r2et.models.compiled import original_module
from r2et.models.output import logits, target_classes, target_rows
from r2et.rank import ranking, top_k_mask

CERTIFIED = Gradient | GradientTimesInput | IntegratedGradients | SmoothGrad
EXPECTED = (
    "Gradient, GradientTimesInput, IntegratedGradients or SmoothGrad with reduce abs or signed,"
    " and no part"
)
ONE_POINT = "log_odds or logit for an explanation of several points"


CHECK_NUMBERS = 2**22  # held at once where the graph's gradient is compared with the model's


@dataclass(frozen=True)
class CertificationProblem:
    """A model's graph, rows, and their explanation.

    graph: in float64.
    x: (B, ...).
    target: (B,) the class explained.
    top: (B, C) bool, the clean top k as the model's own arithmetic finds it.
    side: (B, C) signs of its scores.
    clean: (B, C) the scores, with signs, up to the factor that `of` has to the log-odds.
    ranked: (B, k) the clean top k, best first.
    of: what is explained.
    signed: whether signs count, or sizes alone.
    normalized: whether scores are divided by their sum.
    unit: the spacing of the model's numbers around 1.
    scores: how gradients become scores.
    domain: what counts as a ball; None where it is given with each.
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
    ranked: Tensor
    scores: ScoreMap
    domain: Domain | None = None

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
        model = original_module(model)
        check_model_input(where, model, x)
        plain = isinstance(explainer, CERTIFIED) and explainer.part is None
        is_valid = plain and explainer.reduce in ("abs", "signed")
        require(is_valid, where, "explainer", EXPECTED, explainer)
        assert isinstance(explainer, CERTIFIED)
        groups = explainer.groups
        member = None if groups is None else membership(groups, x[0].numel()).to(x.device)  # type: ignore[arg-type]
        check_k(where, k, x[0].numel() if member is None else member.shape[1])
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
            score_map = ScoreMap(explainer.as_sum(x), member)
            one = score_map.sum.at_x_alone or explainer.of in ("log_odds", "logit")
            require(one, where, "of", ONE_POINT, explainer.of)
            # The log-odds' gradient is that of probability and loss, but for a factor.
            of: Of = "logit" if explainer.of == "logit" else "log_odds"
            raw = replace(explainer, reduce="signed", normalize=False, of=of)(model, x, chosen)
            signed = raw.double() * (-1.0 if explainer.of == "loss" else 1.0)
            graph = graph_of(where, model, x)
            check_convolutions(where, graph, x)
            same = torch.equal(out, logits(model, x, where))
            require(same, where, "model", "one that gives equal rows equal logits", "other ones")
        side = torch.where(signed < 0, -1.0, 1.0).double()
        problem = CertificationProblem(
            graph,
            x.double(),
            chosen,
            top_k_mask(scores, k),
            side,
            signed,
            explainer.of,
            explainer.reduce == "signed",
            explainer.normalize,
            unit_of(x.dtype),
            ranking(scores)[:, :k],
            score_map,
        )
        with torch.inference_mode(False), torch.no_grad():
            problem.check_gradient(where)
        return problem

    def rows(self, chosen: Tensor) -> CertificationProblem:
        """The same about some of the rows."""
        names = ("x", "target", "top", "side", "clean", "ranked")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def visible(self, low: Tensor, high: Tensor, reach: Tensor | None = None) -> Tensor:
        """(B,) gaps above which scores stay apart, for signed scores in low..high (B, C).

        The probability's and the loss's gradient is the log-odds' times a factor that the explainer
        keeps above the square root of the smallest normal number, and `normalize` divides by the
        sum: either may leave the normal numbers, and scores tie. reach: (B, ...), how far x moves,
        where it multiplies.
        """
        tiny, huge = limits(self.unit)
        size = torch.maximum(low.abs(), high.abs()).sum(1)
        least = torch.zeros_like(size)
        if self.of in ("probability", "loss"):
            factor = self.scores.factor(self.x)
            terms = torch.ones_like(size)
            if factor is not None:
                moved = 0.0 if reach is None else reach.flatten(1)
                terms = (1 + factor.abs() + 2 * moved).sum(1)
            elif self.scores.member is not None:
                terms = terms * len(self.scores.member)
            least = least + 4 * math.sqrt(tiny) * terms
        if self.normalized:
            least = least + torch.where(size <= huge, 4 * tiny * size, torch.inf)
        return least

    def stays(self, above: Tensor) -> Tensor:
        """(B, C) bool: which of the top k stay in it, above (B, C, C) bool being proved.

        i stays if fewer than k others may come above it.
        """
        k = self.ranked.shape[1]
        return self.top & ((~above).sum(2) - 1 < k)

    def share(self, above: Tensor, k: int) -> Tensor:
        """(B,) float64: the share of the top k that is proved to stay; j stays out if k are above
        it.
        """
        enters = (~self.top & (above.sum(1) < k)).sum(1)
        return torch.maximum(self.stays(above).sum(1), k - enters).double() / k

    @property
    def space(self) -> Domain:
        """What distances are measured in: the domain's scale, or 1."""
        return self.domain or Domain("l2")

    def outer_radius(self, radius: Tensor) -> Tensor:
        """(B,) radii of balls that hold all that counts as within these."""
        return self.space.radius(self.x, radius, self.unit)

    def ball(self, radius: Tensor, norm: Norm) -> Ball:
        """Balls of these radii (B,) around the rows."""
        return (self.domain or Domain(norm)).ball(self.x, radius, self.unit)

    def pairwise_bounds(
        self, ball: Ball, sides: Sides | None = None, *, symbols: bool = False
    ) -> tuple[PairwiseBounds, LinearBounds]:
        """Bounds of all pairs of scores over a ball, and of the values they come from.

        sides: the part of the ball where chosen values are on one side of 0.
        symbols: keep what operators leave open as symbols, not as intervals: closer, and dearer.
        """
        graph, scores = self.graph, self.scores
        if symbols:
            ball = replace(ball, symbols=Symbols(ball.x[0].numel()))
        mean, bounds = mean_sources(graph, ball, self.target, self.of, scores, sides)
        form = score_bounds(graph, ball, scores, mean)
        return PairwiseBounds(form, ball.radius, ball.norm, self.signed), bounds

    def gradient_box(self, ball: Ball) -> Box:
        """The scores, with signs, over a ball: (B, C); of a plain gradient, itself."""
        return score_box(self.graph, ball, self.target, self.of, self.scores)

    def check_gradient(self, where: str) -> None:
        """The graph, in float64, must give the gradient that the model itself gives, rounded."""
        size = max(1, CHECK_NUMBERS // self.graph.width)
        rows = torch.arange(len(self.x), device=self.x.device)
        for start in range(0, len(rows), size):
            part = self.rows(rows[start : start + size])
            at_x = Ball(part.x, part.x.new_zeros(len(part.x)), "l2", part.unit)
            box = part.gradient_box(at_x)
            low, high = PerFeatureBounds(box, part.unit, True).interval()
            if bool(((part.clean < low) | (part.clean > high)).any()):
                expected = "one that computes the same at every call, whatever the batch"
                raise InputError(f"{where}: model must be {expected}, got another gradient.")
