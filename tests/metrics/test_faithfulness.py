"""Faithfulness of explanations of linear models, by hand; of any model, by a slow second way."""

import math

import pytest
import torch
from torch import nn

from nets import GraphNet, ResidualNet, Siamese, make, mlp, randn
from r2et.errors import InputError
from r2et.explain import (
    Captum,
    Concept,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    SmoothGrad,
)
from r2et.explain.reductions import REDUCTIONS
from r2et.metrics import comprehensiveness, dffot, faithfulness, sufficiency
from r2et.metrics.faithfulness_inputs import MAPS, feature_map, removal_counts
from r2et.models import predict

F64 = torch.float64


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


class Linear(nn.Module):
    """One logit w'x + b: |gradient| is |w|, so features are removed in the order of |w|."""

    def __init__(self, w, b=0.0):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.tensor(w, dtype=F64)), b

    def forward(self, x):
        return x.flatten(1) @ self.w + self.b


def test_linear_model_by_hand():
    model = Linear([1.0, -3.0, 2.0], -0.5)  # removed in the order 1, 2, 0
    x = torch.tensor([[2.0, 0.5, 1.0], [1.0, 1.0, 0.5]], dtype=F64)
    # Row 0: 2 - 1.5 + 2 - 0.5 = 2. Without 1: 3.5; without 1, 2: 1.5; without all: -0.5.
    #        With 1 only: -2; with 1, 2: 0; with all: 2.
    # Row 1: 1 - 3 + 1 - 0.5 = -1.5, class 0. Without 1: 1.5; 1, 2: 0.5; all: -0.5.
    #        With 1 only: -3.5; with 1, 2: -2.5; with all: -1.5.
    out = [2.0, -1.5]
    without = [[3.5, 1.5, -0.5], [1.5, 0.5, -0.5]]
    only = [[-2.0, 0.0, 2.0], [-3.5, -2.5, -1.5]]
    found = faithfulness(model, Gradient(), x)
    assert found.dffot.tolist() == [1.0, 1 / 3]
    signs = [1, -1]  # the probability of class 0 is sigmoid(-z)
    for row, s in enumerate(signs):
        p = sigmoid(s * out[row])
        drops = [p - sigmoid(s * z) for z in without[row]]
        stays = [p - sigmoid(s * z) for z in only[row]]
        assert found.comprehensiveness[row].item() == pytest.approx(sum(drops) / 3)
        assert found.sufficiency[row].item() == pytest.approx(sum(stays) / 3)
        size = faithfulness(model, Gradient(), x, absolute=True)
        assert size.comprehensiveness[row].item() == pytest.approx(sum(map(abs, drops)) / 3)
        assert size.sufficiency[row].item() == pytest.approx(sum(map(abs, stays)) / 3)


def test_removals_until_the_prediction_changes():
    x = torch.ones(2, 4, dtype=F64)
    assert dffot(Linear([4.0, 3, 2, 1], 1.0), Gradient(), x).tolist() == [1, 1]
    # Removed one by one: 9, 5, 2, 0, and 0 is class 0.
    assert dffot(Linear([4.0, 3, 2, 1], -1.0), Gradient(), x).tolist() == [0.75, 0.75]
    assert dffot(Linear([4.0, 3, 2, 1], -3.0), Gradient(), x).tolist() == [0.5, 0.5]


def test_baselines_and_counts_by_hand():
    model, x = Linear([1.0, 2.0]), torch.tensor([[1.0, 1.0]], dtype=F64)  # logit 3
    means = torch.tensor([-1.0, -2.0], dtype=F64)
    # Without feature 1: 1 - 4 = -3; without both: -1 - 4 = -5. With feature 1 only: -1 + 2 = 1.
    for baseline in (means, means.tolist(), means.float()):
        assert dffot(model, Gradient(), x, baseline=baseline).item() == 0.5
        found = comprehensiveness(model, Gradient(), x, baseline=baseline)
        expected = sigmoid(3) - (sigmoid(-3) + sigmoid(-5)) / 2
        assert found.item() == pytest.approx(expected)
        found = sufficiency(model, Gradient(), x, baseline=baseline, counts=[1])
        assert found.item() == pytest.approx(sigmoid(3) - sigmoid(1))
    assert dffot(model, Gradient(), x, baseline=means, counts=[2]).item() == 1
    one = comprehensiveness(model, Gradient(), x, counts=range(1, 3))
    assert torch.equal(one, comprehensiveness(model, Gradient(), x, counts=[2, 1, 1]))
    same = torch.zeros(1, dtype=F64)  # nothing is removed by setting it to what it is
    assert torch.equal(comprehensiveness(model, Gradient(), x, baseline=1.0), same)
    assert torch.equal(sufficiency(model, Gradient(), x, counts=[2]), same)


