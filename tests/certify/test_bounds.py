"""Every value, derivative and gradient on the way lies where the bounds say, in float32 too."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from nets import ResidualNet, make, randn
from r2et.certify.boxes import Ball, Box, backward, forward
from r2et.certify.features import gradient_box
from r2et.certify.forms import backward_forms, formed, forward_forms
from r2et.certify.head import _middle, constant_form, head_at, head_box, head_form
from r2et.certify.pairs import Pairs, scores_over
from r2et.certify.question import Question
from r2et.certify.rounding import unit_of
from r2et.certify.splitting import Parts, _empty, _split
from r2et.certify.tracing import trace
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.region import L2, Linf

POINTS = 150


class Twice(nn.Module):
    """The same layers twice, differences, constants on either side, a sum before the first bend."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Linear(6, 6), nn.Linear(6, 6, bias=False), nn.Linear(6, 3)

    def forward(self, x):
        z = 0.3 - (x + self.a(x)) / 2
        z = z - self.b(torch.nn.functional.gelu(self.a(z) * 1.5))
        return -self.out(torch.nn.functional.elu(z, 0.7))


def pools(pool):
    first = nn.Conv2d(1, 4, 3, padding=1, stride=2, bias=False)
    second = nn.Conv2d(4, 4, 2, groups=2, dilation=2, padding=1)
    norm = nn.BatchNorm2d(4, affine=False)
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    return nn.Sequential(first, norm, nn.SiLU(), pool, second, nn.Tanh(), nn.Flatten())


def scaled():
    norm = nn.BatchNorm1d(5)
    norm.running_mean.fill_(100.0)
    return nn.Sequential(norm, nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 2))


MODELS = {
    **{
        act: (lambda act=act: MLP(5, (8, 7, 6), classes=2, activation=act), (5,))
        for act in ("relu", "leaky_relu", "softplus", "tanh", "sigmoid", "elu", "silu", "gelu")
    },
    "four classes": (lambda: MLP(5, (8, 7), classes=4, activation="tanh"), (5,)),
    "twice": (Twice, (6,)),
    "scaled": (scaled, (5,)),
    "linear": (lambda: nn.Linear(40, 2), (40,)),
    "residual": (lambda: ResidualNet(1, nn.LeakyReLU), (1, 4, 4)),
    "max": (lambda: pools(nn.MaxPool2d(2, 1, padding=1)), (1, 5, 5)),
    "average": (lambda: pools(nn.AvgPool2d(2, 1, padding=1)), (1, 5, 5)),
    "adaptive": (lambda: pools(nn.AdaptiveAvgPool2d(2)), (1, 5, 5)),
}


def setting(name, norm, radius, dtype=torch.float32, rows=4):
    """A question of a few rows, points around them (POINTS + 1, B, ...), and balls of these."""
    build, shape = MODELS[name]
    model = make(build, dtype=dtype)
    x = randn(rows, *shape, dtype=dtype)
    question = Question.pose("test", model, Gradient(), x, 2, None)
    region = (L2 if norm == "l2" else Linf)(radius)
    points = region.sample(x, POINTS, generator=torch.Generator().manual_seed(1))
    if norm == "linf":
        points[::2] = x + radius * (points[::2] - x).sign()
    far = region.distance(points.flatten(0, 1).double(), x.double().repeat(POINTS, *shape_of(x)))
    ball = question.ball(far.view(POINTS, -1).amax(0), norm)
    return model, question, ball, torch.cat([x[None], points])


def shape_of(x):
    return [1] * (x.ndim - 1)


def holds(form, found, move):
    """found (S, B, ...) is in the form and in its interval, for moves (S, B, n)."""
    found = found.double()
    slope = form.slope.expand(move.shape[1], *form.slope.shape[1:]).flatten(2)
    line = torch.einsum("sbn,bnh->sbh", move, slope).view(found.shape) + form.centre
    slack = 1e-13 * (1 + line.abs())
    assert bool(((found - line).abs() <= form.spread + slack).all())
    assert bool((found >= form.low - slack).all())
    assert bool((found <= form.high + slack).all())


