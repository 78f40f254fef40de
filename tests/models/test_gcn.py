import sys
import warnings

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from r2et.errors import InputError
from r2et.models import SiameseGCN, undisturbed

FEATURES = ["adjacency", "identity", "strength"]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def graphs(count, nodes, *, signed=True, seed=0):
    """Symmetric float64 matrices with a zero diagonal."""
    a = torch.randn(count, nodes, nodes, dtype=torch.float64, generator=seeded(seed)).triu(1)
    a = a if signed else a.abs()
    return a + a.transpose(1, 2)


def network(nodes=7, features="adjacency", seed=0, **settings):
    torch.manual_seed(seed)
    model = SiameseGCN(nodes, (6, 4), features=features, **settings).double()
    with torch.no_grad():  # biases start at 0, where an error in them would not show
        for layer in (model.first, model.second):
            layer.bias.normal_()
    return model


def by_hand(model, a):
    """The embedding of one graph, node by node in numpy, from the formula of the paper's GCN."""
    a = a.numpy()
    n = len(a)
    degree = [1 + sum(abs(a[i, j]) for j in range(n) if j != i) for i in range(n)]
    own = {"adjacency": a, "identity": np.eye(n), "strength": a.sum(1, keepdims=True)}
    h = own[model.settings["features"]]
    for index, layer in enumerate([model.first, model.second]):
        w, bias = layer.lin.weight.detach().numpy(), layer.bias.detach().numpy()
        out = np.zeros((n, len(bias)))
        for i in range(n):
            for j in range(n):
                weight = (1.0 if i == j else a[i, j]) / np.sqrt(degree[i] * degree[j])
                out[i] += weight * (w @ h[j])
            out[i] += bias
        h = np.maximum(out, 0) if index == 0 else out
    return h.mean(0)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("signed", [True, False])
def test_the_embedding_is_the_formulas(features, signed):
    model = network(features=features)
    a = graphs(3, 7, signed=signed)
    expected = np.stack([by_hand(model, graph) for graph in a])
    np.testing.assert_allclose(model.embed(a).detach().numpy(), expected, rtol=0, atol=1e-13)


def test_a_layer_is_torch_geometrics_on_graphs_without_negative_edges():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.nn.dense import DenseGCNConv
    model = network()
    a = graphs(3, 7, signed=False)
    h = a
    for layer, width in ((model.first, 6), (model.second, 4)):
        theirs = DenseGCNConv(h.shape[-1], width).double()
        theirs.load_state_dict(layer.state_dict())
        h = theirs(h, a)
        h = h.relu() if layer is model.first else h
    torch.testing.assert_close(model.embed(a), h.mean(1), rtol=0, atol=1e-13)


def test_it_has_the_papers_layers():
    model = SiameseGCN(116)
    layers = (116 * 256 + 256) + (256 * 128 + 128)
    assert sum(p.numel() for p in model.parameters()) == layers + (1 * 2 + 2) + (128 * 2 + 2)
    assert model(torch.zeros(3, 2, 116, 116)).shape == (3, 2)
    assert model.single(torch.zeros(3, 116, 116)).shape == (3, 2)
    assert [p.shape for p in model.predictions(torch.zeros(3, 2, 116, 116))] == [(3, 2)] * 3


def test_swapping_the_pair_changes_nothing():
    model, pair = network(), graphs(8, 7).view(4, 2, 7, 7)
    torch.testing.assert_close(model(pair.flip(1)), model(pair), rtol=0, atol=1e-13)


def test_upper_triangles_are_a_shorter_form_of_the_same_graphs():
    model, a = network(), graphs(4, 7)
    row, column = np.triu_indices(7, 1)
    upper = a[:, row, column]
    torch.testing.assert_close(model.embed(upper), model.embed(a), rtol=0, atol=1e-13)
    pair = model(upper.view(2, 2, 21))
    torch.testing.assert_close(pair, model(a.view(2, 2, 7, 7)), rtol=0, atol=1e-13)


