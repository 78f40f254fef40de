"""Explanations of random networks: columns are sums, batches are their rows, nothing is touched."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from contracts import assert_untouched, state_of
from drawn import FLOATS, SEEDS, groupings, networks, unless_dead
from nets import randn
from r2et.explain import Gradient, GradientTimesInput, IntegratedGradients, SmoothGrad
from r2et.models import predict

KINDS = (
    Gradient,
    lambda **settings: Gradient(of="probability", **settings),
    GradientTimesInput,
    lambda **settings: SmoothGrad(samples=2, sigma=0.1, **settings),
    lambda **settings: IntegratedGradients(points=2, **settings),
)


@given(st.data())
def test_scores_of_any_network(data):
    n, dtype = data.draw(st.integers(2, 6)), data.draw(st.sampled_from(FLOATS))
    model = data.draw(networks(n)).to(dtype)
    x = randn(data.draw(st.integers(1, 4)), n, seed=data.draw(SEEDS), dtype=dtype)
    kind, groups = data.draw(st.sampled_from(KINDS)), data.draw(groupings(n))
    before, given_x = state_of(model), x.clone()
    with unless_dead():
        single = kind(reduce="signed")(model, x)
    assert single.shape == (len(x), n)
    assert single.dtype == dtype
    assert single.isfinite().all()

    scores = kind(reduce="signed", groups=groups)(model, x)
    owner = {feature: min(group) for group in groups or () for feature in group}
    firsts = sorted({owner.get(feature, feature) for feature in range(n)})
    for place, first in enumerate(firsts):
        members = [f for f in range(n) if owner.get(f, f) == first]
        torch.testing.assert_close(scores[:, place], single[:, members].sum(1))
    assert scores.shape == (len(x), len(firsts))
    torch.testing.assert_close(kind(groups=groups)(model, x), scores.abs())

    # One row at a time, another chunk, and the predicted class by name: the same.
    with unless_dead():
        rows = torch.cat([kind(reduce="signed")(model, row[None]) for row in x])
    torch.testing.assert_close(rows, single, atol=1e-5, rtol=1e-4)
    chunked = kind(reduce="signed", chunk=data.draw(st.integers(1, 5)))(model, x)
    torch.testing.assert_close(chunked, single, atol=1e-5, rtol=1e-4)
    assert torch.equal(kind(reduce="signed")(model, x, predict(model, x)), single)
    assert torch.equal(x, given_x)
    assert_untouched(model, before)


@given(st.data())
def test_normalized_scores_sum_to_one_or_are_all_zero(data):
    n = data.draw(st.integers(2, 6))
    model = data.draw(networks(n))
    x = data.draw(st.sampled_from([0.0, 1.0, 1e3])) * randn(3, n, seed=data.draw(SEEDS))
    with unless_dead():
        total = data.draw(st.sampled_from(KINDS))(normalize=True)(model, x).abs().sum(1)
    assert (((total - 1).abs() < 1e-4) | (total == 0)).all()
