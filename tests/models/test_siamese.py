import copy

import pytest
import torch
from torch.nn import functional as F

from r2et.errors import InputError
from r2et.models import SiameseCNN, SiameseMLP, predict, undisturbed
from r2et.models.siamese import NORM_FLOOR, cosine


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def bars(count, generator):
    """Pictures of an upright (1) or lying (0) bar with noise, and which it is."""
    kind = torch.randint(2, (count,), generator=generator)
    lying = torch.zeros(28, 28)
    lying[12:16, 4:24] = 1.0
    pictures = torch.stack([lying, lying.T])[kind]
    return pictures + 0.2 * torch.randn(count, 28, 28, generator=generator), kind


def pairs(count, generator):
    """(B, 2, 28, 28) pairs, whether they are of one class, and the class of each."""
    x, kind = bars(2 * count, generator)
    kind = kind.view(-1, 2)
    return x.view(count, 2, 28, 28), (kind[:, 0] == kind[:, 1]).long(), kind


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return SiameseCNN().double()


@pytest.fixture(scope="module")
def pair():
    return torch.rand(3, 2, 28, 28, dtype=torch.float64, generator=seeded())


def test_it_has_the_papers_layers(model, pair):
    convolutions = 8 * 9 + 8 + 16 * 8 * 9 + 16
    linear = (144 * 64 + 64) + (64 * 32 + 32) + (32 * 10 + 10)
    heads = (1 * 2 + 2) + (10 * 2 + 2)
    count = sum(p.numel() for p in model.parameters())
    assert count == convolutions + linear + heads == 12_964
    assert model(pair).shape == (3, 2)
    assert model.embed(pair[:, 0]).shape == (3, 10)


def test_a_channel_axis_changes_nothing(model, pair):
    assert torch.equal(model(pair[:, :, None]), model(pair))
    assert torch.equal(model.embed(pair[:, 0, None]), model.embed(pair[:, 0]))


def test_swapping_the_pair_changes_nothing(model, pair):
    torch.testing.assert_close(model(pair.flip(1)), model(pair), rtol=0, atol=1e-13)
    assert not torch.allclose(model.embed(pair[:, 0]), model.embed(pair[:, 1]), atol=1e-3)


def test_an_input_with_itself_is_as_alike_as_can_be(model, pair):
    same = torch.stack([pair[:, 0], pair[:, 0]], 1)
    # cos = 1 and the initial comparison is (-1, 1) * cos.
    expected = torch.tensor([[-1.0, 1.0]], dtype=torch.float64).expand(3, 2)
    torch.testing.assert_close(model(same), expected, rtol=0, atol=1e-9)
    assert predict(model, same).tolist() == [1, 1, 1]


def test_the_three_predictions_are_the_pairs_and_each_inputs(model, pair):
    both, first, second = model.predictions(pair)
    torch.testing.assert_close(both, model(pair))
    torch.testing.assert_close(first, model.single(pair[:, 0]))
    torch.testing.assert_close(second, model.single(pair[:, 1]))
    assert SiameseCNN(classes=10).single(pair[:, 0].float()).shape == (3, 10)


def test_the_cosine_is_torchs_away_from_zero():
    a, b = torch.randn(2, 50, 10, dtype=torch.float64, generator=seeded())
    torch.testing.assert_close(cosine(a, b), F.cosine_similarity(a, b), rtol=0, atol=1e-11)
    torch.testing.assert_close(cosine(a, -3 * a), -torch.ones(50).double(), rtol=0, atol=1e-11)


def test_the_cosine_is_differentiable_twice_at_zero():
    zero = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    b = torch.tensor([[0.0, 3.0, 4.0]], dtype=torch.float64)
    (slope,) = torch.autograd.grad(cosine(zero, b).sum(), zero)
    torch.testing.assert_close(slope, b / 5 / NORM_FLOOR)
    curvature = torch.autograd.functional.hessian(lambda a: cosine(a, b).sum(), zero.detach())
    assert torch.equal(curvature, torch.zeros(1, 3, 1, 3, dtype=torch.float64))
    a = torch.randn(2, 3, dtype=torch.float64, generator=seeded(), requires_grad=True)
    c = torch.randn(2, 3, dtype=torch.float64, generator=seeded(1), requires_grad=True)
    assert torch.autograd.gradgradcheck(cosine, (a, c))