def test_counts():
    image, table = torch.zeros(1, 1, 28, 28), torch.zeros(1, 5)
    assert removal_counts("dffot", None, 784, image) == [8, 39, 78, 157, 392]
    assert removal_counts("dffot", None, 9, image) == [1, 2, 5]
    assert removal_counts("dffot", None, 1, image) == [1]
    assert removal_counts("dffot", None, 5, table) == [1, 2, 3, 4, 5]


CASES = {
    "table": (lambda: mlp(6), (6,), Gradient()),
    "signed": (lambda: mlp(6), (6,), GradientTimesInput(reduce="signed", of="probability")),
    "path": (lambda: mlp(6), (6,), IntegratedGradients(points=4)),
    "noise": (lambda: mlp(6), (6,), SmoothGrad(samples=3)),
    "captum": (lambda: mlp(6), (6,), Captum("Saliency")),
    "channels": (lambda: ResidualNet(3, nn.Softplus), (3, 6, 5), Gradient(reduce="abs_sum")),
    "entries": (lambda: ResidualNet(3, nn.Softplus), (3, 4, 4), Gradient(normalize=True)),
    "graph": (lambda: GraphNet(5), (5, 5), GradientTimesInput(reduce="upper")),
    "pair": (lambda: Siamese(12), (2, 12), Gradient()),
    "part": (lambda: Siamese(12), (2, 12), Gradient(part=1)),
    "graphs": (lambda: Siamese(25), (2, 5, 5), Gradient(reduce="abs_upper", part=0)),
    "images": (lambda: Siamese(48), (2, 3, 4, 4), Gradient(reduce="abs_sum")),
}


def case(name, rows=7):
    build, shape, explainer = CASES[name]
    return make(build, dtype=F64), explainer, randn(rows, *shape, seed=3, dtype=F64)


def entries_of(explainer, shape):
    """By experiment: the entries of an attribution that each score moves with."""
    part = getattr(explainer, "part", None)
    raw_shape = shape if part is None else shape[1:]
    total = math.prod(raw_shape)
    scores = REDUCTIONS[explainer.reduce](torch.eye(total, dtype=F64).view(total, *raw_shape))
    places = [tuple(p) for p in torch.ones(raw_shape).nonzero().tolist()]
    lead = () if part is None else (part,)
    return [
        [lead + places[e] for e in scores[:, f].nonzero().flatten().tolist()]
        for f in range(scores.shape[1])
    ]


def slowly(model, explainer, x, baseline, counts):
    """Row by row, count by count, entry by entry."""
    features = entries_of(explainer, tuple(x.shape[1:]))
    model.eval()
    rows = []
    for row in x:
        out = model(row[None])[0].detach()
        p, c = out.softmax(0), int(out.argmax())
        scores = explainer(model, row[None])[0].tolist()
        order = sorted(range(len(scores)), key=lambda f: -scores[f])
        flip, drops, stays = 1.0, [], []
        for count in counts:
            for keep, into in ((False, drops), (True, stays)):
                changed = row.clone()
                for f in order[count:] if keep else order[:count]:
                    for entry in features[f]:
                        changed[entry] = baseline[entry]
                q = model(changed[None])[0].detach().softmax(0)
                into.append(float(p[c] - q[c]))
                if not keep and int(q.argmax()) != c:
                    flip = min(flip, count / len(scores))
        rows.append((flip, sum(drops) / len(counts), sum(stays) / len(counts)))
    return torch.tensor(rows, dtype=F64).T


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_a_slow_loop(name):
    model, explainer, x = case(name)
    n = len(entries_of(explainer, tuple(x.shape[1:])))
    counts = removal_counts("", None, n, x)
    for baseline in (torch.zeros_like(x[0]), x.mean(0)):
        expected = slowly(model, explainer, x, baseline, counts)
        found = faithfulness(model, explainer, x, baseline=baseline)
        torch.testing.assert_close(torch.stack(found), expected)
        assert all(part.dtype == F64 for part in found)
    alone = [measure(model, explainer, x, baseline=x.mean(0)) for measure in ALL]
    assert torch.equal(torch.stack(alone), torch.stack(found))


