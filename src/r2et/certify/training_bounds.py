"""A lower bound on the gaps of the ranking over a ball, cheap enough to train against.

Over the ball every pre-activation of the first layer lies in an interval, so does every
derivative, and so does u, the gradient by the first layer's outputs. The gradient by the input is
W' u: a gap |a_i| - |a_j| is smallest over the box of u where

    min over s in {-1, 1} of (s_i W_i - s W_j) . u - |s_i W_i - s W_j| . spread(u)

with s_i the sign of a_i: exact for one hidden layer and a box, sound for any number of them.
"""

from __future__ import annotations

import math
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from r2et.certify.bounds.domain import Domain
from r2et.certify.bounds.interval_bounds import Ball, Box, Norm
from r2et.certify.bounds.output_gradient import is_constant, output_gradient
from r2et.certify.bounds.propagation import Boxes, extend_boxes, interval_bounds
from r2et.certify.graph import INPUT, OUTPUT_GRADIENT, Graph, Trace, build, trace
from r2et.certify.operators.linear import Dense
from r2et.certify.training_pairs import Candidates, PairChoice, lowest_of_hands, width_apart
from r2et.certify.training_scores import Contributions
from r2et.checks import check_k, check_model_input
from r2et.errors import require
from r2et.explain import Gradient, GradientTimesInput
from r2et.explain.base import Of
from r2et.explain.grouping import membership
from r2et.models.output import target_classes, target_rows, undisturbed
from r2et.region import NormBall

# How wide a step of a piecewise-linear unit looks to the gradient, in units of its input.
SOFT = 0.1
# Above this many entries (n * units) features are bounded one by one, not pair by pair.
TABLE_NUMBERS = 2**22
# Of so many features every pair is bounded on every batch.
ALL_PAIRS = 48

# What every module keeps beside its own settings; hooks count.
BOOKKEEPING = {n for n in vars(nn.Module()) if not n.endswith("hooks")}
# What is told by being the same: it has no settings, or they are looked at elsewhere.
BY_IDENTITY = (nn.Module, Tensor, type, FunctionType, BuiltinFunctionType, torch.dtype)
_TRACED: WeakKeyDictionary[nn.Module, tuple[Any, Trace, Graph]] = WeakKeyDictionary()


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
    explainer: Gradient | GradientTimesInput | None = None,
    region: NormBall | None = None,
) -> Margins:
    """Bounds of `pairs` low gaps of each row, differentiable in the weights.

    Of few features, the lowest of each of `pairs` parts of all pairs; of many, the strongest other
    features, each with the one of the weakest in the top k that it is closest to
    (r2et.certify.training_pairs). Where the first layer is not dense, or wide, features
    are bounded one by one instead: the weakest of the top k against the strongest of the rest, the
    second weakest against the second strongest, and so on. radius: one number, or (B,). soft: the
    bound of a unit that may switch has no gradient towards switching less; it is given that of a
    sigmoid this wide. top: (B, k), the features that are to be above the others, by default the top
    k at x. explainer: what to
    bound, with its `of`, sign, groups and baseline. region: what a unit of the radius is for each
    feature, and in which norm; what is frozen does not move, and bounds are left out.
    """
    check_model_input("margins", model, x)
    of, signed = (of, signed) if explainer is None else (explainer.of, explainer.reduce == "signed")
    groups = None if explainer is None else explainer.groups
    member = None if groups is None else membership(groups, x[0].numel()).to(x)  # type: ignore[arg-type]
    check_k("margins", k, x[0].numel() if member is None else member.shape[1])
    norm, scale = (norm, None) if region is None else _unit_of(region, x)
    require(norm in ("l2", "linf"), "margins", "norm", "l2 or linf", norm)
    is_valid = type(pairs) is int and pairs > 0
    require(is_valid, "margins", "pairs", "a positive whole number", pairs)
    reach = torch.as_tensor(radius, dtype=x.dtype, device=x.device)
    if isinstance(radius, Tensor):
        is_valid = bool(((reach >= 0) & (reach < torch.inf)).all())
    else:
        is_valid = 0 <= radius < math.inf
    require(is_valid, "margins", "radius", "0 or more and finite", radius)
    target = target_rows("margins", target, x)
    with undisturbed(model):
        graph = live_graph(model, x)
        at_x, chosen = _point(graph, x, target, of)
        gradient = at_x[graph.gradient].centre.flatten(1)
        ball = Ball(x, reach.expand(len(x)), norm, soft=soft, scale=scale)
        first = _only_dense(graph)
        end = graph.gradient if first is None else graph.nodes[graph.gradient].inputs[0]
        boxes = _boxes(graph, ball, chosen, of, end, at_x)
    contributions = _contributions(explainer, ball, member)
    if contributions is not None:
        scores = contributions.at_x(gradient)
    else:
        scores = gradient if member is None else gradient @ member
    choice = PairChoice(scores.detach(), k, pairs, signed, top)
    if first is None or scores.shape[1] * len(first) > TABLE_NUMBERS:
        if first is not None:
            extend_boxes(graph, ball, boxes, graph.gradient, at_x)
        box = boxes[graph.gradient]
        if contributions is not None:
            box = contributions.box(box)
        elif member is not None:
            box = _summed(box, member)
        low, features = _nested(box, choice)
    elif contributions is not None:
        low, features = contributions.lowest(first, boxes[end], choice)
    else:
        low, features = _paired(first if member is None else first @ member, boxes[end], choice)
    return Margins(low, scores if signed else scores.abs(), features)


