"""A lower bound on the gaps of the ranking over a ball, cheap enough to train against.

Over the ball every pre-activation of the first layer lies in an interval, so does every
derivative, and so does u, the gradient by the first layer's outputs. The gradient by the input is
W' u: a gap |a_i| - |a_j| is smallest over the box of u where

    min over s in {-1, 1} of (s_i W_i - s W_j) . u - |s_i W_i - s W_j| . spread(u)

with s_i the sign of a_i: exact for one hidden layer and a box, sound for any number of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from r2et.certify.boxes import Ball, Box, Norm, added, backward, forward
from r2et.certify.head import head_at, head_box
from r2et.certify.steps import Affine, Dense, Join, Program
from r2et.certify.tracing import trace
from r2et.checks import check_k, check_model_input
from r2et.errors import require
from r2et.explain.base import Of
from r2et.models.output import target_classes, target_rows, undisturbed

# How wide a step of a piecewise-linear unit looks to the gradient, in units of its input.
SOFT = 0.1
# Above this many entries (n * n * units) features are bounded one by one, not pair by pair.
TABLE_NUMBERS = 2**22

SETTING = (int, float, str, tuple)  # what a module's forward may go by
_TRACED: WeakKeyDictionary[nn.Module, tuple[tuple[Any, ...], Program]] = WeakKeyDictionary()


class Margins(NamedTuple):
    """low: (B, P) lower bounds over the ball of gaps I_i - I_j. scores: (B, n) at x.

    pairs: (B, P, 2), their features i and j. For absolute scores a gap is s_i a_i - s_j a_j for
    the signs s with the lowest bound.
    """

    low: Tensor
    scores: Tensor
    pairs: Tensor


def margins(
    model: nn.Module,
    x: Tensor,
    radius: float | Tensor,
    *,
    k: int,
    norm: Norm = "l2",
    pairs: int = 8,
    target: Tensor | int | None = None,
    of: Of = "log_odds",
    signed: bool = False,
    soft: float = SOFT,
    top: Tensor | None = None,
) -> Margins:
    """Bounds of `pairs` gaps of each row, the lowest among them, differentiable in the weights.

    All pairs are bounded without a graph; then, with one, the lowest of each of `pairs` parts of
    them. Where the first layer is not dense, or wide, features are bounded one by one instead: the
    weakest of the top k against the strongest of the rest, the second weakest against the second
    strongest, and so on. radius: one number, or (B,). soft: the bound of a unit that may switch
    has no gradient towards switching less; it is given that of a sigmoid this wide. top: (B, k),
    the features that are to be above the others, by default the top k at x.
    """
    check_model_input("margins", model, x)
    check_k("margins", k, x[0].numel())
    require(norm in ("l2", "linf"), "margins", "norm", "l2 or linf", norm)
    good = type(pairs) is int and pairs > 0
    require(good, "margins", "pairs", "a positive whole number", pairs)
    reach = torch.as_tensor(radius, dtype=x.dtype, device=x.device)
    good = bool(((reach >= 0) & (reach < torch.inf)).all())
    require(good, "margins", "radius", "0 or more and finite", radius)
    target = target_rows("margins", target, x)
    with undisturbed(model):
        program = traced(model, x)
        point = forward(program, Ball(x, x.new_zeros(len(x)), norm, exact=True))
        logits = point.boxes[program.output].centre
        chosen = target_classes("margins", target, logits)
        scores = feature_box(program, backward(program, point, Box(head_at(logits, chosen, of))))
        constant = program.classes <= 2 or of == "logit"
        ball = Ball(x, reach.expand(len(x)), norm, soft=soft)
        trail = forward(program, ball, point, logits=not constant)
        made = point if constant else trail
        head = head_box(made.boxes[program.output], chosen, of)
        gradients = backward(program, trail, head)
    clean = scores.centre if signed else scores.centre.abs()
    low, chosen_pairs = _closest(program, gradients, scores.centre.detach(), k, pairs, signed, top)
    return Margins(low, clean, chosen_pairs)


def traced(model: nn.Module, x: Tensor) -> Program:
    """The model's steps, traced anew only where its modules, their settings or weights changed."""
    parts = (*model.modules(), *model.parameters())
    known = _TRACED.get(model)
    settings = [v for m in model.modules() for v in vars(m).values() if isinstance(v, SETTING)]
    key = (*map(id, parts), *settings, *x.shape[1:])
    if known is not None and known[0] == key:
        return known[1]
    program = trace("margins", model, x)
    if not program.derived:
        _TRACED[model] = (key, program)
    return program


def feature_box(program: Program, gradients: dict[int, Box]) -> Box:
    """From the gradient by the affine zone's values to that by x: (B, n)."""
    pulled = dict(gradients)
    for i in range(max(pulled), 0, -1):
        if i not in pulled:
            continue
        step, box = program.steps[i - 1], pulled.pop(i)
        if isinstance(step.kind, Affine):
            spread = None if box.spread is None else step.kind.pull(box.spread, "absolute")
            passed = [Box(step.kind.pull(box.centre), spread)]
        else:
            assert isinstance(step.kind, Join)
            passed = [Box(sign * box.centre, box.spread) for sign in step.kind.signs]
        for value, part in zip(step.inputs, passed, strict=True):
            if value in pulled:
                before = pulled[value]
                part = Box(before.centre + part.centre, added(before.spread, part.spread))
            pulled[value] = part
    total = pulled[0]
    flat = None if total.spread is None else total.spread.flatten(1)
    return Box(total.centre.flatten(1), flat)


