"""Regions around any batch: projections and samples are inside, and nothing inside is nearer."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from drawn import SEEDS, balls, batches
from nets import randn
from r2et.data import Column, Schema
from r2et.region import Feasible

SCHEMA = Schema(
    (
        Column("age", "integer", low=20, high=60, fill=30.0, flag=True),
        Column("pay", "number", low=-1.0, high=3.0),
        Column("sex", "binary", categories=("female", "male")),
        Column("job", "category", categories=("clerk", "cook", "diver")),
    )
)


def ulps(x, ball):
    """What rounding in x's type may do to a distance in this ball's measure."""
    scale = torch.as_tensor(1.0 if ball.scale is None else ball.scale, dtype=torch.float64)
    numbers = (x.flatten(1).double().abs() + ball.radius * scale) / scale
    return 16 * torch.finfo(x.dtype).eps * numbers.sum(1)


@given(st.data())
def test_projections_are_inside_and_nearest(data):
    x = data.draw(batches())
    n = x[0].numel()
    ball = data.draw(balls(n))
    far = x + data.draw(st.sampled_from([0.1, 1.0, 1e4])) * randn(
        *x.shape, seed=data.draw(SEEDS), dtype=x.dtype
    )
    given_x, given_far = x.clone(), far.clone()
    near = ball.project(far, x)
    assert torch.equal(x, given_x)
    assert torch.equal(far, given_far)
    assert near.shape == x.shape
    assert near.dtype == x.dtype
    assert ball.contains(near, x).all()
    again = ball.project(near, x)
    assert (ball.distance(again, near) <= ulps(near, ball)).all()
    inside = ball.contains(far, x)
    assert (ball.distance(near, far)[inside] <= ulps(far, ball)[inside]).all()
    for point in ball.sample(x, 8, generator=torch.Generator().manual_seed(data.draw(SEEDS))):
        assert ball.contains(point, x).all()
        slack = ulps(far, ball) + ulps(x, ball)
        assert (ball.distance(near, far) <= ball.distance(point, far) + slack).all()


@given(st.data())
def test_samples_and_extremes_are_inside(data):
    x = data.draw(batches())
    ball = data.draw(balls(x[0].numel()))
    settings = {name: data.draw(st.booleans()) for name in ("antithetic", "shared")}
    count = data.draw(st.integers(1, 5))
    points = ball.sample(x, count, **settings)
    assert points.shape == (count, *x.shape)
    assert all(ball.contains(point, x).all() for point in points)
    assert torch.equal(points, ball.sample(x, count, **settings))
    far = ball.extreme(x, randn(*x.shape, seed=data.draw(SEEDS)))
    assert ball.contains(far, x).all()
    assert (ball.distance(far, x) <= ball.radius + ulps(x, ball)).all()
    assert (ball.distance(x, x) == 0).all()
    twice = ball.scaled(2.0)
    assert all(twice.contains(point, x).all() for point in points)


@given(st.data())
def test_feasible_changes_are_rows_of_the_table(data):
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64]))
    table = {
        "age": data.draw(
            st.lists(st.one_of(st.none(), st.integers(20, 60)), min_size=2, max_size=2)
        ),
        "pay": data.draw(st.lists(st.floats(-1.0, 3.0), min_size=2, max_size=2)),
        "sex": data.draw(st.lists(st.sampled_from(("female", "male")), min_size=2, max_size=2)),
        "job": data.draw(
            st.lists(st.sampled_from(SCHEMA.columns[3].categories), min_size=2, max_size=2)
        ),
    }
    x = SCHEMA.encode(table).to(dtype)
    region = Feasible(
        SCHEMA,
        moves={"age": data.draw(st.integers(1, 3)), "pay": data.draw(st.sampled_from([0.0, 0.5]))},
        switches=data.draw(st.integers(0, 2)),
    )
    far = x + randn(*x.shape, seed=data.draw(SEEDS), dtype=dtype)
    near = region.project(far, x)
    assert region.contains(near, x).all()
    assert torch.equal(region.project(near, x), near)
    for point in region.sample(x, 4):
        assert region.contains(point, x).all()
        assert (region.distance(near, far) <= region.distance(point, far) + 1e-4).all()
    # A label is one of its column's, and a flagged value stays.
    job = near[:, [SCHEMA.names.index(name) for name in SCHEMA.names if name.startswith("job")]]
    assert (job.sum(1) == 1).all()
    missing = torch.tensor([value is None for value in table["age"]])
    age = SCHEMA.names.index("age")
    assert torch.equal(near[missing][:, age], x[missing][:, age])