def _unit_of(region: NormBall, x: Tensor) -> tuple[Norm, Tensor | None]:
    """The norm of a region, and how far a unit is for each feature: (1, ...), or None for 1."""
    domain = Domain.of_region(region, x)
    plain = region.scale is None and not region.frozen
    return domain.norm, None if plain or domain.scale is None else domain.scale.to(x)


def _contributions(
    explainer: Gradient | GradientTimesInput | None, ball: Ball, member: Tensor | None
) -> Contributions | None:
    """What multiplies the gradient, where something does."""
    if not isinstance(explainer, GradientTimesInput):
        return None
    factor = explainer.multiplier(ball.x).flatten(1)
    columns = torch.eye(factor.shape[1]).to(factor) if member is None else member
    return Contributions(factor, ball.reach.flatten(1), ball.norm, columns)


def _summed(box: Box, member: Tensor) -> Box:
    spread = None if box.spread is None else box.spread.flatten(1) @ member
    return Box(box.centre.flatten(1) @ member, spread)


def live_graph(model: nn.Module, x: Tensor) -> Graph:
    """The model's graph with its very weights, traced anew only where more than these changed."""
    known = _TRACED.get(model)
    key = (_identity(model), tuple(x.shape[1:]), x.dtype)
    if known is not None and known[0] == key:
        traced, graph = known[1:]
        return graph if graph.lasting else build("margins", traced, exact=False)
    traced = trace("margins", model, x)
    graph = build("margins", traced, exact=False)
    if not traced.reads_weights:
        _TRACED[model] = (key, traced, graph)
    return graph


def _identity(model: nn.Module) -> tuple[Any, ...]:
    """What a forward pass may go by: modules, parameters, buffers, hooks, and plain settings."""
    parts: list[Any] = []
    for module in model.modules():
        parts.append(id(module))
        parts += map(id, module._parameters.values())
        parts += map(id, module._buffers.values())
        parts += [_plain(v) for name, v in vars(module).items() if name not in BOOKKEEPING]
    return tuple(parts)