ALL = (dffot, comprehensiveness, sufficiency)


@pytest.mark.parametrize("name", ["table", "channels", "graphs"])
def test_chunks_change_nothing(name):
    model, explainer, x = case(name)
    whole = torch.stack(faithfulness(model, explainer, x))
    for chunk in (1, 4, 11):
        found = faithfulness(model, explainer, x, chunk=chunk)
        torch.testing.assert_close(torch.stack(found), whole, rtol=0, atol=1e-12)
        assert torch.equal(found.dffot, whole[0])


def test_memory_is_bounded():
    sizes = []

    class Watched(Linear):
        def forward(self, x):
            sizes.append(len(x))
            return super().forward(x)

    faithfulness(Watched([1.0] * 40), Gradient(), randn(30, 40, dtype=F64), chunk=16)
    assert max(sizes) == 16


def test_names_of_features_do_not_matter():
    w, x = randn(8, dtype=F64), randn(20, 8, seed=1, dtype=F64)
    shuffle = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    before = faithfulness(Linear(w.tolist()), Gradient(), x)
    after = faithfulness(Linear(w[shuffle].tolist()), Gradient(), x[:, shuffle])
    torch.testing.assert_close(torch.stack(after), torch.stack(before))
    rows = faithfulness(Linear(w.tolist()), Gradient(), x.flip(0))
    torch.testing.assert_close(torch.stack(rows), torch.stack(before).flip(1))


def test_two_logits_are_as_good_as_one():
    class Two(Linear):
        def forward(self, x):
            z = super().forward(x)
            return torch.stack([-z / 2, z / 2], 1)

    w, x = randn(6, dtype=F64).tolist(), randn(9, 6, dtype=F64)
    one, two = (faithfulness(kind(w), Gradient(), x) for kind in (Linear, Two))
    torch.testing.assert_close(torch.stack(one), torch.stack(two))


def test_good_reasons_score_better_than_bad_ones():
    class Wrong(Linear):
        """Linear with a gradient whose order is reversed."""

        def forward(self, x):
            z = super().forward(x)
            lie = x.flatten(1) @ self.w.flip(0)
            return z.detach() + lie - lie.detach()

    w = [2.0, 1, 0.5, 0.1, 0.05]
    x = torch.rand(20, 5, generator=torch.Generator().manual_seed(0), dtype=F64) + 0.1
    good, bad = (faithfulness(kind(w, -0.5), Gradient(), x) for kind in (Linear, Wrong))
    assert (good.dffot <= bad.dffot).all()
    surely = predict(Linear(w, -0.5), x) == 1
    assert (good.comprehensiveness > bad.comprehensiveness)[surely].all()
    assert (good.sufficiency < bad.sufficiency)[surely].all()


def test_leaves_no_trace():
    model, explainer, x = case("channels")
    model.train()
    before, given = {k: v.clone() for k, v in model.state_dict().items()}, x.clone()
    x.requires_grad_()
    found = faithfulness(model, explainer, x)
    assert not any(part.requires_grad for part in found)
    assert model.training
    assert x.grad is None
    assert torch.equal(x, given)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("name", CASES)
def test_the_map_is_what_the_reduction_does(name):
    _, explainer, x = case(name)
    index = feature_map("", explainer, x)
    for f, entries in enumerate(entries_of(explainer, tuple(x.shape[1:]))):
        assert [tuple(e) for e in (index == f).nonzero().tolist()] == sorted(entries)
    assert set(MAPS) == set(REDUCTIONS)


def test_confident_half_precision():
    model = nn.Linear(4, 3).to(torch.bfloat16)
    found = faithfulness(model, Gradient(), 100 * randn(5, 4).to(torch.bfloat16))
    assert all(part.isfinite().all() and part.dtype == F64 for part in found)


def test_a_model_that_fails_without_a_feature_names_the_row():
    class Ratio(nn.Module):
        def forward(self, x):
            return x[:, :1] + torch.where(x[:, :1] > 0.5, 2 / x[:, 1:], 2 * x[:, 1:])

    x = torch.tensor([[0.1, 1.0], [0.2, 1.0], [0.9, 1.0]])
    message = r"^dffot: model must be one with finite logits, got NaN or inf in row 2\.$"
    for chunk in (1, 2, None):
        with pytest.raises(InputError, match=message):
            dffot(Ratio(), Gradient(), x, chunk=chunk)


