"""The derivative of what is explained by the logits, over a ball."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.bounds.interval_bounds import Ball, Box, between, box_product, box_sum
from r2et.certify.bounds.linear_bounds import LinearBound, linear_bound
from r2et.certify.bounds.rounding import limits
from r2et.explain.base import Of

# Above this many classes the differences of all pairs of logits are not formed.
MANY_CLASSES = 64


def output_gradient(logits: Tensor, target: Tensor, of: Of = "log_odds") -> Tensor:
    """d of / d logits at a point, up to a positive factor: (B, C).

    For the log-odds of class c it is e_c - sum over m != c of p_m e_m, with p the softmax over the
    others. The probability's gradient is p (1 - p) times the log-odds', so their rankings are one.
    """
    count = logits.shape[1]
    sign = -1.0 if of == "loss" else 1.0
    if count == 1:
        return torch.where(target == 1, sign, -sign).to(logits)[:, None]
    own = torch.nn.functional.one_hot(target, count).to(logits)
    if of == "logit":
        return own
    if count == 2:
        return sign * (2 * own - 1)
    return sign * (own - logits.masked_fill(own.bool(), -torch.inf).softmax(1))


def output_gradient_box(logits: Box, target: Tensor, of: Of = "log_odds", unit: float = 0.0) -> Box:
    """The same over all logits of a box.

    p_m = 1 / (1 + sum over l of exp(z_l - z_m)) is largest where z_m is high and the others low.
    """
    count = logits.centre.shape[1]
    if count <= 2 or of == "logit" or logits.spread is None:
        return Box(output_gradient(logits.centre, target, of), None)
    own = torch.nn.functional.one_hot(target, count).bool()
    low, high = logits.low.masked_fill(own, -torch.inf), logits.high.masked_fill(own, -torch.inf)
    most, least = _share(high, low), _share(low, high)
    least, most = least.clamp(min=0), most.clamp(max=1)
    if unit:
        # A share below the normal numbers is good to one of their spacings only.
        least_share = limits(unit)[0] / unit
        noise = 8 * unit * (1 + logits.size.amax(1, keepdim=True)) * (most + least_share)
        least, most = least - noise, most + noise
    sign = -1.0 if of == "loss" else 1.0
    share = between(least, most)
    return Box(sign * (own.to(share.centre) - share.centre), share.spread)


def _share(mine: Tensor, others: Tensor) -> Tensor:
    """exp(mine_m) / (exp(mine_m) + sum over l != m of exp(others_l)): (B, C)."""
    count = mine.shape[1]
    eye = torch.eye(count, dtype=torch.bool, device=mine.device)
    if count <= MANY_CLASSES:
        rest = others[:, None, :].masked_fill(eye, -torch.inf).logsumexp(2)
    else:
        # One by one: all pairs at once would be many.
        rest = torch.stack(
            [others.masked_fill(eye[m], -torch.inf).logsumexp(1) for m in range(count)], 1
        )
    return torch.where(mine == -torch.inf, 0.0, torch.sigmoid(mine - rest))


def output_gradient_bound(logits: LinearBound, target: Tensor, of: Of, ball: Ball) -> LinearBound:
    """The same as a linear bound: the softmax p linearised at the middle of the ball.

    Along a line through the logits with steps D_m, p_m'' = p_m ((D_m - mean)^2 - variance), which
    lies between -1/4 and 1 times p_m R^2, R the range of the D.
    """
    # The line from the centre to any point must not leave the interval.
    low = torch.minimum(logits.low, logits.centre)
    high = torch.maximum(logits.high, logits.centre)
    logits = logits._replace(low=low, high=high)
    box = output_gradient_box(logits.box, target, of, ball.unit)
    own = torch.nn.functional.one_hot(target, logits.centre.shape[1]).bool()
    share = logits.centre.masked_fill(own, -torch.inf).softmax(1)
    jacobian = torch.diag_embed(share) - share[:, :, None] * share[:, None]
    slope = torch.einsum("bmc,bnc->bnm", jacobian, logits.slope.expand(len(share), -1, -1))
    spread = torch.einsum("bmc,bc->bm", jacobian.abs(), logits.spread)
    up = (logits.high - logits.centre).masked_fill(own, -torch.inf).amax(1)
    down = (logits.low - logits.centre).masked_fill(own, torch.inf).amin(1)
    most = torch.where(own, 0.0, box.size.clamp(max=1.0))  # off the class itself, |head| is p
    bend = most * (up - down).square()[:, None]
    noise = 16 * ball.unit * (1 + logits.size.amax(1, keepdim=True))
    sign = -1.0 if of == "loss" else 1.0
    middle = own.to(share) - share - 3 / 16 * bend
    return linear_bound(sign * middle, -sign * slope, spread + 5 / 16 * bend + noise, ball, box)


def is_constant(classes: int, of: Of) -> bool:
    """Whether the output gradient is the same for all logits."""
    return classes <= 2 or of == "logit"


def output_gradient_jacobian(head: Box, logits: Box, target: Tensor, of: Of) -> Box:
    """-(diag(p) - p p') J, p the softmax over the other classes, J (B, n, C) the logits' Jacobian.

    head: the box of the output gradient itself. Entry m is -p_m (J_m - mean of J under p).
    """
    sign = -1.0 if of == "loss" else 1.0
    own = torch.nn.functional.one_hot(target, head.centre.shape[1]).to(head.centre)
    share = Box(own - sign * head.centre, head.spread)
    wide = None if share.spread is None else share.spread[:, None]
    part = box_product(Box(share.centre[:, None], wide), logits)
    spread = None if part.spread is None else part.spread.sum(2, keepdim=True)
    mean = Box(part.centre.sum(2, keepdim=True), spread)
    away = box_sum(logits, mean, (1.0, -1.0))
    return box_product(Box(-sign * share.centre[:, None], wide), away)
