"""Feasible changes: against brute force over raw values, and uniform where that can be counted."""

from itertools import product

import pytest
import torch
from scipy.stats import chisquare, kstest

from r2et.data import Column, Schema, load
from r2et.data.csv_dialect import CsvDialect  # noqa: F401 - in the repr of a schema
from r2et.errors import InputError
from r2et.rank import thickness
from r2et.region import L2, Feasible

AGE = Column("age", "integer", low=20, high=60, fill=30.0, flag=True)
PAY = Column("pay", "number", low=-1.0, high=3.0)
DAY = Column("signed", "date", low=0, high=10)
SEX = Column("sex", "binary", categories=("female", "male"))
JOB = Column("job", "category", categories=("clerk", "cook", "diver"))
PET = Column("pet", "category", categories=("cat", "dog", "emu", "fox"))
OWN = Column("owner", "binary", categories=("no", "yes"))
SCHEMA = Schema((AGE, PAY, DAY, SEX, JOB, PET, OWN))
RAW = {
    "age": [20, 40, 59, None],
    "pay": [3.0, 0.125, -1.0, 1.0],
    "signed": ["1970-01-01", "1970-01-06T12:00", "1970-01-11", "1970-01-02"],
    "sex": ["male", "female", "male", "female"],
    "job": ["cook", "clerk", "diver", "clerk"],
    "pet": ["dog", "cat", "fox", "emu"],
    "owner": ["no", "yes", "yes", "no"],
}
MOVES = {"age": 2, "pay": 0.5, "signed": 1}
LABELS = {"sex": ("female", "male"), "job": JOB.categories, "pet": PET.categories}
LABELS["owner"] = OWN.categories
REGIONS = [
    Feasible(SCHEMA, moves=MOVES, switches=2, grid={"pay": 0.25}),
    Feasible(SCHEMA, moves={"age": 3}),
    Feasible(SCHEMA, switches=1, frozen=["sex"]),
    Feasible(SCHEMA, moves={"signed": 2}, switches=9, frozen=[6, "owner"]),
]
IDS = ["mixed", "one number", "labels", "all switches"]


def rows(dtype=torch.float32):
    return SCHEMA.encode(RAW).to(dtype)


def by_hand(region, row):
    """All feasible rows as the table would hold them, encoded; from settings and RAW alone."""
    moves, grid = dict(region.moves), dict(region.grid)
    values = {}
    for column in SCHEMA.columns:
        now, name = RAW[column.name][row], column.name
        if column.kind in ("binary", "category"):
            values[name] = [now] if name in region.frozen else list(LABELS[name])
        elif now is None or name not in moves:
            values[name] = [now]
        else:
            step = grid.get(name, 1)
            now = float(SCHEMA.encode(RAW)[row, SCHEMA.names.index(name)])
            now = column.low + now * (column.high - column.low)
            now = round(now * 8) / 8  # RAW has eighths at most
            most = int(moves[name] / step)
            around = [now + j * step for j in range(-most, most + 1)]
            values[name] = [v for v in around if column.low <= v <= column.high]
    seen = []
    for cells in product(*values.values()):
        raw = dict(zip(values, cells, strict=True))
        if sum(raw[name] != RAW[name][row] for name in LABELS) <= region.switches:
            seen.append(raw)
    table = {name: [raw[name] for raw in seen] for name in values}
    if isinstance(table["signed"][0], float):
        whole = [f"1970-01-{1 + int(v):02}" for v in table["signed"]]
        times = ["T12:00" if v % 1 else "" for v in table["signed"]]
        table["signed"] = [day + time for day, time in zip(whole, times, strict=True)]
    return SCHEMA.encode(table)


def listed(region, x):
    """What enumerate gives, row by row."""
    seen = [[] for _ in x]
    for index, points in region.enumerate(x):
        for row, point in zip(index.tolist(), points, strict=True):
            seen[row].append(point)
    return [torch.stack(points) for points in seen]