NET, X = Linear([1.0, 2.0, 3.0]), torch.ones(2, 3, dtype=F64)
IMAGES = torch.ones(2, 1, 1, 3, dtype=F64)


def test_a_column_of_several_features_is_removed_whole():
    """f = w x: without a column the log-odds lose what its features give, all at once."""
    w = torch.tensor([3.0, 1.0, -2.0, 0.5], dtype=torch.float64)
    net = nn.Linear(4, 1, bias=False).double()
    net.weight.data = w[None]
    x, base = torch.tensor([[1.0, 2.0, 1.0, 1.0]]).double(), torch.tensor([0.0, 1.0, 0.0, 1.0])
    explainer = GradientTimesInput(baseline=base.double(), groups=((0, 2),), reduce="signed")
    assert explainer(net, x).tolist() == [[1.0, 1.0, 0.0]]  # columns (0, 2), 1 and 3
    found = faithfulness(net, explainer, x, baseline=base)
    start = torch.tensor(3.5).double()
    without = start - torch.tensor([1.0, 2.0, 2.0]).double()
    only = torch.tensor([2.5, 3.5, 3.5]).double()
    drop = (start.sigmoid() - without.sigmoid()).mean().item()
    assert found.comprehensiveness.item() == pytest.approx(drop, abs=1e-12)
    kept = (start.sigmoid() - only.sigmoid()).mean().item()
    assert found.sufficiency.item() == pytest.approx(kept, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: dffot(NET, Concept(), X),
            "dffot: explainer must be one whose scores belong to entries of x (neurons of a layer "
            "do not), got Concept(",
        ),
        (
            lambda: sufficiency(NET, Captum("LayerActivation", layer="0"), X),
            "sufficiency: explainer must be one whose scores belong to entries of x",
        ),
        (lambda: dffot(NET, "grad", X), "dffot: explainer must be an Explainer, got grad."),
        (
            lambda: dffot(NET, Gradient(reduce="abs_sum"), X),
            "dffot: x must be images (B, C, H, W) or pairs (B, 2, C, H, W) for abs_sum, got rows",
        ),
        (
            lambda: dffot(NET, Gradient(reduce="upper"), IMAGES),
            "dffot: x must be adjacency matrices (B, N, N) or pairs (B, 2, N, N) for upper",
        ),
        (lambda: dffot(NET, Gradient(part=0), X), "dffot: x must be pairs (B, 2, ...) when the"),
        (
            lambda: dffot(NET, Gradient(), X, baseline=[1.0, 2.0]),
            "dffot: baseline must be a finite number, or one per entry of an input: (3,), got",
        ),
        (
            lambda: faithfulness(NET, Gradient(), X, baseline=math.nan),
            "faithfulness: baseline must be a finite number, or one per entry of an input: (3,), "
            "got nan.",
        ),
        (
            lambda: dffot(NET, Gradient(), X, baseline="mean"),
            "dffot: baseline must be a finite number, or one per entry of an input: (3,), got mean",
        ),
        (
            lambda: dffot(NET, Gradient(), X, counts=[]),
            "dffot: counts must be whole numbers, at least one, got [].",
        ),
        (
            lambda: dffot(NET, Gradient(), X, counts=3),
            "dffot: counts must be whole numbers, at least one, got 3.",
        ),
        (
            lambda: dffot(NET, Gradient(), X, counts=[0.5]),
            "dffot: counts must be whole numbers, at least one, got [0.5].",
        ),
        (
            lambda: comprehensiveness(NET, Gradient(), X, counts=[1, 4]),
            "comprehensiveness: counts must be in 1..3 for 3 features, got 4.",
        ),
        (
            lambda: dffot(NET, Gradient(), X, chunk=0),
            "dffot: chunk must be None or a positive whole number, got 0.",
        ),
        (
            lambda: sufficiency(NET, Gradient(), X, absolute=1),
            "sufficiency: absolute must be True or False, got 1.",
        ),
        (
            lambda: dffot(NET, Gradient(), X[0]),
            "dffot: x must be a batch of shape (B, features, ...), got float64 tensor",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
