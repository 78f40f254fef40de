"""Units that may switch in the ball, looked at on one side and on the other.

In a deep piecewise-linear network a unit that switches changes what the later ones see. Where the
bounds of the whole ball fail, the unit that leaves most open is put on its right, then on its
left; the ball is proved if both parts are, if need be by splitting further.
"""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.boxes import Norm
from r2et.certify.forms import Sides
from r2et.certify.pairs import Pairs, scores_over
from r2et.certify.question import Question


def proved_in_parts(question: Question, radius: Tensor, norm: Norm, depth: int) -> Tensor:
    """(B,) bool: the top k cannot change within the radius (B,), with up to `depth` splits."""
    proved = torch.ones(len(radius), dtype=torch.bool, device=radius.device)
    parents = torch.arange(len(radius), device=radius.device)
    sides: Sides = {}
    for level in range(depth + 1):
        part, at = question.rows(parents), radius[parents]
        weights: Sides = {}
        scores = scores_over(
            *(part.program, part.ball(at, norm), part.target, part.of),
            sides=sides,
            weights=weights,
        )
        ok = Pairs(scores, at, norm, part.signed).border(part.top, part.side) > 0
        flat = torch.cat(list(weights.values()), 1) if weights else None
        largest = flat.amax(1) if flat is not None else torch.zeros_like(at)
        lost = ~ok & ((largest <= 0) | (level == depth))
        proved[parents[lost]] = False
        going = ~ok & proved[parents]
        if not bool(going.any()):
            break
        assert flat is not None
        pick = flat[going].argmax(1)
        parents = parents[going].repeat(2)
        sides = _split(sides, weights, going, pick)
    return proved


def _split(sides: Sides, weights: Sides, going: Tensor, pick: Tensor) -> Sides:
    """Each open part twice: with the picked unit right of its kink, and left of it."""
    start, found = 0, {}
    count = int(going.sum())
    for i, weight in weights.items():
        width = weight.shape[1]
        before = sides[i][going] if i in sides else weight.new_zeros(count, width)
        here = (pick >= start) & (pick < start + width)
        place = (pick - start).clamp(0, width - 1)[:, None]
        mark = torch.zeros_like(before).scatter(1, place, here.to(before)[:, None])
        found[i] = torch.cat([before + mark, before - mark])
        start += width
    return found
