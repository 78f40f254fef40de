"""The parts of StrongAttack and what the judge notes, each against a small case done by hand."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nets import make, mlp, randn
from r2et.attack import ERAttack, MinimumNorm, RandomSearch, StrongAttack
from r2et.attack.constraints import Multipliers
from r2et.attack.judge import Judge, Proposal
from r2et.attack.local_search import climb, crossings, meet, nearest_units, replaced
from r2et.attack.objectives import border_gap
from r2et.attack.pgd import ProjectedDescent, held
from r2et.attack.problem import AttackProblem
from r2et.attack.random_search import push_out, scatter
from r2et.attack.surrogate import preactivations
from r2et.explain import Gradient
from r2et.models import MLP, SiameseCNN
from r2et.models.output import classes
from r2et.rank import precision_at_k
from r2et.region import L2, Linf


class Scores(nn.Module):
    """Two classes whose log-odds have the gradient x + 5 itself: points are explanations."""

    def forward(self, x):
        odds = (x + 5).square().sum(1) / 2
        return torch.stack([torch.zeros_like(odds), odds], 1)


def posed(x, k=2, region=None):
    return AttackProblem.from_model("test", Scores(), Gradient(), region or L2(100.0), x, k, None)


# Clean scores 9, 8, 6, 5: the top two are the first two.
CLEAN = torch.tensor([[4.0, 3.0, 1.0, 0.0]])
SAME, NEARER, ONE, NONE = (
    torch.tensor([row]) - 5
    for row in ([9.0, 8, 6, 5], [9.0, 8, 7.5, 5], [9.0, 6, 8, 5], [5.0, 6, 8, 9])
)


def test_keys_count_what_is_left_and_then_the_margin():
    problem = posed(CLEAN)
    points = torch.cat([SAME, NEARER, ONE, NONE])
    # margin over the mean score: (8 - 6) / 7, (8 - 7.5) / 7.375, (9 - 5) / 7; no one is left last
    margin = torch.tensor([2 / 7, 0.5 / 7.375, 4 / 7, 0.0], dtype=torch.float64)
    expected = torch.tensor([2, 2, 1, 0]) + margin / (1 + margin)
    torch.testing.assert_close(problem.keys(problem.explain(points)), expected, atol=1e-6, rtol=0)
    picked = problem.keys(problem.explain(points[1:3]), torch.tensor([0, 0]))
    torch.testing.assert_close(picked, expected[1:3], atol=1e-6, rtol=0)


def test_the_judge_keeps_the_nearer_of_two_that_lose_nothing():
    rows = torch.tensor([0])
    for keep, expected in (("best", CLEAN), ("margin", NEARER)):
        judge = Judge(posed(CLEAN), keep, 1.0)
        judge(Proposal(torch.cat([SAME, NEARER]), rows))
        assert torch.equal(judge.x_adv, expected)
        judge(Proposal(torch.cat([SAME, ONE]), rows))
        assert torch.equal(judge.x_adv, ONE)
        judge(Proposal(torch.cat([NEARER, SAME]), rows))  # nearer, but nothing lost
        assert torch.equal(judge.x_adv, ONE)
        assert len(judge.open_rows()) == 1
        judge(Proposal(NONE, rows))
        assert len(judge.open_rows()) == 0
        assert torch.equal(judge.result().x_adv, NONE)
        assert judge.result().precision.item() == 0


def test_a_row_that_came_nearer_but_lost_nothing_comes_back_clean():
    judge = Judge(posed(CLEAN), "margin", 1.0)
    judge(Proposal(NEARER, torch.tensor([0])))
    result = judge.result()
    assert torch.equal(result.x_adv, CLEAN)
    assert (result.precision.item(), result.distance.item()) == (1.0, 0.0)


@pytest.mark.parametrize(("flip_below", "expected"), [(1.0, [5, 2]), (0.5, [6, -1])])
def test_steps_are_counted_point_by_point_and_row_by_row(flip_below, expected):
    """Row 0 gets six points in three proposals, row 1 two in one of them."""
    judge = Judge(posed(CLEAN.repeat(2, 1)), "best", flip_below)
    first, both = torch.tensor([0]), torch.tensor([0, 1])
    judge(Proposal(torch.cat([SAME, SAME]), first))
    judge(Proposal(torch.cat([SAME, SAME, SAME, ONE]), both))  # points, then rows: row 1's second
    judge(Proposal(torch.cat([ONE, NONE]), first))
    assert judge.first_flip.tolist() == expected
    assert judge.seen.tolist() == [6, 2]


def test_flip_below_of_an_attack_reaches_the_judge():
    model, x = make(lambda: mlp(act="tanh")), randn(60, 6)
    early, late = (
        RandomSearch(L2(1.0), points=60, flip_below=f)(model, Gradient(), x, k=3)
        for f in (1.0, 0.5)
    )
    assert torch.equal(early.precision, late.precision)
    assert torch.equal(late.first_flip > 0, late.precision < 0.5)
    assert torch.equal(early.first_flip > 0, early.precision < 1)
    assert (late.first_flip > early.first_flip)[late.first_flip > 0].any()


def test_climbing_goes_on_where_no_feature_is_lost_yet():
    """The nearest flip is some steps of the climb away: only the margin shows the way."""
    x = torch.tensor([[4.0, 3.0, -3.0, -3.5, -4.0]])
    problem = posed(x, region=L2(3.6))
    seen = {}
    for keep in ("best", "margin"):
        judge, generator = Judge(problem, keep, 1.0), torch.Generator().manual_seed(0)
        for proposal in climb(problem, judge, generator, 30, 8):
            assert problem.region.contains(proposal.points, x.repeat(8, 1)).all()
            judge(proposal)
        seen[keep] = float(problem.keys(problem.explain(judge.x_adv)))
    # Straight towards a tie of the second and the third, the gap of 6 shrinks by 3.6 sqrt(2).
    least = (6 - 3.6 * 2**0.5) / problem.explain(x).abs().mean()
    assert seen["best"] == pytest.approx(2.5, abs=0.2)
    assert seen["margin"] < 2 + 1.5 * least


def test_a_climb_in_a_box_also_moves_few_coordinates_and_mostly_to_faces():
    x = randn(3, 40)
    problem = posed(x, k=5, region=Linf(0.5))
    generator = torch.Generator().manual_seed(0)
    best = x + 0.1
    spread = problem.region.sample(x, 50, generator=generator) - x
    points = replaced(problem, best, spread, generator)
    moved = points != best
    assert moved.float().mean().item() == pytest.approx(0.1, abs=0.01)
    face = ((points - x).abs() - 0.5).abs() < 1e-6
    assert (face & moved).sum().item() / moved.sum().item() == pytest.approx(0.7, abs=0.05)


def test_points_are_pushed_out_to_corners_and_to_spheres():
    x = randn(4, 5).clamp(-1, 1)
    points = x.repeat(3, 1) + 0.1 * randn(12, 5)
    points[0] = x[0]  # nowhere to go
    box = Linf(0.5, bounds=(-1.2, 1.2), frozen=[2], scale=(1, 2, 1, 1, 1))
    out = push_out(posed(x, region=box), points)
    reach = 0.5 * torch.tensor([1.0, 2, 0, 1, 1]) * (points - x.repeat(3, 1)).sign()
    torch.testing.assert_close(out, (x.repeat(3, 1) + reach).clamp(-1.2, 1.2))
    ball = L2(0.5)
    out = push_out(posed(x, region=ball), points)
    far = ball.distance(out, x.repeat(3, 1))
    torch.testing.assert_close(far, torch.tensor([0.0] + [0.5] * 11).double())
    assert (
        F.cosine_similarity(out[1:] - x.repeat(3, 1)[1:], points[1:] - x.repeat(3, 1)[1:]).min()
        > 0.999
    )


def test_scatter_draws_each_row_the_points_it_was_promised():
    x = randn(7, 6)
    problem = posed(x, region=Linf(0.2))
    for edge in (False, True):
        judge, count = Judge(problem, "best", 1.0), 0
        for proposal in scatter(problem, judge, torch.Generator(), 11, edge=edge):
            count += len(proposal.points)
            move = proposal.points - x.repeat(len(proposal.points) // 7, 1)
            on_face = ((move.abs() - 0.2).abs() < 1e-6).float().mean().item()
            assert on_face == (1.0 if edge else pytest.approx(0, abs=0.01))
        assert count == 7 * 11


def test_a_held_step_stops_before_the_decision_boundary():
    """A linear model: boundaries are planes, and what lies along them is left alone."""
    model = nn.Linear(3, 2, bias=False)
    model.weight.data = torch.tensor([[0.0, 0, 0], [2.0, 0, 0]])  # log-odds 2 x_0
    x = torch.tensor([[1.0, 0, 0], [1.0, 0, 0], [-1.0, 0, 0]])
    problem = AttackProblem.from_model("test", model, Gradient(), L2(9.0), x, 1, None)
    move = torch.tensor([[-3.0, 1, 0], [-0.5, 1, 0], [3.0, 0, 2]])
    expected = torch.tensor([[-0.9, 1, 0], [-0.5, 1, 0], [0.9, 0, 2]])
    torch.testing.assert_close(held(problem, x, move), expected)
    across = torch.tensor([[-1.0, 0, 0], [1.0, 0, 0], [-1.0, 0, 0]])  # row 0 is on the wrong side
    assert held(problem, across, torch.zeros_like(x))[0, 0].item() == pytest.approx(0.9)


def test_meet_is_the_shortest_step_to_two_planes():
    u, v = randn(4, 5, 6, seed=1).double(), randn(4, 5, 6, seed=2).double()
    for share in (1.0, 0.99):
        d = meet(u, v, share)
        torch.testing.assert_close((u * d).sum(2), (u * u).sum(2))
        torch.testing.assert_close((v * d).sum(2), share * (v * v).sum(2))
        for i in range(5):  # in the span of both, so nothing shorter does it
            both = torch.stack([u[0, i], v[0, i]], 1)
            back = both @ torch.linalg.lstsq(both, d[0, i]).solution
            torch.testing.assert_close(back, d[0, i])
    assert not meet(u, 2 * u, 1.0).any()


def test_crossings_switch_what_they_say():
    """Each single step changes the sign of its unit; with two, of both, or of the first alone."""
    model, x = make(lambda: MLP(12, (6,)), seed=1), randn(5, 12)
    problem = AttackProblem.from_model("test", model, Gradient(), L2(9.0), x, 4, None)
    steps = crossings(problem, x, torch.Generator(), 6)
    count, pairs = 6, 15
    assert len(steps) == count + 3 * pairs + count
    unit = lambda at: model.layers[0](at) > 0  # noqa: E731
    clean = unit(x)
    switched = torch.stack([unit(x + 1.001 * s) != clean for s in steps])  # (C, B, units)
    assert switched[:count].diagonal(dim1=0, dim2=2).all()
    both, first, second = switched[count : count + 3 * pairs].split(pairs)
    assert (both.sum(2) >= 2).all()
    # One of each pair and just not the other: across one plane fewer, at least by itself.
    assert (first.sum(2) < both.sum(2)).float().mean() > 0.5
    assert (second.sum(2) < both.sum(2)).float().mean() > 0.5
    assert not torch.equal(first, second)
    # The last are those that, by the linear model, stay in the class.
    margin = classes(model(x + steps[-1])) == classes(model(x))
    assert margin.float().mean() > 0.5


def test_momentum_adds_up_unit_directions():
    model, x = make(lambda: mlp(act="tanh")), randn(4, 6)
    problem = AttackProblem.from_model("test", model, Gradient(), L2(9.0), x, 2, None)
    judge = Judge(problem, "last", 1.0)
    descent = ProjectedDescent(border_gap, 2, size=lambda _: 0.1, own=True, momentum=0.5)
    points = [p.points for p in descent(problem, judge)]

    def unit(at):
        slope = descent.gradient(problem, at)[1]
        return slope / slope.norm(dim=1, keepdim=True)

    one = x - 0.1 * unit(x)
    push = 0.5 * unit(x) + unit(one)
    two = one - 0.1 * push / push.norm(dim=1, keepdim=True)
    torch.testing.assert_close(points[0], one)
    torch.testing.assert_close(points[1], two)


def test_through_keeps_a_given_target():
    """Of three classes, another than the predicted is explained: by transfer, too."""
    model, x = make(lambda: mlp(act="tanh", classes=3)), randn(40, 6)
    target = (classes(model(x)) + 1) % 3
    attack = ERAttack(L2(1.0), steps=10, step_size=0.1, keep="last")
    through = ERAttack(L2(1.0), steps=10, step_size=0.1, keep="last", through=Gradient())
    direct = attack(model, Gradient(), x, k=2, target=target)
    assert torch.equal(through(model, Gradient(), x, k=2, target=target).x_adv, direct.x_adv)
    assert not torch.equal(attack(model, Gradient(), x, k=2).x_adv, direct.x_adv)


@pytest.mark.parametrize("through", [None, Gradient(of="probability")])
def test_one_run_gives_the_best_and_the_last(through):
    model, x = make(lambda: mlp(act="tanh")), randn(40, 6)
    attack = ERAttack(L2(6.0), steps=40, step_size=0.3, through=through, chunk=17)
    best, last = attack.best_and_last(model, Gradient(), x, k=2)
    for keep, found in (("best", best), ("last", last)):
        alone = replace(attack, keep=keep)(model, Gradient(), x, k=2)
        assert torch.equal(found.precision, alone.precision)
        assert torch.equal(found.kept, alone.kept)
        assert torch.equal(found.first_flip, alone.first_flip)
        torch.testing.assert_close(found.x_adv, alone.x_adv)
    assert bool((best.precision < last.precision).any())  # the two do differ here
    assert not bool(last.kept.all())


def test_the_last_point_with_its_prediction_kept():
    """Against attacks of every shorter length, whose last points are this one's way."""
    model, x = make(lambda: mlp(act="tanh")), randn(40, 6)
    attack = ERAttack(L2(6.0), steps=20, step_size=0.3, keep="last_kept")
    expected, reached = x.clone(), torch.zeros(40, dtype=torch.bool)
    for steps in range(1, 21):
        last = replace(attack, steps=steps, keep="last")(model, Gradient(), x, k=2)
        expected[last.kept] = last.x_adv[last.kept]
        reached |= last.kept
    result = attack(model, Gradient(), x, k=2)
    torch.testing.assert_close(result.x_adv, expected)
    assert result.kept.all()
    assert reached.any()
    assert not last.kept.all()  # there is something to keep
    assert (result.precision[~last.kept] < 1).any()  # which "last" counts as unmoved