def test_training_on_pairs_learns_all_three_predictions():
    torch.manual_seed(1)
    generator = seeded(2)
    model = SiameseCNN()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(60):
        x, same, kind = pairs(32, generator)
        both, first, second = model.predictions(x)
        loss = F.cross_entropy(both, same)
        loss = loss + F.cross_entropy(first, kind[:, 0]) + F.cross_entropy(second, kind[:, 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x, same, kind = pairs(200, generator)
    with torch.no_grad(), undisturbed(model):
        losses = [
            float(F.cross_entropy(logits, y))
            for logits, y in zip(model.predictions(x), [same, *kind.T], strict=True)
        ]
    assert max(losses) < 0.35  # chance is log 2 = 0.693


def test_a_deep_copy_gives_the_same(model, pair):
    assert torch.equal(copy.deepcopy(model)(pair), model(pair))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 28, 28), "x must be pairs of shape (B, 2, ...), got float32 tensor"),
        ((3, 2), "x must be pairs of shape (B, 2, ...), got float32 tensor"),
        ((3, 2, 27, 28), "an image must be of shape (28, 28) or (1, 28, 28), got (27, 28)."),
        ((3, 2, 3, 28, 28), "an image must be of shape (28, 28) or (1, 28, 28), got (3, 28, 28)."),
    ],
)
def test_other_shapes_are_refused_in_one_sentence(shape, message):
    with pytest.raises(InputError) as caught:
        SiameseCNN()(torch.zeros(shape))
    assert str(caught.value).startswith(f"SiameseCNN: {message}")


# --- SiameseMLP


def people(count, generator, features=300):
    """(count, features) rows of two kinds that differ a little in every feature, and their kinds.

    Features have their own scale and level, and one never changes.
    """
    kind = torch.randint(2, (count,), generator=generator)
    own = torch.linspace(-1, 1, features)
    x = torch.randn(count, features, generator=generator) + 0.4 * own.sign() * kind[:, None]
    x = 100 * own + x * 10.0 ** (2 * own)
    x[:, 0] = 7.0
    return x, kind


def drawn_pairs(x, kind, count, generator):
    first, second = torch.randint(len(x), (2, count), generator=generator)
    return torch.stack([x[first], x[second]], 1), (kind[first] == kind[second]).long()


def test_it_is_the_formula():
    x = torch.rand(20, 2, 5, dtype=torch.float64, generator=seeded())
    torch.manual_seed(0)
    network = SiameseMLP.fitted(x.float(), 3).double()
    rows = x.float().double().flatten(0, 1)
    apart = (x - rows.mean(0)) / (3 * rows.std(0, correction=0))
    units = torch.tanh(apart @ network.linear.weight.T + network.linear.bias)
    a, b = units[:, 0], units[:, 1]
    cosines = (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))
    expected = 3 * torch.stack([-cosines, cosines], 1)
    torch.testing.assert_close(network(x), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(network(x.flip(1)), network(x))


def test_a_feature_that_never_changes_does_no_harm():
    x, _ = people(50, seeded())
    network = SiameseMLP.fitted(x.view(25, 2, -1))
    assert float(network.deviation[0]) == 1.0
    assert bool(network(x.view(25, 2, -1)).isfinite().all())


def test_it_learns_what_is_spread_over_many_features():
    numbers = seeded()
    x, kind = people(200, numbers)
    pairs_, same = drawn_pairs(x[:150], kind[:150], 1500, numbers)
    held, expected = drawn_pairs(x[150:], kind[150:], 400, numbers)
    torch.manual_seed(0)
    network = SiameseMLP.fitted(pairs_)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
    for _ in range(5):
        for rows, y in zip(pairs_.split(64), same.split(64), strict=True):
            optimizer.zero_grad()
            F.cross_entropy(network(rows), y).backward()
            optimizer.step()
    assert (predict(network, held) == expected).float().mean() > 0.8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SiameseMLP(0), "SiameseMLP: features must be a whole number, at least 1, got 0."),
        (lambda: SiameseMLP(3, 1.5), "SiameseMLP: width must be a whole number, at least 1"),
        (
            lambda: SiameseMLP.fitted(torch.rand(4, 3)),
            r"SiameseMLP.fitted: x must be pairs of shape \(B, 2, features\), got",
        ),
        (
            lambda: SiameseMLP(3)(torch.rand(4, 2, 5)),
            "SiameseMLP: x must be pairs of 3 features each, got",
        ),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match="^" + message):
        make()
