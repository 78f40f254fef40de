"""Which of several trainings to keep: the papers' protocol (B.1.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import nn

from r2et.attack import Attack, ERAttack
from r2et.data import Data
from r2et.errors import require
from r2et.explain import Explainer, Gradient
from r2et.metrics import split_auc
from r2et.progress import bar
from r2et.train.fit import Fit
from r2et.train.protocol import SLACK, best_candidate, reaches


@dataclass(frozen=True)
class Selection:
    """The chosen training, and what was measured of each candidate, in their order.

    fit, index: the choice.
    met: whether it reaches the threshold; where none does, the highest validation AUC is chosen.
    candidates: one entry each.
    """

    fit: Fit
    index: int
    met: bool
    candidates: list[dict[str, Any]]


def select(
    fits: Iterable[Fit],
    data: Data,
    *,
    vanilla: Fit | nn.Module | None = None,
    threshold: float | None = None,
    k: int | None = None,
    attack: Attack | None = None,
    explainer: Explainer | None = None,
    rows: int | None = 300,
    progress: bool = True,
) -> Selection:
    """Of the trainings whose validation cAUC reaches a threshold, that of the highest P@k.

    threshold: by default that of `vanilla` minus 0.01. attack: under which P@k is measured, on the
    first `rows` rows of the validation part; by default the papers' ERAttack, of the probability's
    gradient.
    """
    where, tried = "select", list(fits)
    is_valid = bool(tried) and all(isinstance(one, Fit) for one in tried)
    require(is_valid, where, "fits", "one or more results of fit", tried)
    require(isinstance(data, Data), where, "data", "a Data (see load, load_table)", data)
    is_valid = threshold is None or (isinstance(threshold, int | float) and threshold == threshold)
    require(is_valid, where, "threshold", "None or a number", threshold)
    is_valid = attack is None or isinstance(attack, Attack)
    require(is_valid, where, "attack", "None or an Attack", attack)
    if threshold is None:
        plain = vanilla.model if isinstance(vanilla, Fit) else vanilla
        expected = "given, or a vanilla model to compare with"
        require(isinstance(plain, nn.Module), where, "threshold", expected, vanilla)
        assert isinstance(plain, nn.Module)
        reached = split_auc(plain, data.val)
        expected = "given where the validation part has one class only"
        require(reached is not None, where, "threshold", expected, threshold)
        threshold = (reached or 0.0) - SLACK
    attack = ERAttack() if attack is None else attack
    explainer = Gradient(of="probability") if explainer is None else explainer
    x = data.val.x if rows is None else data.val.x[:rows]
    candidates: list[dict[str, Any]] = []
    with bar(where, total=len(tried), show=progress) as advance:
        for one in tried:
            result = attack(one.model, explainer, x, k=data.k if k is None else k)
            reached = split_auc(one.model, data.val)
            entry = {"recipe": one.record["recipe"], "auc": reached, "threshold": threshold}
            entry["precision"] = float(result.precision.mean())
            entry["met"] = reaches(reached, threshold)
            candidates.append(entry)
            advance(1)
    index, met = best_candidate(candidates)
    return Selection(tried[index], index, met, candidates)
