"""Random points within a proved radius: the top k of random networks is what it was."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drawn import FLOATS, SEEDS, balls, groupings, networks, unless_dead
from nets import make, mlp, randn
from r2et.certify import IntervalCertifier
from r2et.explain import Gradient, GradientTimesInput
from r2et.rank import precision_at_k, top_k_mask
from r2et.region import L2, Linf

POINTS = 40


def points_within(region, radius, x, seed):
    """(points, B, ...) uniform in, and at the border of, each row's own ball."""
    generator = torch.Generator().manual_seed(seed)
    for row, size in zip(x, radius.tolist(), strict=True):
        ball = region.scaled(size / region.radius)
        inside = ball.sample(row[None], POINTS, generator=generator)[:, 0]
        noise = torch.randn(POINTS, *row.shape, generator=generator)
        many = row.expand(POINTS, *row.shape)
        yield torch.cat([inside, ball.extreme(many, noise)])


def hunted(model, explainer, region, certificate, x, k, seed):
    """No point within its row's radius has another top k, nor lacks a reason proved to stay."""
    scores = explainer(model, x)
    rows = certificate.radius.nonzero().flatten().tolist()
    for row in rows:
        (points,) = points_within(region, certificate.radius[[row]], x[[row]], seed)
        moved = explainer.at(model, x[[row]])(points)
        clean = scores[[row]].expand_as(moved)
        assert (precision_at_k(clean, moved, k) == 1).all(), f"broken at {certificate.radius[row]}"
    return len(rows)


@given(st.data())
def test_no_random_point_enters_a_certified_radius(data):
    n, dtype = data.draw(st.integers(3, 5)), data.draw(st.sampled_from(FLOATS))
    model = data.draw(networks(n)).to(dtype)
    groups = data.draw(groupings(n))
    columns = n if groups is None else n - sum(len(group) - 1 for group in groups)
    if columns < 2:
        groups, columns = None, n
    k = data.draw(st.integers(1, columns - 1))
    explainer = data.draw(st.sampled_from([Gradient, GradientTimesInput]))(groups=groups)
    x = randn(2, n, seed=data.draw(SEEDS), dtype=dtype).clamp(-3, 3)
    relaxation = data.draw(st.sampled_from(["linear", "interval"]))
    settings = {"relaxation": relaxation, "splits": 0, "tolerance": 0.1}
    if data.draw(st.booleans()):
        region = data.draw(balls(n))
        certifier = IntervalCertifier(region=region, **settings)
    else:
        region = data.draw(st.sampled_from([L2(1.0), Linf(1.0)]))
        certifier = IntervalCertifier(norm="l2" if isinstance(region, L2) else "linf", **settings)
    with unless_dead():
        certificate = certifier(model, explainer, x, k=k)
    assert certificate.sound
    assert (certificate.radius >= 0).all()
    assert certificate.radius.isfinite().all()
    hunted(model, explainer, region, certificate, x, k, data.draw(SEEDS))
    stays = certificate.stays_at(0.0)
    assert not (stays & ~top_k_mask(explainer(model, x), k)).any()


def test_there_was_something_to_be_sound_about():
    """The hunt above on one network with radii, and a false certificate, which it must catch."""
    model, x = make(mlp), randn(4, 6)
    certificate = IntervalCertifier(splits=0)(model, Gradient(), x, k=2)
    assert hunted(model, Gradient(), L2(1.0), certificate, x, 2, 0) == 4
    object.__setattr__(certificate, "radius", certificate.radius + 3.0)
    with pytest.raises(AssertionError, match="broken at"):
        hunted(model, Gradient(), L2(1.0), certificate, x, 2, 0)
