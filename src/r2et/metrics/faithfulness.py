"""Whether the features an explanation calls important are those that the model uses (B.1.4).

Removed features are set to a baseline, most important first, and the model is asked again. What is
no feature of the explanation stays as it is: the diagonal of an adjacency matrix, or the input of a
pair that is not explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from r2et.checks import check_model_input
from r2et.errors import require, row_numbers
from r2et.explain import Explainer
from r2et.metrics.faithfulness_inputs import baseline_of, feature_map, removal_counts
from r2et.models.output import CHUNK_NUMBERS, classes, log_odds, logits, undisturbed
from r2et.rank import ranking

Baseline: TypeAlias = float | Tensor | Sequence[float]


class Faithfulness(NamedTuple):
    """The three measures of each of B rows, (B,) float64."""

    dffot: Tensor
    comprehensiveness: Tensor
    sufficiency: Tensor


def faithfulness(
    model: nn.Module,
    explainer: Explainer,
    x: Tensor,
    *,
    baseline: Baseline = 0.0,
    counts: Sequence[int] | None = None,
    absolute: bool = False,
    chunk: int | None = None,
    target: Tensor | None = None,
) -> Faithfulness:
    """dffot, comprehensiveness and sufficiency, from one explanation and one set of removals.

    baseline: what removed features are set to, a number or one per entry of an input (the columns'
    means). counts: the set K, how many features are removed; by default 1..n for tables and 1, 5,
    10, 20, 50 % of n otherwise. absolute: as in comprehensiveness. chunk: inputs per forward pass.
    target: (B,) the classes decided for; by default the predicted ones.
    """
    removal = _Removal("faithfulness", model, explainer, x, baseline, counts, chunk)
    removal.target = target
    return removal.measure(without=True, only=True, absolute=absolute)


def dffot(
    model: nn.Module,
    explainer: Explainer,
    x: Tensor,
    *,
    baseline: Baseline = 0.0,
    counts: Sequence[int] | None = None,
    chunk: int | None = None,
) -> Tensor:
    """Decision flip fraction: min over K in counts of K / n with argmax f(x \\ top K) changed.

    (B,) in (0, 1], lower is better; 1 where the prediction never changes. Arguments as in
    `faithfulness`. Serrano and Smith, "Is attention interpretable?", ACL 2019; B.1.4.
    """
    removal = _Removal("dffot", model, explainer, x, baseline, counts, chunk)
    return removal.measure(without=True, only=False).dffot


def comprehensiveness(
    model: nn.Module,
    explainer: Explainer,
    x: Tensor,
    *,
    baseline: Baseline = 0.0,
    counts: Sequence[int] | None = None,
    absolute: bool = False,
    chunk: int | None = None,
) -> Tensor:
    """COMP: mean over K in counts of p(x) - p(x \\ top K), p of the class predicted at x.

    (B,) in -1..1, higher is better. absolute: the mean of |p(x) - p(x \\ top K)|, in 0..1, which
    the R2ET paper prints; it rewards removals that make the model surer as well. Other arguments as
    in `faithfulness`. DeYoung et al., "ERASER", ACL 2020; B.1.4.
    """
    removal = _Removal("comprehensiveness", model, explainer, x, baseline, counts, chunk)
    return removal.measure(without=True, only=False, absolute=absolute).comprehensiveness


def sufficiency(
    model: nn.Module,
    explainer: Explainer,
    x: Tensor,
    *,
    baseline: Baseline = 0.0,
    counts: Sequence[int] | None = None,
    absolute: bool = False,
    chunk: int | None = None,
) -> Tensor:
    """SUFF: mean over K in counts of p(x) - p(top K of x only), p of the class predicted at x.

    (B,) in -1..1, lower is better. absolute: the mean of |p(x) - p(top K only)|, in 0..1, which the
    R2ET paper prints. Other arguments as in `faithfulness`. DeYoung et al., "ERASER", ACL 2020;
    B.1.4.
    """
    removal = _Removal("sufficiency", model, explainer, x, baseline, counts, chunk)
    return removal.measure(without=False, only=True, absolute=absolute).sufficiency


class _Removal:
    """Inputs of which the top K features are removed, or left alone, for every K in counts."""

    def __init__(
        self,
        where: str,
        model: nn.Module,
        explainer: Explainer,
        x: Tensor,
        baseline: Baseline,
        counts: Sequence[int] | None,
        chunk: int | None,
    ) -> None:
        check_model_input(where, model, x)
        self.where, self.model, self.explainer, self.x = where, model, explainer, x.detach()
        self.index = feature_map(where, explainer, x)
        self.n = int(self.index.max()) + 1
        self.baseline = baseline_of(where, baseline, x)
        self.counts = torch.tensor(removal_counts(where, counts, self.n, x), device=x.device)
        is_valid = chunk is None or (type(chunk) is int and chunk > 0)
        require(is_valid, where, "chunk", "None or a positive whole number", chunk)
        self.points = chunk or max(1, CHUNK_NUMBERS // x[0].numel())
        self.target: Tensor | None = None

    def measure(self, *, without: bool, only: bool, absolute: bool = False) -> Faithfulness:
        """What was asked for; the rest of the result is empty."""
        require(type(absolute) is bool, self.where, "absolute", "True or False", absolute)
        rows = max(1, self.points // len(self.counts))
        parts = []
        with undisturbed(self.model), torch.no_grad():
            for start in range(0, len(self.x), rows):
                with row_numbers(start.__add__):
                    x = self.x[start : start + rows]
                    target = None if self.target is None else self.target[start : start + rows]
                    parts.append(self._measure(x, target, without, only, absolute))
        return Faithfulness(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _measure(
        self, x: Tensor, target: Tensor | None, without: bool, only: bool, absolute: bool
    ) -> Faithfulness:
        out = logits(self.model, x, self.where)
        target = classes(out) if target is None else target
        scores = self.explainer(self.model, x, target)
        expected = f"one that gives {self.n} scores for x, one per feature"
        is_valid = scores.shape == (len(x), self.n)
        require(
            is_valid, self.where, "explainer", expected, f"scores of shape {tuple(scores.shape)}"
        )
        place = ranking(scores).argsort(1)  # of each feature in its row's ranking, from 0
        share = log_odds(out.double(), target).sigmoid()
        flips = dropped = kept = share.new_empty(0)
        if without:
            flips, dropped = self._asked(x, place, target, share, absolute, keep=False)
        if only:
            _, kept = self._asked(x, place, target, share, absolute, keep=True)
        return Faithfulness(flips, dropped, kept)

    def _asked(
        self,
        x: Tensor,
        place: Tensor,
        target: Tensor,
        share: Tensor,
        absolute: bool,
        *,
        keep: bool,
    ) -> tuple[Tensor, Tensor]:
        """(B,) decision flip fraction and mean change of the probability, over all counts."""
        m = len(self.counts)
        flips, drops = [], []
        for start in range(0, len(x) * m, self.points):
            pair = torch.arange(start, min(start + self.points, len(x) * m), device=x.device)
            row, count = pair // m, self.counts[pair % m]
            gone = place[row] >= count[:, None] if keep else place[row] < count[:, None]
            # One column more, which -1 finds: what is no feature is never removed.
            entries = nn.functional.pad(gone, (0, 1))[:, self.index]
            with row_numbers(lambda i, row=row: int(row[i])):  # type: ignore[misc]
                out = logits(self.model, torch.where(entries, self.baseline, x[row]), self.where)
            flips.append(classes(out) != target[row])
            drops.append(share[row] - log_odds(out.double(), target[row]).sigmoid())
        flipped, drop = torch.cat(flips).view(-1, m), torch.cat(drops).view(-1, m)
        fraction = torch.where(flipped, self.counts.double() / self.n, 1.0).amin(1)
        return fraction, (drop.abs() if absolute else drop).mean(1)
