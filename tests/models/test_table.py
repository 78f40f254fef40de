"""The network for tables: its encoding against numpy's, its bins, its proof."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from r2et.certify import IntervalCertifier
from r2et.errors import InputError
from r2et.explain import Gradient
from r2et.models import TableMLP, smooth
from r2et.models.table import NARROW, STEP


def rows(count: int = 400, seed: int = 0) -> torch.Tensor:
    """A column of evenly spread numbers, one mostly 0, one of two values, one of few."""
    numbers = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 4, generator=numbers)
    x[:, 1] = x[:, 1] ** 4 * (torch.rand(count, generator=numbers) < 0.2)
    x[:, 2] = (x[:, 2] > 0.6).float()
    x[:, 3] = (x[:, 3] * 5).floor() / 4
    return x


def edges_of(model: TableMLP, feature: int) -> list[float]:
    """Inner edges: where the units of a feature begin, but for the straight one."""
    own = model.column[:, feature] != 0
    return sorted(model.begin[own].tolist())[1:]


def test_a_column_becomes_its_position_in_each_bin_and_itself():
    x = rows()
    model = TableMLP.fitted(x, (7,), bins=5).double()
    got = model._units(x.double()) @ model.encoding.T
    wanted = []
    for feature in range(4):
        column = x[:, feature].double().numpy()
        inner = edges_of(model, feature)
        ends = [column.min(), *inner, column.max()]
        if inner:
            last = len(ends) - 2
            for t, (a, b) in enumerate(pairwise(ends)):
                # The first unit begins at -1, which adds a constant.
                shift = (a + 1.0) / (b - a) if t == 0 else 0.0
                high = np.inf if t == last else 1.0
                low = -np.inf if t == 0 else 0.0
                wanted.append(np.clip((column - a) / (b - a), low, high) + shift)
        wanted.append(column + 1.0)
    np.testing.assert_allclose(got.numpy(), np.stack(wanted, 1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.mean.numpy(), np.stack(wanted, 1).mean(0), rtol=1e-4)


def test_the_network_is_an_mlp_of_the_centred_encoding():
    x = rows().double()
    model = TableMLP.fitted(x, (7, 3), classes=3, bins=5).double()
    encoded = model._units(x) @ model.encoding.T - model.mean
    for place, linear in enumerate(model.linears):
        encoded = encoded.clamp(min=0) if place else encoded
        encoded = STEP * (encoded @ linear.weight.T + linear.bias)
    torch.testing.assert_close(model(x), encoded)
    weight, bias = torch.randn(3, 4).double(), torch.randn(3).double()
    model.start_at(weight, bias)  # and a tenth of the rest
    torch.testing.assert_close(model(x), x @ weight.T + bias + 0.1 * encoded)


def test_an_additive_network_adds_a_line_of_the_encoding():
    x = rows(50).double()
    torch.manual_seed(0)
    plain = TableMLP.fitted(rows(), (6,), bins=4).double()
    torch.manual_seed(0)
    model = TableMLP.fitted(rows(), (6,), bins=4, additive=True).double()
    parts = model.encoding.shape[0]
    for a, b in zip(plain.linears[1:], model.linears[1:], strict=True):
        assert a.weight.shape == b.weight.shape
    hidden = model(x)  # nothing is added yet
    weight, bias = torch.randn(2, parts).double(), torch.randn(2).double()
    model.start_at(weight, bias)
    expected = model.encoded(x) @ weight.T + bias + 0.1 * hidden
    torch.testing.assert_close(model(x), expected)
    gone = torch.tensor([True, False, False, False])
    model.forget(gone)
    moved = x.clone()
    moved[:, 0] = torch.rand(len(x)).double()
    torch.testing.assert_close(model(moved), model(x))


def test_each_feature_is_a_part_of_its_encoding():
    model = TableMLP.fitted(rows(), (6,), bins=4, additive=True).double()
    places, shift = model.alone
    x = rows().double()
    torch.testing.assert_close(model.encoded(x)[:, places], x + shift)


def test_no_bin_is_narrower_than_float32_can_tell():
    x = torch.cat(
        [rows(), (20 * torch.randn(400, 1, generator=torch.Generator().manual_seed(3))).exp()], 1
    )
    x[:, 4] /= x[:, 4].max()
    model = TableMLP.fitted(x, (6,), bins=24)
    assert float(model.encoding.abs().max()) <= 2 / NARROW
    assert torch.allclose(model(x).double(), model.double()(x.double()), atol=1e-2)


def test_an_additive_network_has_edges_between_any_two_of_few_values():
    x = torch.zeros(100, 2)
    x[:, 0] = torch.tensor([0.0] * 60 + [0.25] * 20 + [0.5] * 15 + [1.0] * 5)
    x[60:, 1] = torch.linspace(0.4, 1.0, 40)
    plain, model = (TableMLP.fitted(x, bins=8, additive=a) for a in (False, True))
    assert edges_of(model, 0) == pytest.approx([0.125, 0.375, 0.75])
    assert 0.125 not in edges_of(plain, 0)  # the common value has no say
    assert edges_of(model, 1) == edges_of(plain, 1)  # of many values


def test_bins_hold_equally_many_rows_and_edges_lie_between_values():
    x = torch.rand(1000, 2)
    model = TableMLP.fitted(x, bins=10)
    for feature in range(2):
        edges = edges_of(model, feature)
        counts = np.histogram(x[:, feature].numpy(), [0.0, *edges, 1.0])[0]
        assert counts.tolist() == [100] * 10
        assert not np.isin(np.float32(edges), x[:, feature].numpy()).any()


def test_common_values_few_values_and_two_values():
    x = rows(2000)
    model = TableMLP.fitted(x, bins=8)
    bins = model.settings["bins"]
    assert bins[0] == 8
    assert bins[2] == 1  # nothing to encode
    assert bins[3] == 5  # between each two of its five values
    assert edges_of(model, 3) == pytest.approx([0.125, 0.375, 0.625, 0.875])
    rare = x[x[:, 1] > 0, 1].numpy()  # the zeros do not count
    counts = np.histogram(rare, [0.0, *edges_of(model, 1), 1.0])[0]
    assert counts.max() - counts.min() <= 1
    many = TableMLP.fitted(torch.rand(50, 400))
    assert max(many.settings["bins"]) == 3
    constant = TableMLP.fitted(torch.ones(50, 2))
    assert constant.settings["bins"] == [1, 1]
    assert constant(torch.ones(3, 2)).isfinite().all()


@pytest.mark.parametrize("additive", [False, True])
def test_what_is_proved_holds_and_something_is_proved(additive):
    torch.manual_seed(0)
    x = rows(60)
    model = TableMLP.fitted(rows(), (6,), bins=3, additive=additive).eval()
    if additive:
        model.start_at(torch.randn_like(model.straight.weight) / 5, torch.zeros(2))
    certificate = IntervalCertifier()(model, Gradient(), x, k=2)
    assert (certificate.radius > 1e-3).float().mean() > 0.3
    top = Gradient()(model, x).topk(2).indices.sort().values
    for _ in range(200):
        step = torch.nn.functional.normalize(torch.randn_like(x))
        moved = x + step * (certificate.radius[:, None].float() * 0.999)
        now = Gradient()(model, moved, target=model(x).argmax(1)).topk(2).indices.sort().values
        assert ((now == top).all(1) | (certificate.radius == 0)).all()


def test_a_forgotten_feature_counts_for_nothing():
    x = rows()
    model = TableMLP.fitted(x)
    model.start_at(torch.randn(2, 4), torch.zeros(2))
    before = model(x)
    model.forget(torch.tensor([True, False, False, False]))
    moved = x.clone()
    moved[:, 0] = 9.0
    assert torch.equal(model(moved), model(x))
    assert not torch.equal(model(x), before)


def test_a_smooth_copy_goes_to_the_network():
    x = rows()
    model = TableMLP.fitted(x, (8,), bins=4).double()
    apart = [(smooth(model, rho)(x.double()) - model(x.double())).abs().max() for rho in (1e2, 1e4)]
    assert apart[1] < apart[0] / 50


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TableMLP(2, [1]), "TableMLP: bins must be a list of 2 whole numbers, one per"),
        (lambda: TableMLP(1, [-1]), "TableMLP: bins must be a list of 1 whole numbers, one per"),
        (lambda: TableMLP(1, [2], ()), "TableMLP: widths must be one or more (or take MLP), got"),
        (lambda: TableMLP(0, []), "TableMLP: features must be a whole number, at least 1, got 0."),
        (
            lambda: TableMLP(1, [2]).set_edges([[0.0, 1.0, 0.5]]),
            "TableMLP: edges must be 3 ascending numbers for feature 0, got",
        ),
        (
            lambda: TableMLP.fitted(torch.rand(4, 2), bins=0),
            "TableMLP.fitted: bins must be None or a positive whole number, got 0.",
        ),
        (
            lambda: TableMLP.fitted(torch.rand(4, 2, 2)),
            "TableMLP.fitted: x must be rows of shape (B, features), got",
        ),
        (
            lambda: TableMLP(2, [1, 1]).start_at(torch.zeros(3), torch.zeros(2)),
            "TableMLP.start_at: weight and bias must be finite numbers of shape (2, 2), got",
        ),
        (
            lambda: TableMLP(3, [1, 1, 1])(torch.rand(2, 2)),
            "TableMLP: x must be rows of shape (B, 3), got",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