def _closest(
    program: Program,
    gradients: dict[int, Box],
    scores: Tensor,
    k: int,
    pairs: int,
    signed: bool,
    given: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """(B, P) bounds and (B, P, 2) features."""
    weight = first_weight(program, gradients)
    size = scores if signed else scores.abs()
    top = torch.zeros_like(size, dtype=torch.bool)
    top = top.scatter(1, size.topk(k, dim=1).indices if given is None else given, True)
    side = torch.ones_like(scores) if signed else 1.0 - 2.0 * (scores < 0).to(scores)
    if weight is None or scores.shape[1] ** 2 * len(weight) > TABLE_NUMBERS:
        features = feature_box(program, gradients)
        return _nested(features, top, side, min(pairs, k, size.shape[1] - k), signed)
    (box,) = gradients.values()
    with torch.no_grad():
        i, j, sign = _lowest(weight, box, top, side, pairs, signed)
    columns = weight.T.contiguous()
    mine, rival = F.embedding(i, columns), F.embedding(j, columns)
    apart = side.gather(1, i)[..., None] * mine - sign[..., None] * rival
    low = (apart * box.centre[:, None]).sum(2)
    if box.spread is not None:
        low = low - (apart.abs() * box.spread[:, None]).sum(2)
    return low, torch.stack([i, j], 2)


def _lowest(
    weight: Tensor, box: Box, top: Tensor, side: Tensor, count: int, signed: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Of all pairs, dealt out into `count` hands, the one of each hand with the lowest bound.

    Returns the features i and j and the sign of a_j, each (B, count). |W_i - t W_j| is the same
    for all rows, so that one product of matrices serves all of them.
    """
    n = weight.shape[1]
    p, q = torch.triu_indices(n, n, offset=1, device=weight.device)
    # Features first: a pair is then a copy of two contiguous rows.
    columns, signed_columns = weight.T, side.T.contiguous()
    value = signed_columns * (columns @ box.centre.T)
    inside = top.T.contiguous()
    first, second = inside[p], inside[q]
    a, b = value[p], value[q]
    own, other = torch.where(first, a, b), torch.where(first, b, a)
    other *= signed_columns[p] * signed_columns[q]
    own.masked_fill_(first == second, torch.inf)
    count, most = min(count, len(p)), len(p) * (1 if signed else 2)
    hands = -(-most // count)
    low = value.new_full((hands * count, len(top)), torch.inf)
    spread = None if box.spread is None else box.spread.T
    for turn, sign in enumerate((1.0,) if signed else (1.0, -1.0)):
        gap = low[turn * len(p) : (turn + 1) * len(p)]
        torch.sub(own, other, alpha=sign, out=gap)
        if spread is not None:
            gap -= torch.sub(columns[p], columns[q], alpha=sign).abs_() @ spread
    worst, place = low.T.contiguous().view(-1, count, hands).min(2)
    place = place + hands * torch.arange(count, device=place.device)
    # A hand without a pair of a top and another feature takes the lowest of all.
    lowest = place.gather(1, worst.argmin(1, keepdim=True))
    place = torch.where(worst.isinf(), lowest, place)
    rival = 1.0 - 2.0 * (place >= len(p)).to(value)
    place = place % len(p)
    i, j = p[place], q[place]
    swap = ~top.gather(1, i)
    i, j = torch.where(swap, j, i), torch.where(swap, i, j)
    return i, j, rival * side.gather(1, i)


def _nested(
    features: Box, top: Tensor, side: Tensor, few: int, signed: bool
) -> tuple[Tensor, Tensor]:
    """Features bounded one by one: the weakest of the top k against the strongest other, ..."""
    with torch.no_grad():
        centre = features.centre if signed else features.centre.abs()
        wide = torch.zeros_like(centre) if features.spread is None else features.spread
        i = (centre - wide).masked_fill(~top, torch.inf).topk(few, dim=1, largest=False).indices
        j = (centre + wide).masked_fill(top, -torch.inf).topk(few, dim=1).indices
    own, other = (side * features.centre).gather(1, i), features.centre.gather(1, j)
    low = own - (other if signed else other.abs())
    if features.spread is not None:
        low = low - features.spread.gather(1, i) - features.spread.gather(1, j)
    return low, torch.stack([i, j], 2)


def first_weight(program: Program, gradients: dict[int, Box]) -> Tensor | None:
    """W of the network's first layer (units, n), if it is the only one that sees x, and dense."""
    if len(gradients) != 1:
        return None
    (value,) = gradients
    if value == 0:
        return None
    step = program.steps[value - 1]
    if not isinstance(step.kind, Dense) or step.inputs != (0,) or gradients[value].centre.ndim != 2:
        return None
    return step.kind.weight