def test_the_diagonal_and_the_direction_of_edges_do_not_count():
    model, a = network(), graphs(2, 7)
    skew = torch.randn(2, 7, 7, dtype=torch.float64, generator=seeded(3))
    changed = a + (skew - skew.transpose(1, 2)) + torch.eye(7, dtype=torch.float64) * 5
    torch.testing.assert_close(model.embed(changed), model.embed(a), rtol=0, atol=1e-13)


@pytest.mark.parametrize("features", FEATURES)
def test_renaming_nodes_changes_nothing_when_the_weights_are_renamed_too(features):
    model, a = network(features=features), graphs(3, 7)
    order = torch.randperm(7, generator=seeded(4))
    renamed = a[:, order][:, :, order]
    before = model.embed(a)
    if features != "strength":  # which has no weights that know a node's name
        assert not torch.allclose(model.embed(renamed), before, atol=1e-3)
        with torch.no_grad():
            model.first.lin.weight.copy_(model.first.lin.weight[:, order])
    torch.testing.assert_close(model.embed(renamed), before, rtol=0, atol=1e-13)


@pytest.mark.parametrize("case", ["negative", "cancelling", "isolated", "empty"])
def test_degrees_of_signed_graphs_never_give_nan(case):
    a = graphs(2, 7)
    if case == "negative":
        a = -a.abs()
    elif case == "cancelling":  # every row sums to -1, so that 1 + sum is 0
        a = torch.zeros_like(a)
        for i in range(7):
            a[:, i, (i + 1) % 7] = a[:, (i + 1) % 7, i] = -0.5
    elif case == "isolated":
        a[:, 0] = a[:, :, 0] = 0
    else:
        a = torch.zeros_like(a)
    model, a = network(), a.view(1, 2, 7, 7).requires_grad_()
    out = model(a)
    (slope,) = torch.autograd.grad(out[:, 1].sum(), a, create_graph=True)
    (second,) = torch.autograd.grad(slope.square().sum(), a)
    assert out.isfinite().all()
    assert slope.isfinite().all()
    assert second.isfinite().all()


def test_training_on_pairs_gets_clearly_below_chance():
    torch.manual_seed(0)
    generator = seeded(5)
    block = torch.zeros(10, 10)
    block[:5, :5] = 0.6  # class 1 has strong ties among the first half, class 0 among the second
    templates = torch.stack([block.flip(0, 1), block])

    def pairs(count):
        kind = torch.randint(2, (count, 2), generator=generator)
        noise = 0.3 * torch.randn(count, 2, 10, 10, generator=generator)
        x = templates[kind] + noise
        return (x + x.transpose(2, 3)) / 2, (kind[:, 0] == kind[:, 1]).long()

    model = SiameseGCN(10)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        x, same = pairs(32)
        loss = F.cross_entropy(model(x), same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x, same = pairs(300)
    with torch.no_grad(), undisturbed(model):
        assert F.cross_entropy(model(x), same) < 0.35  # chance is log 2 = 0.693


def test_without_torch_geometric_one_sentence_says_what_to_install(monkeypatch):
    for name in {"torch_geometric", *(n for n in sys.modules if n.startswith("torch_geometric"))}:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError) as caught:
        SiameseGCN(5)
    start = "SiameseGCN: torch_geometric must be installed (pip install 'r2et[graph]'), got "
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": 1}, "nodes must be at least 2, got 1."),
        ({"nodes": 0}, "nodes must be a whole number, at least 1, got 0."),
        ({"nodes": 5, "widths": [4]}, "widths must be a list of 2 whole numbers, got [4]."),
        ({"nodes": 5, "widths": [4, 0]}, "every width must be a whole number, at least 1, got 0."),
        (
            {"nodes": 5, "features": "degree"},
            "features must be one of adjacency, identity, strength, got degree.",
        ),
        ({"nodes": 5, "classes": 0}, "classes must be a whole number, at least 1, got 0."),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(InputError) as caught:
        SiameseGCN(**settings)
    assert str(caught.value) == f"SiameseGCN: {message}"


def test_another_number_of_nodes_is_refused_in_one_sentence():
    with pytest.raises(InputError) as caught:
        SiameseGCN(5)(torch.zeros(2, 2, 6, 6))
    assert str(caught.value) == (
        "SiameseGCN: a graph must be of shape (5, 5) or (10,) for 5 nodes, got (6, 6)."
    )
