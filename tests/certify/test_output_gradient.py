"""The softmax of the other classes: where it bends most, and what float32 makes of it."""

import pytest
import torch

from r2et.certify.bounds.interval_bounds import Ball, Box
from r2et.certify.bounds.linear_bounds import linear_bound
from r2et.certify.bounds.output_gradient import output_gradient_bound, output_gradient_box
from r2et.certify.bounds.rounding import unit_of
from r2et.models.output import log_odds


@pytest.mark.parametrize("of", ["log_odds", "loss"])
@pytest.mark.parametrize(
    ("logits", "steps"),
    [
        # p'' = -p R^2 / 4: a small share that stays, between two large ones that part.
        ([-12.0, 0.0, 0.0], [0.0, 1.0, -1.0]),
        # p'' = p R^2: a small share against all others.
        ([-12.0, 0.0], [1.0, -1.0]),
        ([-12.0, 0.0, 0.0], [-1.0, 1.0, 1.0]),
    ],
)
def test_a_small_share_bends_as_far_as_it_is_given(logits, steps, of):
    radius = 1 / 64
    start, slope = (torch.tensor([0.0, *v], dtype=torch.float64) for v in (logits, steps))
    ball = Ball(torch.zeros(1, 1).double(), torch.full((1,), radius).double(), "linf")
    line = linear_bound(start[None], slope[None, None], torch.zeros_like(start)[None], ball, None)
    form = output_gradient_bound(line, torch.tensor([0]), of, ball)
    move = torch.linspace(-radius, radius, 41, dtype=torch.float64)[:, None]
    sizes = (start + move * slope)[:, 1:].exp()
    found = (1.0 if of == "loss" else -1.0) * sizes / sizes.sum(1, keepdim=True)
    left = found - (form.centre + move * form.slope[0])[:, 1:]
    share = left.abs().amax(0) / form.spread[0, 1:]
    assert bool((share <= 1 + 1e-9).all())
    assert float(share[0]) > 0.9
    assert bool((found >= form.low[:, 1:] - 1e-15).all())
    assert bool((found <= form.high[:, 1:] + 1e-15).all())


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_shares_hold_what_float32_makes_of_large_logits(size):
    """torch takes exp(z - lse), and lse is rounded to the spacing of numbers of its size."""
    generator = torch.Generator().manual_seed(0)
    logits = size + torch.randn(200, 4, generator=generator)
    target = torch.zeros(200, dtype=torch.long)
    point = logits.clone().requires_grad_()
    (found,) = torch.autograd.grad(log_odds(point, target).sum(), point)
    found, centre, none = found.double(), logits.double(), torch.zeros(200, 4).double()
    ball = Ball(torch.zeros(200, 1).double(), none[:, 0], "l2", unit_of(torch.float32))
    form = output_gradient_bound(
        linear_bound(centre, none[:, None], none, ball, None), target, "log_odds", ball
    )
    box = output_gradient_box(Box(centre, none), target, "log_odds", ball.unit)
    for low, high in (
        (box.low, box.high),
        (form.low, form.high),
        (form.centre - form.spread, form.centre + form.spread),
    ):
        assert bool(((low <= found) & (found <= high)).all())
