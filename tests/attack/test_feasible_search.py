"""The worst feasible change: brute force says the same, a search comes close, nothing is harmed."""

import copy

import pytest
import torch
from torch import nn

from nets import make
from r2et.attack import ERAttack, FeasibleSearch, feasible_search
from r2et.attack.judge import Judge
from r2et.attack.problem import AttackProblem
from r2et.data import Column, Schema
from r2et.errors import InputError
from r2et.explain import Captum, Gradient, IntegratedGradients
from r2et.models import MLP, predict
from r2et.rank import precision_at_k
from r2et.region import L2, Feasible

SCHEMA = Schema(
    (
        Column("age", "integer", low=20, high=60, fill=30.0, flag=True),
        Column("pay", "number", low=-1.0, high=3.0),
        Column("sex", "binary", categories=("female", "male")),
        Column("job", "category", categories=("clerk", "cook", "diver")),
        Column("pet", "category", categories=("cat", "dog", "emu", "fox")),
    )
)
REGION = Feasible(SCHEMA, moves={"age": 3, "pay": 1}, grid={"pay": 0.5}, switches=2, frozen=["sex"])
K = 4


def rows(count=60, seed=0):
    """Rows of the table, some at the ends of its ranges, some with a missing age."""
    generator = torch.Generator().manual_seed(seed)

    def pick(most):
        return torch.randint(most, (count,), generator=generator).tolist()

    ages = [None if v == 41 else 20 + min(v, 40) for v in pick(42)]
    raw = {"age": ages, "pay": [-1 + v / 4 for v in pick(17)]}
    for column in SCHEMA.columns[2:]:
        raw[column.name] = [column.categories[v] for v in pick(len(column.categories))]
    return SCHEMA.encode(raw)


