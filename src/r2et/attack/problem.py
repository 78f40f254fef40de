"""One batch under attack: what is to be changed, what must stay, and how a proposal is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn

from r2et.checks import check_k
from r2et.errors import row_numbers
from r2et.explain import Explainer, as_explainer
from r2et.explain.callable_explainer import ScoresFunction
from r2et.models.output import classes, logits, predict, target_rows
from r2et.rank import ranking, top_k_mask
from r2et.rank.order import mask_of
from r2et.region import NormBall, Region, as_ball

Objective: TypeAlias = Callable[[Tensor, "AttackProblem"], Tensor]


@dataclass(frozen=True)
class AttackProblem:
    """B rows of one model, under one explanation, in one region.

    Attributes:
        where: whose name errors carry.
        model: under attack.
        explainer: whose ranking is to change.
        region: where x' may lie.
        k: how many features count.
        x: (B, ...) clean inputs.
        label: (B,) predicted class, which must stay.
        target: (B,) explained class.
        number: (B,) each row's in the batch as it was given.
        scores: (B, n) clean explanation.
        order: (B, n) its ranking.
        top: (B, n) bool, its top k.
    """

    where: str
    model: nn.Module
    explainer: Explainer
    region: Region
    k: int
    x: Tensor
    label: Tensor
    target: Tensor
    number: Tensor
    scores: Tensor
    order: Tensor
    top: Tensor

    @staticmethod
    def from_model(
        where: str,
        model: nn.Module,
        explainer: Explainer | ScoresFunction,
        region: Region,
        x: Tensor,
        k: int,
        target: Tensor | int | None,
        number: Tensor | None = None,
    ) -> AttackProblem:
        """The problem at clean inputs x; everything about it is checked here, once."""
        explainer = as_explainer(where, explainer)
        region.check(x)
        number = torch.arange(len(x), device=x.device) if number is None else number
        given = target_rows(where, target, x)
        with row_numbers(partial(_outside, number)):
            label = predict(model, x)
            chosen = label if given is None else given
            scores = explainer(model, x, chosen)
        check_k(where, k, scores.shape[1])
        return AttackProblem(
            where=where,
            model=model,
            explainer=explainer,
            region=region,
            k=k,
            x=x,
            label=label,
            target=chosen,
            number=number,
            scores=scores,
            order=ranking(scores),
            top=top_k_mask(scores, k),
        )

    def rows(self, index: Tensor) -> AttackProblem:
        """The same problem for some of its rows."""
        names = ("x", "label", "target", "number", "scores", "order", "top")
        return replace(self, **{name: getattr(self, name)[index] for name in names})

    def explain(
        self, points: Tensor, *, model: nn.Module | None = None, graph: bool = False
    ) -> Tensor:
        """Scores of the class explained at x, at points (m * B, ...): (m * B, n)."""
        copies = self.target.repeat(len(points) // len(self.target))
        with row_numbers(partial(_outside, self.number)):
            return self.explainer(model or self.model, points, copies, create_graph=graph)

    def kept(self, points: Tensor) -> Tensor:
        """(m * B,) bool: the real model predicts what it predicts at x."""
        with torch.no_grad(), row_numbers(partial(_outside, self.number)):
            predicted = classes(logits(self.model, points, self.where))
        return predicted == self.label.repeat(len(points) // len(self.label))

    def precision(self, scores: Tensor) -> Tensor:
        """P@k of scores (m * B, n) against the clean ones: (m * B,)."""
        copies = len(scores) // len(self.order)
        result = scores.new_ones(len(scores))
        # Most rows hold for most of an attack, and whether they do needs no sorting.
        ranked = scores.gather(1, self.order.repeat(copies, 1) if copies > 1 else self.order)
        lowest, highest = ranked[:, : self.k].amin(1), ranked[:, self.k :].amax(1)
        moved = (lowest <= highest).nonzero().flatten()
        if len(moved):
            still = mask_of(scores[moved], self.k) & self.top[moved % len(self.top)]
            result[moved] = still.sum(1).to(scores.dtype) / self.k
        return result

    def keys(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """How near the worst scores (m * B, n) are: how many of the clean top k are left, plus a
        share of 1 that grows with the margin of the next one to leave: (m * B,) float64.

        rows: whose scores they are, by default all rows', again and again.
        """
        top = self.top.repeat(len(scores) // len(self.top), 1) if rows is None else self.top[rows]
        now = mask_of(scores, self.k)
        lowest = scores.masked_fill(~(top & now), torch.inf).amin(1)
        highest = scores.masked_fill(top | now, -torch.inf).amax(1)
        scale = scores.abs().mean(1).clamp(min=torch.finfo(scores.dtype).tiny)
        margin = ((lowest - highest) / scale).double()
        # No margin where no feature is left to leave, or none to take its place.
        return (top & now).sum(1) + (margin / (1 + margin)).nan_to_num(0.0)

    def flips(self, scores: Tensor) -> Tensor:
        """(m * B,) bool: a feature left the top k by more than rounding could make it."""
        ranked = scores.gather(1, self.order.repeat(len(scores) // len(self.order), 1))
        lowest, highest = ranked[:, : self.k].amin(1), ranked[:, self.k :].amax(1)
        slack = 32 * torch.finfo(scores.dtype).eps * scores.abs().amax(1)
        return lowest < highest - slack

    @property
    def ball(self) -> NormBall:
        """The region, for what needs a radius."""
        return as_ball(self.where, self.region)

    @property
    def least(self) -> float:
        """The smallest P@k there can be: with k of n features, 2k - n always stay."""
        return max(0, 2 * self.k - self.scores.shape[1]) / self.k


def _outside(number: Tensor, row: int) -> int:
    """The number of a row of stacked copies."""
    return int(number[row % len(number)])