def test_minimum_norm_asks_the_strong_attack_about_the_given_target(monkeypatch):
    """Nothing but StrongAttack searches: what it finds for the rows left over is taken over."""
    model, x = make(lambda: mlp(classes=3)), randn(12, 6)
    target = (classes(model(x)) + 1) % 3
    for part in ("scatter", "_cross_nearest", "_newton", "_descend_within", "_walk", "_shrink"):
        monkeypatch.setattr(f"r2et.attack.minimum_norm.{part}", lambda *_, **__: iter(()))
    region = L2(1.5)
    result = MinimumNorm(region, budget="fast")(model, Gradient(), x, k=2, target=target)
    strong = StrongAttack(region, budget="fast")(model, Gradient(), x, k=2, target=target)
    assert torch.equal(result.x_adv, strong.x_adv)
    assert result.radius.isfinite().any()
    again = Gradient()(model, result.x_adv, target)
    expected = precision_at_k(Gradient()(model, x, target), again, 2)
    torch.testing.assert_close(result.precision, expected)


def test_the_bar_ends_where_it_should(monkeypatch):
    """Whatever finishes early or takes more points than planned, the whole is the whole."""
    from contextlib import contextmanager

    steps, totals = [], []

    @contextmanager
    def bar(_, total, show):
        assert show
        totals.append(total)
        yield steps.append

    monkeypatch.setattr("r2et.attack.base.bar", bar)
    model, x = make(mlp), randn(7, 6)
    for attack in (
        StrongAttack(L2(0.5), budget="fast", chunk=3, progress=True),
        MinimumNorm(L2(2.0), budget="fast", progress=True),
        ERAttack(L2(0.5), steps=5, step_size=0.1, progress=True),
        RandomSearch(L2(0.5), points=3, progress=True),
    ):
        steps.clear()
        attack(model, Gradient(), x, k=1)
        assert min(steps) >= 0
        assert sum(steps) == totals[-1] == 7 * attack.length