@pytest.mark.parametrize("region", REGIONS, ids=IDS)
def test_enumeration_is_complete_without_duplicates_and_bit_for_bit_what_a_table_holds(region):
    x = rows()
    for row, points in enumerate(listed(region, x)):
        seen = {tuple(point) for point in points.tolist()}
        assert len(seen) == len(points)
        expected = by_hand(region, row)
        if row == 1:  # a time of day, which float32 does not hold to the last bit
            seen = {tuple(round(v, 6) for v in point) for point in seen}
            expected = expected.double().round(decimals=6)
        assert seen == {tuple(point) for point in expected.tolist()}
        assert torch.equal(points[0], x[row])
        assert region.count(x)[row] == len(points) <= region.most


def test_counts_by_hand():
    mixed, one, labels, many = (region.count(rows()).tolist() for region in REGIONS)
    ways = 1 + (1 + 2 + 3 + 1) + (1 * 2 + 1 * 3 + 1 * 1 + 2 * 3 + 2 * 1 + 3 * 1)
    assert mixed == [3 * 3 * 2 * ways, 5 * 5 * 3 * ways, 4 * 3 * 2 * ways, 1 * 5 * 3 * ways]
    assert one == [4, 7, 5, 1]  # at the lowest age, in the middle, near the highest, missing
    assert labels == [7] * 4
    assert many == [n * 2 * 4 for n in (3, 5, 3, 4)]  # sex and pet; index 6 is a job


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("region", REGIONS, ids=IDS)
def test_projection_is_the_nearest_of_all_points(region, dtype):
    x = rows(dtype)
    generator = torch.Generator().manual_seed(0)
    all_points = listed(region, x)
    for size in (0.02, 0.3, 2.0, 100.0):
        for _ in range(15):
            wanted = x + size * torch.randn(x.shape, generator=generator, dtype=dtype)
            projected = region.project(wanted, x)
            assert region.contains(projected, x).all()
            assert torch.equal(region.project(projected, x), projected)
            for row, points in enumerate(all_points):
                target = wanted[row].expand_as(points)
                best = region.distance(points, target).min()
                here = region.distance(projected[row][None], wanted[row][None])[0]
                assert here <= best + 1e-6 * (1 + size)
    assert torch.equal(region.project(x, x), x)


def test_projection_onto_numbers_of_any_value_is_the_nearest_in_between():
    region, x = Feasible(SCHEMA, moves={"pay": 0.5}), rows(torch.float64)
    wanted = x.clone()
    wanted[:, 2] = torch.tensor([0.95, 0.9, 0.3, 0.41], dtype=torch.float64)
    projected = region.project(wanted, x)
    expected = torch.tensor([0.95, (0.125 + 0.5 + 1) / 4, 0.125, 0.41], dtype=torch.float64)
    torch.testing.assert_close(projected[:, 2], expected, rtol=0, atol=1e-12)
    assert torch.equal(projected[[0, 3]], wanted[[0, 3]])
    assert region.contains(projected, x).all()
    assert region.contains(wanted, x).tolist() == [True, False, False, True]
    assert region.count(x).tolist() == [float("inf")] * 4


@pytest.mark.parametrize("region", REGIONS, ids=IDS)
def test_samples_are_uniform_over_all_points(region):
    x = rows()
    drawn = region.sample(x, 20000, generator=torch.Generator().manual_seed(0))
    for row, points in enumerate(listed(region, x)):
        if len(points) == 1:
            assert torch.equal(drawn[:, row], x[row].expand(20000, -1))
            continue
        place = {tuple(point): i for i, point in enumerate(points.tolist())}
        hits = torch.tensor([place[tuple(point)] for point in drawn[:, row].tolist()])
        assert chisquare(hits.bincount(minlength=len(points)).numpy()).pvalue > 1e-3