def network(seed=0):
    """A network so steep that its reasons change within the table."""
    model = make(lambda: MLP(len(SCHEMA.names), (16, 16), classes=2, activation="softplus"), seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 3
    return model


def brute_force(model, explainer, x, region=REGION, k=K):
    """The smallest P@k of each row over all its points of the same prediction, one by one."""
    worst = torch.ones(len(x))
    clean, label = explainer(model, x), predict(model, x)
    for index, points in region.enumerate(x):
        scores = explainer(model, points, label[index])
        precision = precision_at_k(clean[index], scores, k)
        precision = torch.where(predict(model, points) == label[index], precision, 1.0)
        worst[index] = torch.minimum(worst[index], precision)
    return worst


@pytest.mark.parametrize("explainer", [Gradient(), Captum("Saliency")], ids=["ours", "captum"])
def test_enumeration_finds_the_worst_case(explainer):
    model, x = network(), rows()
    attack = FeasibleSearch(REGION)
    result = attack(model, explainer, x, k=K)
    assert attack.exact(x).all()
    worst = brute_force(model, explainer, x)
    assert torch.equal(result.precision, worst)
    assert len(worst.unique()) >= 3  # there is something to find
    assert REGION.contains(result.x_adv, x).all()


def test_every_feasible_point_is_proposed(monkeypatch):
    monkeypatch.setattr(feasible_search, "CHUNK_NUMBERS", 1)  # many small batches
    model, x = make(lambda: nn.Linear(len(SCHEMA.names), 2)), rows(6)  # its ranking never changes
    problem = AttackProblem.from_model("test", model, Gradient(), REGION, x, K, None)
    attack, judge = FeasibleSearch(REGION), Judge(problem, "best", 1.0)
    seen = [{tuple(row)} for row in x.tolist()]
    steps = 0
    for points, index, _ in attack.propose(problem, judge, torch.Generator()):
        steps += 1
        for point, row in zip(points.tolist(), index.tolist() * 8, strict=False):
            seen[row].add(tuple(point))
    assert [len(points) for points in seen] == REGION.count(x).tolist()
    assert attack.length == steps  # so the progress bar ends where it should


def test_the_search_climbs_only_where_the_prediction_is_kept():
    model, x = network(), rows(20)
    problem = AttackProblem.from_model("test", model, Gradient(), REGION, x, K, None)
    best = feasible_search.Incumbents(problem, torch.arange(len(x)))
    points = REGION.sample(x, 200, generator=torch.Generator().manual_seed(0))
    best.offer(points)
    assert (predict(model, points.flatten(0, 1)) != problem.label.repeat(200)).any()
    assert torch.equal(predict(model, best.point), problem.label)
    precision = problem.precision(problem.explain(points.flatten(0, 1)))
    lowest = precision.masked_fill(~problem.kept(points.flatten(0, 1)), 1.0).view(200, -1).amin(0)
    assert torch.equal(problem.precision(problem.explain(best.point)), lowest)


def test_rows_do_not_depend_on_their_company():
    model, x = network(), rows()
    whole = FeasibleSearch(REGION)(model, Gradient(), x, k=K)
    parts = FeasibleSearch(REGION, chunk=7, progress=True)(model, Gradient(), x, k=K)
    assert torch.equal(whole.precision, parts.precision)
    single = FeasibleSearch(REGION)(model, Gradient(), x[5:6], k=K)
    assert torch.equal(single.precision, whole.precision[5:6])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_search_finds_nearly_all_that_enumeration_finds(seed):
    model, x = network(seed), rows(100, seed)
    region = Feasible(SCHEMA, moves={"age": 6, "pay": 1.5}, grid={"pay": 0.25}, switches=2)
    exact = FeasibleSearch(region)(model, Gradient(), x, k=K).precision
    attack = FeasibleSearch(region, limit=0)
    assert not attack.exact(x).any()
    precision = attack(model, Gradient(), x, k=K).precision
    assert (precision >= exact).all()
    assert (precision == exact).float().mean() >= 0.95
    assert (1 - precision).sum() >= 0.95 * (1 - exact).sum()


def test_a_search_over_any_value_comes_close_to_a_dense_grid():
    model, x = network(), rows()
    any_value = Feasible(SCHEMA, moves={"pay": 1})
    dense = Feasible(SCHEMA, moves={"pay": 1}, grid={"pay": 0.001})
    precision = FeasibleSearch(any_value)(model, Gradient(), x, k=K).precision
    worst = brute_force(model, Gradient(), x, dense)
    assert (worst < 1).any()
    assert (precision <= worst).float().mean() >= 0.95


def test_some_rows_are_tried_wholly_and_others_searched():
    model, x = network(), rows()
    count = REGION.count(x)
    limit = int(count.median())
    attack = FeasibleSearch(REGION, limit=limit)
    exact = attack.exact(x)
    assert torch.equal(exact, count <= limit)
    assert 0 < exact.sum() < len(x)
    result = attack(model, Gradient(), x, k=K)
    assert torch.equal(result.precision[exact], brute_force(model, Gradient(), x)[exact])


@pytest.mark.parametrize("limit", [10_000, 0], ids=["enumeration", "search"])
@pytest.mark.parametrize(
    "explainer",
    [Gradient(), IntegratedGradients(points=4), Captum("Saliency")],
    ids=["gradient", "integrated", "captum"],
)
def test_contract(limit, explainer):
    model, x = network().train(), rows(20)
    state, before = copy.deepcopy(model.state_dict()), x.clone()
    attack = FeasibleSearch(REGION, limit=limit, starts=3)
    one, two = (
        attack(model, explainer, x, k=K, generator=torch.Generator().manual_seed(5))
        for _ in range(2)
    )
    for a, b in zip(one, two, strict=True):
        assert torch.equal(a, b)
    assert model.training
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    assert torch.equal(x, before)
    assert REGION.contains(one.x_adv, x).all()
    assert one.kept.all()
    assert torch.equal(predict(model, one.x_adv), predict(model, x))
    clean, label = explainer(model, x), predict(model, x)
    scores = explainer(model, one.x_adv, label)
    assert torch.equal(one.precision, precision_at_k(clean, scores, K))
    assert ((one.first_flip >= 0) == (one.precision < 1)).all()
    torch.testing.assert_close(one.distance, REGION.distance(one.x_adv, x))


def test_other_attacks_stay_in_a_feasible_region():
    model, x = network(), rows(20)
    result = ERAttack(REGION, steps=5, step_size=3.0)(model, Gradient(), x, k=K)
    assert REGION.contains(result.x_adv, x).all()
    assert result.kept.all()
    worst = brute_force(model, Gradient(), x)
    assert (result.precision >= worst).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: FeasibleSearch(L2(1.0)),
            "region must be a Feasible, got L2(radius=1.0, bounds=None, frozen=(), scale=None).",
        ),
        (
            lambda: FeasibleSearch(REGION, keep="last"),
            "keep must be best (a search has no last), got last.",
        ),
        (
            lambda: FeasibleSearch(REGION, limit=-1),
            "limit must be a whole number, 0 or more, got -1.",
        ),
        (
            lambda: FeasibleSearch(REGION, values=1),
            "values must be a whole number, 2 or more, got 1.",
        ),
    ],
)
def test_bad_input_gets_one_sentence(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == f"FeasibleSearch: {message}"