class Functional(nn.Module):
    """A network whose kinks are functions of its forward."""

    def __init__(self, first, second, act):
        super().__init__()
        self.first, self.second, self.act = first, second, act

    def forward(self, x):
        return self.second(self.act(self.first(x)))


@pytest.mark.parametrize(
    ("act", "kinks"),
    [
        (torch.relu, (0,)),
        (F.relu, (0,)),
        (lambda z: F.relu(z, inplace=True), (0,)),
        (lambda z: F.leaky_relu(z, 0.2), (0,)),
        (lambda z: z.clamp(min=0), (0,)),
        (lambda z: F.prelu(z, torch.tensor([0.1])), (0,)),
        (F.relu6, (0, 6)),
        (lambda z: F.hardtanh(z, -0.5, 0.5), (-0.5, 0.5)),
        (nn.ReLU(), (0,)),
        (nn.Hardtanh(), (-1, 1)),
        (nn.Threshold(0.3, 0.0), (0.3,)),
        (torch.tanh, ()),
    ],
)
def test_kinks_are_seen_however_they_are_called(act, kinks):
    first, second = make(lambda: nn.Linear(6, 5)), make(lambda: nn.Linear(5, 2))
    model, x = Functional(first, second, act), randn(4, 6)
    with torch.no_grad():
        seen = preactivations(model, x)
        expected = [first(x) - kink for kink in kinks]
    assert len(seen) == len(expected)
    for a, b in zip(seen, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_a_function_is_crossed_as_a_module_is():
    build = lambda: MLP(12, (32,))  # noqa: E731
    model, x = make(build, seed=1), randn(40, 12)
    first, second = model.layers[0], model.layers[-1]
    twin = Functional(first, second, lambda z: F.leaky_relu(z, 0.01))
    torch.testing.assert_close(twin(x), model(x))
    result = [
        MinimumNorm(Linf(0.2), budget="fast")(net, Gradient(), x, k=4).radius
        for net in (model, twin)
    ]
    torch.testing.assert_close(result[0], result[1], rtol=1e-4, atol=1e-6)
    assert result[0].isfinite().any()


def test_of_many_units_the_nearest_are_crossed():
    """One hidden layer: a unit's distance is |a| / ||w||, here told from a few random moves."""
    model, x = make(lambda: MLP(12, (400,)), seed=1), randn(20, 12)
    model.layers[0].weight.data *= torch.logspace(-1, 1, 400)[:, None]  # of very different slopes
    model.layers[0].bias.data *= torch.logspace(-1, 1, 400)
    problem = AttackProblem.from_model("test", model, Gradient(), L2(0.5), x, 4, None)
    values = model.layers[0](x)
    far = values.abs() / model.layers[0].weight.norm(dim=1)
    chosen = nearest_units(problem, x, values, torch.Generator().manual_seed(0), 40)
    true = far.topk(40, largest=False).indices
    hit = (chosen[:, :, None] == true[:, None]).any(2).float().mean()
    assert hit > 0.6  # of a choice at random 0.1, of the smallest pre-activations 0.3
    steps = crossings(problem, x, torch.Generator().manual_seed(0), 40)[:40]
    torch.testing.assert_close(
        steps.norm(dim=2).T, far.gather(1, chosen).clamp(max=1.0), rtol=1e-3, atol=1e-6
    )


def test_a_judge_of_several_rows_takes_each_rows_own_top_k():
    x = torch.cat([CLEAN, CLEAN.flip(1)])
    judge = Judge(posed(x), "margin", 1.0)
    points = torch.cat([SAME, SAME.flip(1), NEARER, NEARER.flip(1)])
    judge(Proposal(points, torch.tensor([0, 1])))
    assert torch.equal(judge.x_adv, torch.cat([NEARER, NEARER.flip(1)]))


def test_the_strong_attack_uses_its_parts(monkeypatch):
    """Judged by margin; descents hold the class, gather momentum, and start at the worst so far."""
    made, starts, judges = [], [], []

    class Noted(ProjectedDescent):
        def __call__(self, problem, judge, start=None, *, same=True):
            made.append(self)
            starts.append((start, judge.x_adv.clone()))
            judges.append(judge)
            return super().__call__(problem, judge, start, same=same)

    monkeypatch.setattr("r2et.attack.strong.ProjectedDescent", Noted)
    model, x = make(lambda: MLP(12, (16,)), seed=1), randn(20, 12)
    StrongAttack(L2(0.5))(model, Gradient(), x, k=4)
    assert all(d.hold and d.own and d.momentum > 0 for d in made)
    assert all(judge.keep == "margin" for judge in judges)
    around = [(start - best).norm(dim=1) for start, best in starts if start is not None]
    assert len(around) == len(made) // 2
    assert max(float(far.max()) for far in around) < 0.26  # half a random move


def test_a_climb_in_a_box_proposes_both_kinds():
    x = randn(2, 40)
    problem = posed(x, k=5, region=Linf(0.5))
    judge = Judge(problem, "margin", 1.0)
    proposal = next(climb(problem, judge, torch.Generator().manual_seed(0), 1, 10))
    same = (proposal.points.view(10, 2, 40) == x).float().mean((1, 2))
    assert (same[:5] > 0.8).all()
    assert (same[5:] == 0).all()


def test_a_crossing_stays_in_the_class_by_the_linear_model():
    """A network of one kink far from the decision boundary: u . d = u . u, margin left by 1 %."""
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    first.weight.data, first.bias.data = torch.eye(2), torch.tensor([0.0, 100.0])
    second.weight.data = torch.tensor([[0.0, 0], [0.1, 1.0]])
    second.bias.data = torch.tensor([0.0, -100.0])
    model = nn.Sequential(first, nn.ReLU(), second).requires_grad_(False)
    x = torch.tensor([[1.0, 0.05]])  # log-odds 0.15; across the first kink 0.05
    problem = AttackProblem.from_model("test", model, Gradient(), L2(9.0), x, 1, None)
    steps = crossings(problem, x, torch.Generator(), 2)
    held_in = steps[-2]  # the first unit's
    assert held_in[0, 0].item() == pytest.approx(-1, abs=1e-4)
    assert (0.1 * held_in[0, 0] + held_in[0, 1]).item() == pytest.approx(-0.99 * 0.15, abs=1e-4)


def test_a_siamese_networks_three_predictions_each_have_a_weight():
    model = make(SiameseCNN, dtype=torch.float64)
    x = randn(3, 2, 1, 28, 28, dtype=torch.float64)
    problem = AttackProblem.from_model("test", model, Gradient(), L2(1.0), x, 5, None)
    weights = Multipliers("gda", 0.7, problem)
    assert weights.gamma.shape == (3, 4)
    moved = x + 0.3 * randn(*x.shape, seed=5, dtype=torch.float64)
    outs = zip(model.predictions(x), model.predictions(moved), strict=True)
    change = []
    for before, now in outs:
        a, b = before.log_softmax(1), now.log_softmax(1)
        change.append((a.exp() * (a - b)).sum(1).detach())
    assert all((c > 0).all() for c in change)
    weights.combine(torch.ones_like(x), moved)
    expected = 0.25 + 0.7 * torch.stack([torch.zeros(3), *change], 1)
    torch.testing.assert_close(weights.gamma, expected / expected.sum(1, keepdim=True))