def test_numbers_of_any_value_are_uniform_between_their_limits():
    region = Feasible(SCHEMA, moves={"pay": 0.5, "age": 1}, switches=1)
    points = region.sample(rows(), 20000, generator=torch.Generator().manual_seed(0))
    assert all(region.contains(part, rows()).all() for part in points[:50])
    for row, (low, high) in enumerate([(0.875, 1.0), (0.15625, 0.40625), (0.0, 0.125)]):
        share = (points[:, row, 2].double() - low) / (high - low)
        assert kstest(share.numpy(), "uniform").pvalue > 0.01


def test_antithetic_samples_mirror_numbers_and_repeat_under_a_seed():
    region, x = REGIONS[0], rows()[1:2]
    one, two = (
        region.sample(x, 10, generator=torch.Generator().manual_seed(1), antithetic=True)
        for _ in range(2)
    )
    assert torch.equal(one, two)
    torch.testing.assert_close(one[:5, :, 0] + one[5:, :, 0], (2 * x[:, 0]).expand(5, 1))
    assert thickness(lambda z: z.abs() + 0.1 * z.flip(1), x, 3, region=region).isfinite().all()


@pytest.mark.parametrize("region", REGIONS, ids=IDS)
def test_what_a_table_could_not_hold_never_comes_out(region):
    x = rows()
    for points in region.sample(x, 200, generator=torch.Generator().manual_seed(2)):
        assert ((points >= 0) & (points <= 1)).all()
        for group in SCHEMA.groups:
            assert (points[:, group].sort(dim=1).values[:, -1] == 1).all()
            assert (points[:, group].sum(1) == 1).all()
        before, after = ([SCHEMA.decode(row) for row in part] for part in (x, points))
        assert torch.equal(points[:, 1], x[:, 1])  # the missing-flag
        assert points[3, 0] == x[3, 0]  # a missing age
        for old, new in zip(before, after, strict=True):
            assert sum(old[name] != new[name] for name in LABELS) <= region.switches
            assert all(old[name] == new[name] for name in region.frozen)
            assert new["age"] is None or new["age"] == round(new["age"])


@pytest.mark.parametrize("region", REGIONS, ids=IDS)
def test_varying_one_column_stays_inside_and_reaches_every_value(region):
    x = rows()
    at = region.sample(x, generator=torch.Generator().manual_seed(3))[0]
    everything = listed(region, x)
    for column, name in enumerate(region.columns):
        points = torch.cat(list(region.vary(x, at, column, 16)))
        for part in points:
            assert region.contains(part, x).all()
        feature = SCHEMA.names.index(next(n for n in SCHEMA.names if n.startswith(name)))
        width = len(next(c for c in SCHEMA.columns if c.name == name).features)
        width = 1 if name == "age" else width
        for row, all_points in enumerate(everything):
            span = slice(feature, feature + width)
            wanted = {tuple(v) for v in all_points[:, span].tolist()}
            assert {tuple(v) for v in points[:, row, span].tolist()} == wanted


def test_distance_counts_moves_and_switches():
    region, x = REGIONS[0], rows()[1:2]
    there = SCHEMA.encode({name: [cells[1]] for name, cells in RAW.items()} | {"age": [41]})
    assert region.distance(there, x).item() == pytest.approx(0.5)
    there[:, 5:8] = torch.tensor([0.0, 0.0, 1.0])
    there[:, 4] = 1.0
    assert region.distance(there, x).item() == pytest.approx(2.5)
    assert region.contains(there, x).all()
    there[:, 12] = 0.0  # a third switch
    assert region.distance(there, x).item() == pytest.approx(3.5)
    assert not region.contains(there, x).any()
    assert region.distance(x, x).item() == 0


def test_moves_count_in_standard_deviations_when_units_say_so():
    data = load("adult")
    units = data.schema.deviations(data.train.x)
    region = Feasible(data.schema, moves=0.5, units=units, frozen=["race", "sex"])
    age, hours = (int(units[name] / 2) for name in ("age", "hours per week"))
    assert region.most == (2 * age + 1) * (2 * hours + 1) == region.count(data.test.x[:50]).max()


