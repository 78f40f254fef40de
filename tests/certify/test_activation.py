"""The ranges and lines of every curve, against brute force over random intervals."""

import pytest
import torch

from r2et.certify.operators.curves import curve

CASES = {
    "relu": ("relu", 0.0),
    "leaky": ("leaky_relu", 0.01),
    "steep": ("leaky_relu", 1.7),
    "negative": ("leaky_relu", -0.3),
    "softplus": ("softplus", 1.0),
    "sharp softplus": ("softplus", 7.0),
    "soft leaky": ("softplus", 4.0, 0.99, 0.01),
    "soft negative": ("softplus", 2.0, 1.3, -0.3),
    "tanh": ("tanh",),
    "sigmoid": ("sigmoid",),
    "elu": ("elu", 1.0),
    "elu of 0.4": ("elu", 0.4),
    "silu": ("silu",),
    "gelu": ("gelu", "none"),
    "gelu by tanh": ("gelu", "tanh"),
}


def intervals(count=1000, points=400):
    """Random intervals, wide and narrow, near 0 and far, and points in each, ends included."""
    generator = torch.Generator().manual_seed(0)
    draw = lambda: torch.rand(count, generator=generator, dtype=torch.float64)  # noqa: E731
    middle = 8 * (draw() - 0.5) * draw()
    width = 10 ** (4 * draw() - 3)
    low, high = middle - width / 2, middle + width / 2
    low[:50], high[50:100] = 0.0, 0.0  # the kink at an end
    low, high = torch.minimum(low, high), torch.maximum(low, high)
    share = torch.linspace(0, 1, points, dtype=torch.float64)[:, None]
    return low, high, low + share * (high - low)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_ranges_are_exact(name, order):
    kind = curve(*CASES[name])
    low, high, points = intervals()
    least, most = kind.range(order, low, high)
    values = kind.curves[order](points)
    if kind.kink is not None and order:
        # At a kink the derivative is any number between its limits.
        around = (low <= 0) & (high >= 0)
        ends = torch.tensor([kind.left[order], kind.right[order]], dtype=torch.float64)
        values = torch.cat([values, torch.where(around, ends[:, None], values[:1])])
        values[0] = torch.where(low == 0, kind.left[order], values[0])
    assert bool((least <= values.amin(0) + 1e-12).all())
    assert bool((most >= values.amax(0) - 1e-12).all())
    # No wider than the sampled range by more than the samples' spacing explains.
    bend = 40.0 if "sharp" in name else 10.0
    room = bend**order * (high - low) / 400 + 1e-9
    assert bool((values.amin(0) - least <= room).all())
    assert bool((most - values.amax(0) <= room).all())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_each_curve_is_the_derivative_of_the_one_before(name, order):
    kind = curve(*CASES[name])
    z = torch.linspace(-4.03, 4.01, 97, dtype=torch.float64)
    step = 1e-5
    slope = (kind.curves[order - 1](z + step) - kind.curves[order - 1](z - step)) / (2 * step)
    assert torch.allclose(kind.curves[order](z), slope, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", [0, 1])
def test_the_curve_stays_between_its_lines(name, order):
    kind = curve(*CASES[name])
    low, high, points = intervals()
    rate, least, most = kind.line(order, low, high)
    left = kind.curves[order](points) - rate * points
    assert bool((least <= left.amin(0) + 1e-12).all())
    assert bool((most >= left.amax(0) - 1e-12).all())
    # And no further off than a constant would be.
    bottom, top = kind.range(order, low, high)
    assert bool((most - least <= top - bottom + 1e-15).all())