@pytest.mark.parametrize("radius", [1e-6, 0.05, 0.5])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", MODELS)
def test_forms_and_boxes_hold_what_float32_computes(name, norm, radius):
    model, question, ball, points = setting(name, norm, radius)
    program, rows = question.program, len(question.x)
    # The same steps in the model's own arithmetic, at points.
    plain, flat = trace("test", model, points[0]), points.flatten(0, 1)
    at = forward(plain, Ball(flat, flat.new_zeros(len(flat)), "l2", exact=True))
    target = question.target.repeat(len(points))
    logits = at.boxes[plain.output].centre
    slope, seen_at = Box(head_at(logits, target)), {}
    ends_at = backward(plain, at, slope, seen=seen_at)
    found = backward(plain, at, slope, to_input=True)
    assert torch.allclose(logits, model(flat), atol=1e-5)
    move = (points.double() - question.x).flatten(2)

    lines = forward_forms(program, ball)
    boxes = forward(program, ball)
    each = [(v, at.boxes[i].centre, boxes.boxes[i]) for i, v in lines.values.items()]
    each += [(v, at.slopes[i].centre, boxes.slopes[i]) for i, v in lines.slopes.items()]
    if program.classes > 2:
        head = head_form(lines.values[program.output], question.target, "log_odds", ball)
    else:
        point = head_at(question.x.new_zeros(rows, 2), question.target)
        head = constant_form(point, move.shape[2])
    seen, seen_boxes = {}, {}
    ends = backward_forms(program, lines, head, ball, seen)
    wide = head_box(boxes.boxes[program.output], question.target, "log_odds", ball.unit)
    end_boxes = backward(program, boxes, wide, ball.unit, seen=seen_boxes)
    last = backward(program, boxes, wide, ball.unit, to_input=True)
    each += [(v, seen_at[i].centre, seen_boxes[i]) for i, v in seen.items()]
    each += [(v, ends_at[i].centre, end_boxes[i]) for i, v in ends.items()]
    for form, value, box in each:
        value = value.view(len(points), rows, *value.shape[1:])
        holds(form, value, move)
        assert bool((value >= box.low - 1e-13).all())
        assert bool((value <= box.high + 1e-13).all())
    a = found[0].centre.view(len(points), rows, -1)
    assert bool((a >= last[0].low.flatten(1)).all())
    assert bool((a <= last[0].high.flatten(1)).all())

    pairs = Pairs(scores_over(program, ball, question.target, "log_odds"), ball.radius, norm, False)
    every = torch.arange(a.shape[2]).expand(rows, -1)
    gap = pairs.gaps(question.side, every, every)
    real = (question.side * a)[..., :, None] - a.abs()[..., None, :]
    assert bool((gap <= real.amin(0)).all())
    low, high = pairs.interval()
    assert bool(((low <= a) & (a <= high)).all())


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_entries_that_tie_at_the_edge_of_the_ball_may_both_be_the_largest(first):
    model = nn.Sequential(nn.MaxPool2d((1, 2)), nn.Flatten()).eval()
    x = torch.tensor([first, 1 - first]).view(1, 1, 1, 2)
    question = Question.pose("test", model, Gradient(of="logit"), x, 1, 1)
    ball = question.ball(torch.tensor([0.5], dtype=torch.float64), "linf")
    edge = torch.full_like(x, 0.5)
    found = torch.stack([Gradient(of="logit", reduce="signed")(model, z, 1) for z in (x, edge)])
    pairs = Pairs(
        scores_over(question.program, ball, question.target, "logit"), ball.radius, "linf", True
    )
    box = gradient_box(question, ball)
    for low, high in (pairs.interval(), (box.low.flatten(1), box.high.flatten(1))):
        assert bool(((low <= found.flatten(2)) & (found.flatten(2) <= high)).all())


