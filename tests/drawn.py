"""What hypothesis draws for property tests: scores with ties, batches, networks, regions, groups.

Numbers come as tensors made from lists of a few values, so that equal ones are frequent.
"""

from contextlib import contextmanager

import torch
from hypothesis import reject
from hypothesis import strategies as st

from nets import make, randn
from r2et.errors import InputError
from r2et.models import MLP
from r2et.region import L2, Linf

FLOATS = (torch.float32, torch.float64)
FEW = st.sampled_from([-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.5])
ANY = {
    torch.float32: st.floats(allow_nan=False, allow_infinity=False, width=32),
    torch.float64: st.floats(allow_nan=False, allow_infinity=False),
}
SEEDS = st.integers(0, 2**31 - 1)


def tensors(draw, rows, n, numbers, dtype):
    values = draw(st.lists(numbers, min_size=rows * n, max_size=rows * n))
    return torch.tensor(values, dtype=dtype).view(rows, n)


@st.composite
def scores(draw, count=1, wide=False):
    """`count` explanations (B, n) of one shape and dtype, and a k below n.

    wide: any finite number, the largest and the smallest included.
    """
    rows, n = draw(st.integers(1, 4)), draw(st.integers(2, 9))
    dtype, k = draw(st.sampled_from(FLOATS)), draw(st.integers(1, n - 1))
    numbers = ANY[dtype] if wide else FEW
    return [tensors(draw, rows, n, numbers, dtype) for _ in range(count)], k


@st.composite
def batches(draw, low=-3.0, high=3.0, shapes=((2,), (5,), (2, 3), (1, 2, 2))):
    """x (B, ...) of some shape and dtype, numbers within low..high."""
    shape = draw(st.sampled_from(shapes))
    dtype, rows = draw(st.sampled_from(FLOATS)), draw(st.integers(1, 4))
    x = randn(rows, *shape, seed=draw(SEEDS), dtype=dtype)
    return (draw(st.sampled_from([0.0, 1.0, 10.0])) * x).clamp(low, high)


@st.composite
def balls(draw, n, low=-3.0, high=3.0):
    """L2 or Linf, with or without bounds around low..high, frozen features and scales."""
    settings = {}
    if draw(st.booleans()):
        settings["bounds"] = draw(st.sampled_from([(low, high), (low - 1, high + 2)]))
    if draw(st.booleans()):
        settings["frozen"] = draw(st.lists(st.integers(0, n - 1), unique=True, max_size=n - 1))
    if draw(st.booleans()):
        sizes = st.sampled_from([0.01, 0.5, 1.0, 7.0])
        settings["scale"] = draw(st.lists(sizes, min_size=n, max_size=n))
    kind, radius = draw(st.sampled_from([L2, Linf])), draw(st.sampled_from([1e-3, 0.3, 1.0, 50.0]))
    return kind(radius, **settings)


@st.composite
def groupings(draw, n):
    """None, or some of n features in groups, each in one at most."""
    if draw(st.booleans()):
        return None
    order, parts = draw(st.permutations(range(n))), []
    while order and draw(st.booleans()):
        size = draw(st.integers(1, len(order)))
        parts.append(order[:size])
        order = order[size:]
    return parts or None


@st.composite
def networks(draw, n, activations=("relu", "leaky_relu", "tanh", "softplus", "sigmoid")):
    """An MLP of n features, of one to three logits."""
    hidden = draw(st.sampled_from([(4,), (8,), (5, 3)]))
    act, classes = draw(st.sampled_from(activations)), draw(st.integers(1, 3))
    seed = draw(SEEDS)
    return make(lambda: MLP(n, hidden, classes=classes, activation=act), seed=seed)


@contextmanager
def unless_dead():
    """An example is left out whose gradient is 0 in every row: it is refused, as it should be."""
    try:
        yield
    except InputError as error:
        if "a gradient of exactly 0 in every row" not in str(error):
            raise
        reject()