def _plain(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """Numbers and texts, also within containers, arrays and objects; modules and the like by id."""
    if value is None or isinstance(value, int | float | str | bool):
        return value
    if id(value) in seen or isinstance(value, BY_IDENTITY):
        return id(value)
    seen = seen | {id(value)}
    if isinstance(value, dict):
        return tuple((key, _plain(part, seen)) for key, part in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(_plain(part, seen) for part in value)
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tobytes()
    return id(value), _plain(getattr(value, "__dict__", None), seen)


def _boxes(graph: Graph, ball: Ball, target: Tensor, of: Of, end: int, at_x: Boxes) -> Boxes:
    """Those of the value `end` over the ball; what does not depend on x is taken from x itself."""
    if not is_constant(graph.classes, of):
        return interval_bounds(graph, ball, target, of, end=end, point=at_x)
    boxes: Boxes = {INPUT: ball.box(), OUTPUT_GRADIENT: at_x[OUTPUT_GRADIENT]}
    boxes |= {v: at_x[v] for v in graph.ancestors(end) if v in graph.constants and v in at_x}
    extend_boxes(graph, ball, boxes, end, at_x)
    return boxes


def _point(graph: Graph, x: Tensor, target: Tensor | None, of: Of) -> tuple[Boxes, Tensor]:
    """All values at x itself, and the class explained."""
    ball = Ball.point(x)
    boxes: Boxes = {INPUT: ball.box()}
    if target is None or not is_constant(graph.classes, of):
        extend_boxes(graph, ball, boxes, graph.logits, None)
        logits = boxes[graph.logits].centre
    else:
        logits = x.new_zeros(len(x), graph.classes)
    chosen = target_classes("margins", target, logits)
    boxes[OUTPUT_GRADIENT] = Box(output_gradient(logits, chosen, of))
    extend_boxes(graph, ball, boxes, graph.gradient, None)
    return boxes, chosen


def _only_dense(graph: Graph) -> Tensor | None:
    """W (units, n) of the first layer, if it is dense and the only one that sees x."""
    node = graph.nodes.get(graph.gradient)
    if node is None or not isinstance(node.operator, Dense) or node.operator.bias is not None:
        return None
    (source,) = node.inputs
    flat = len(graph.shapes[source]) == 1 == len(graph.shapes[graph.gradient])
    inside = graph.linear_suffix[1]
    return node.operator.matrix.T if flat and inside == [graph.gradient] else None


def _paired(weight: Tensor, box: Box, choice: PairChoice) -> tuple[Tensor, Tensor]:
    """(B, P) bounds and (B, P, 2) features: pairs that one matrix tells apart."""
    top, side = choice.top, choice.side
    centre, columns = box.centre @ weight, weight.T.contiguous()
    with torch.no_grad():
        spread = torch.zeros_like(box.centre) if box.spread is None else box.spread
        if len(columns) <= ALL_PAIRS:
            i, j, sign = lowest_of_hands(weight, box.centre, spread, choice)
        else:
            i, j = choice.candidates(centre, spread @ weight.abs(), side, top)
            own, units = side.gather(1, i), spread[:, None]
            candidates = Candidates(
                i,
                j,
                own * centre.gather(1, i),
                centre.gather(1, j),
                (own[..., None] * units) * F.embedding(i, columns),
                units * F.embedding(j, columns),
            )
            i, j, sign = candidates.lowest(choice.pairs, choice.signed)
        own = side.gather(1, i)
    low = own * centre.gather(1, i) - sign * centre.gather(1, j)
    if box.spread is not None:
        low = low - width_apart(columns, box.spread, i, j, own, sign)
    return low, torch.stack([i, j], 2)


def _nested(gradient: Box, choice: PairChoice) -> tuple[Tensor, Tensor]:
    """Features bounded one by one: the weakest of the top k against the strongest other, ..."""
    top, signed = choice.top, choice.signed
    few = min(choice.pairs, choice.k, top.shape[1] - choice.k)
    centre = gradient.centre.flatten(1)
    spread = None if gradient.spread is None else gradient.spread.flatten(1)
    with torch.no_grad():
        size = centre if signed else centre.abs()
        wide = torch.zeros_like(size) if spread is None else spread
        i = (size - wide).masked_fill(~top, torch.inf).topk(few, dim=1, largest=False).indices
        j = (size + wide).masked_fill(top, -torch.inf).topk(few, dim=1).indices
    own, other = (choice.side * centre).gather(1, i), centre.gather(1, j)
    low = own - (other if signed else other.abs())
    if spread is not None:
        low = low - spread.gather(1, i) - spread.gather(1, j)
    return low, torch.stack([i, j], 2)
