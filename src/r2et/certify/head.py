"""The derivative of what is explained by the logits, over a ball."""

from __future__ import annotations

import torch
from torch import Tensor

from r2et.certify.boxes import Ball, Box, between
from r2et.certify.forms import Form, formed
from r2et.certify.rounding import limits
from r2et.explain.base import Of

# Above this many classes the differences of all pairs of logits are not formed.
MANY_CLASSES = 64


def head_at(logits: Tensor, target: Tensor, of: Of = "log_odds") -> Tensor:
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


def head_box(logits: Box, target: Tensor, of: Of = "log_odds", unit: float = 0.0) -> Box:
    """The same over all logits of a box.

    p_m = 1 / (1 + sum over l of exp(z_l - z_m)) is largest where z_m is high and the others low.
    """
    count = logits.centre.shape[1]
    if count <= 2 or of == "logit" or logits.spread is None:
        return Box(head_at(logits.centre, target, of), None)
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


def head_form(logits: Form, target: Tensor, of: Of, ball: Ball) -> Form:
    """The same as a form: the softmax p linearised at the middle of the ball.

    Along a line through the logits with steps D_m, p_m'' = p_m ((D_m - mean)^2 - variance), which
    lies between -1/4 and 1 times p_m R^2, R the range of the D.
    """
    # The line from the centre to any point must not leave the interval.
    low = torch.minimum(logits.low, logits.centre)
    high = torch.maximum(logits.high, logits.centre)
    logits = logits._replace(low=low, high=high)
    box = head_box(Box(*_middle(logits)), target, of, ball.unit)
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
    return formed(sign * middle, -sign * slope, spread + 5 / 16 * bend + noise, ball, box)


def constant_form(centre: Tensor, n: int) -> Form:
    """What is the same everywhere, for an input of n numbers."""
    none = torch.zeros_like(centre)
    return Form(centre, centre.new_zeros(1, n, *centre.shape[1:]), none, centre, centre)


def _middle(form: Form) -> tuple[Tensor, Tensor]:
    return (form.low + form.high) / 2, (form.high - form.low) / 2