@pytest.mark.parametrize("of", ["log_odds", "loss"])
@pytest.mark.parametrize("radius", [0.02, 0.2, 1.0])
def test_the_softmax_of_the_others_is_held(of, radius):
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator).double()  # noqa: E731
    centre, slope, spread = 2 * draw(40, 4), 2 * draw(40, 3, 4), radius * draw(40, 4).abs()
    ball = Ball(
        draw(40, 3), torch.full((40,), radius, dtype=torch.float64), "linf", unit_of(torch.float64)
    )
    logits = formed(centre, slope, spread, ball, None)
    move = radius * (2 * torch.rand(400, 40, 3, generator=generator).double() - 1)
    move[::2] = radius * move[::2].sign()
    inside = 2 * torch.rand(400, 40, 4, generator=generator).double() - 1
    at = centre + torch.einsum("sbn,bnc->sbc", move, slope) + spread * inside.sign()
    target = torch.randint(4, (40,), generator=generator)
    found = head_at(at.flatten(0, 1), target.repeat(400), of).view(400, 40, 4)
    holds(head_form(logits, target, of, ball), found, move)
    box = head_box(Box(*_middle(logits)), target, of)
    assert bool(((box.low - 1e-12 <= found) & (found <= box.high + 1e-12)).all())


def rims(layer, x, radius):
    """Points (30, B, n) where the plane of each unit, if it does, cuts the sphere of each row."""
    for weight, bias in zip(layer.weight, layer.bias, strict=True):
        unit = weight / weight.norm()
        far = -(x @ weight + bias) / weight.norm() * (1 + 1e-6)  # just beyond
        aside = randn(30, *x.shape, dtype=x.dtype)
        aside = nn.functional.normalize(aside - (aside @ unit)[..., None] * unit, dim=2)
        wide = (radius.square() - far.square()).clamp(min=0).sqrt()
        move = far[:, None] * unit + wide[:, None] * aside
        yield x + torch.where((far.abs() < radius)[:, None], move * (1 - 1e-12), 0.0)


@pytest.mark.parametrize("depth", [1, 3, 5])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("act", ["relu", "leaky_relu"])
def test_parts_cover_the_ball(act, norm, depth):
    """Every point is in a part on the right sides of its units, and none is in an empty part."""
    _, question, ball, points = setting(act, norm, 0.8, torch.float64, rows=12)
    program, rows = question.program, torch.arange(len(question.x))
    if norm == "l2":
        points = torch.cat([points, *rims(program.steps[0].kind, question.x, ball.radius)])
    parts = Parts(rows, question.x, ball.radius, {})
    smaller = emptied = 0
    for _ in range(depth):
        here = replace(question.rows(parts.rows), x=parts.x)
        weights, planes = {}, {}
        scores_over(
            *(program, here.ball(parts.radius, norm), here.target, here.of),
            **{"sides": parts.sides, "weights": weights, "planes": planes},
        )
        going = torch.ones(len(parts.rows), dtype=torch.bool)
        pick = torch.cat(list(weights.values()), 1).argmax(1)
        parts = _split(parts, weights, planes, going, pick, norm)
        smaller += int((parts.radius < ball.radius[parts.rows]).sum())
    flat = points.flatten(0, 1)
    at = forward(program, Ball(flat, flat.new_zeros(len(flat)), "l2", exact=True))
    here = replace(question.rows(parts.rows), x=parts.x)
    planes = {}
    scores_over(
        *(program, here.ball(parts.radius, norm), here.target, here.of),
        **{"sides": parts.sides, "weights": {}, "planes": planes},
    )
    empty = _empty(question, ball.radius, parts, planes, torch.zeros(len(parts.rows)) > 0)
    covered = torch.zeros(len(points), len(rows), dtype=torch.bool)
    for p, row in enumerate(parts.rows.tolist()):
        gone = points[:, row] - parts.x[p]
        far = gone.norm(dim=1) if norm == "l2" else gone.abs().amax(1)
        held = far <= parts.radius[p] * (1 + 1e-9)
        for i, side in parts.sides.items():
            z = at.boxes[program.steps[i - 1].inputs[0]].centre.view(*points.shape[:2], -1)[:, row]
            inside = (side[p] * z >= 0).all(1)
            held &= inside
        if norm == "l2" and bool(empty[p]):
            emptied += 1
            assert not bool(held.any())
        covered[:, row] |= held
    assert bool(covered.all())
    assert norm == "linf" or depth == 1 or (smaller > 0 and emptied > 0)