def test_an_integer_that_is_not_whole_stays():
    x = rows()[1:2]
    x[0, 0] = 0.5 + 0.0125  # 40.5 years: a median filled in
    assert Feasible(SCHEMA, moves={"age": 2}, switches=1).count(x).item() == 8


def test_a_feasible_region_is_a_value():
    region = Feasible(SCHEMA, moves={"pay": 1, "age": 2}, switches=1, frozen=[7, "sex"])
    same = Feasible(SCHEMA, moves={"age": 2.0, "pay": 1.0}, switches=1, frozen=("sex", "job"))
    assert region == same
    assert hash(region) == hash(same)
    assert eval(repr(region)) == region


BIG = Schema((Column("sum", "integer", low=0, high=10_000_000), SEX))
FEASIBLE = Feasible(SCHEMA, moves={"age": 2}, switches=1)


def broken(feature, value):
    x = rows()
    x[1, feature] = value
    return x


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Feasible(SCHEMA, moves={"agee": 2}),
            "moves must be of columns age, pay, signed, sex, job, pet, owner (did you mean 'age'?),"
            " got 'agee'.",
        ),
        (
            lambda: Feasible(SCHEMA, switches=1, frozen=["jobs"]),
            "frozen must be of columns age, pay, signed, sex, job, pet, owner "
            "(did you mean 'job'?), got 'jobs'.",
        ),
        (
            lambda: Feasible(SCHEMA, switches=1, frozen=[99]),
            "frozen must be column names or feature indices in 0..12, got 99.",
        ),
        (
            lambda: Feasible(SCHEMA, switches=1, frozen="sex"),
            "frozen must be a list of column names or feature indices, got sex.",
        ),
        (
            lambda: Feasible(SCHEMA, moves={"age": -1}),
            "moves of 'age' must be 0 or more, got -1.0.",
        ),
        (lambda: Feasible(SCHEMA, moves=-1), "moves must be 0 or more, got -1."),
        (lambda: Feasible(SCHEMA, moves={"age": "2"}), "moves of 'age' must be a number, got 2."),
        (
            lambda: Feasible(SCHEMA, moves=[2, 3]),
            "moves must be numbers by column name, such as {'age': 2}, got [2, 3].",
        ),
        (
            lambda: Feasible(SCHEMA, moves={"age": 0.5}),
            "moves of 'age' must be 0, or at least its step of 1 (or freeze it), got 0.5.",
        ),
        (
            lambda: Feasible(SCHEMA, moves={"job": 1}),
            "moves must be for numbers, integers and dates (give switches for labels), "
            "got 'job', a category.",
        ),
        (
            lambda: Feasible(SCHEMA, moves={"age": 1}, frozen=["age"]),
            "frozen must be columns without moves of their own, got ['age'].",
        ),
        (
            lambda: Feasible(SCHEMA, moves={"age": 1}, grid={"age": 0.5}),
            "grid of 'age' must be a positive whole number, got 0.5.",
        ),
        (
            lambda: Feasible(SCHEMA, moves=1, units={"age": 2}),
            "units must be given for every column that moves, got ['pay', 'signed'].",
        ),
        (
            lambda: Feasible(SCHEMA, moves={"age": 0}),
            "moves, switches and frozen must be such that at least one column may change, "
            "got nothing that can change.",
        ),
        (
            lambda: Feasible(SCHEMA, switches=-1),
            "switches must be a whole number, 0 or more, got -1.",
        ),
        (
            lambda: Feasible(None, switches=1),
            "schema must be a table's schema, such as load_table(...).schema, got None.",
        ),
        (
            lambda: FEASIBLE.check(broken(5, 0.5)),
            "x must be one-hot in 'job', got x[1] with [0.5, 0.0, 0.0].",
        ),
        (lambda: FEASIBLE.check(broken(4, 0.5)), "x must be 0 or 1 in 'sex', got x[1] with [0.5]."),
        (
            lambda: FEASIBLE.check(broken(0, 1.5)),
            "x must be in 0..1, as the schema encodes rows, got x[1] with 'age' = 1.5.",
        ),
        (
            lambda: FEASIBLE.check(rows()[:, :5]),
            "x must be of shape (B, 13), the schema's features, "
            "got float32 tensor of shape (4, 5) on cpu.",
        ),
        (
            lambda: Feasible(BIG, moves={"sum": 9}).check(torch.zeros(1, 2)),
            "x must be of a type in which steps of 1 in 'sum' differ (use x.double(), or a grid of "
            "at least 5), got float32 tensor of shape (1, 2) on cpu.",
        ),
        (
            lambda: list(FEASIBLE.enumerate(rows(), limit=30)),
            "x must be rows of at most 30 feasible points (the limit), got x[1] with 40.",
        ),
        (
            lambda: FEASIBLE.project(rows().double(), rows()),
            "x_adv must be torch.float32 as x is, got float64 tensor of shape (4, 13) on cpu.",
        ),
        (
            lambda: FEASIBLE.project(rows() / 0, rows()),
            "x_adv must be finite, got NaN or infinity in 4 of 4 rows, first in row 0.",
        ),
        (
            lambda: FEASIBLE.distance(rows()[:, :5], rows()[:, :5]),
            "x must be of shape (B, 13), got float32 tensor of shape (4, 5) on cpu.",
        ),
        (lambda: FEASIBLE.sample(rows(), 0), "count must be a positive whole number, got 0."),
    ],
)
def test_bad_input_gets_one_sentence(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == f"Feasible: {message}"


def test_only_a_ball_has_a_gaussian_distribution():
    with pytest.raises(
        InputError, match=r"^thickness: region must be a ball, L2 or Linf, got Feas"
    ):
        thickness(lambda z: z, rows(), 3, region=FEASIBLE, distribution="gaussian")
    estimate = thickness(lambda z: z, rows(), 3, region=L2(0.1), distribution="gaussian")
    assert estimate.isfinite().all()


@pytest.mark.parametrize("region", REGIONS, ids=IDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_box_is_exactly_what_numbers_move(region, dtype):
    x = rows(dtype)
    measured = [i for i, name in enumerate(SCHEMA.names) if name in ("age", "pay", "signed")]
    farthest = torch.zeros(x.shape, dtype=torch.float64)
    for which, points in region.enumerate(x):
        away = (points.double() - x[which].double()).abs()
        farthest[which] = torch.maximum(farthest[which], away)
    labels = [i for i in range(x.shape[1]) if i not in measured]
    box = region.box(x)
    assert torch.equal(box[:, measured], farthest[:, measured])
    assert not bool(box[:, labels].any())


def test_the_box_of_numbers_of_any_value_holds_every_sample():
    region = Feasible(SCHEMA, moves={"pay": 0.5})
    x = rows()
    away = (region.sample(x, 500).double() - x.double()).abs()
    box = region.box(x)
    assert bool((away <= box).all())
    pay = SCHEMA.names.index("pay")
    torch.testing.assert_close(away[..., pay].amax(0), box[:, pay], atol=0.0, rtol=0.02)
    assert float(box[1, pay]) == pytest.approx(0.125)  # half a unit of four


@pytest.mark.parametrize("region", REGIONS, ids=IDS)
def test_the_first_points_are_the_ways_to_switch_labels(region):
    x = rows()
    measured = [i for i, name in enumerate(SCHEMA.names) if name in ("age", "pay", "signed")]
    ways = region.nth(x, torch.arange(region.ways)[:, None].expand(-1, len(x)))
    assert torch.equal(ways[..., measured], x[:, measured].expand(region.ways, -1, -1))
    for row in range(len(x)):
        assert len(ways[:, row].unique(dim=0)) == region.ways


def test_reaches_are_in_raw_units():
    region = Feasible(SCHEMA, moves={"age": 2.5, "pay": 9.0})
    assert region.reaches == (("age", 2.0), ("pay", 4.0))  # whole steps, and the whole range
