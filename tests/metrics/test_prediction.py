"""AUC against scikit-learn and by counting pairs; sensitivity by hand."""

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

import r2et.models.output
from nets import randn
from r2et.data import Split
from r2et.errors import InputError
from r2et.metrics import auc, changed_predictions, sensitivity, split_auc
from r2et.models import MLP


class Logits(nn.Module):
    """The input as the output."""

    def forward(self, x):
        return x if x.shape[1] > 1 else x[:, 0]


IDENTITY = Logits()


def test_auc_by_hand():
    x, y = torch.tensor([[1.0], [2], [2], [3]]), torch.tensor([0, 0, 1, 1])
    assert auc(IDENTITY, x, y) == 3.5 / 4  # four pairs, one of them a tie
    assert auc(IDENTITY, -x, y) == 0.5 / 4
    assert auc(IDENTITY, x, y.bool()) == 3.5 / 4
    assert auc(IDENTITY, torch.cat([0 * x, x], 1), y) == 3.5 / 4  # the same as two logits


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_auc_is_the_share_of_pairs_in_order_and_scikit_learns(classes):
    x = randn(60, classes).double()
    x = x.mul(2).round() if classes == 2 else x  # ties that no rounding unties
    y = torch.randint(classes, (60,), generator=torch.Generator().manual_seed(0))
    p = x.softmax(1)
    if classes == 2:
        expected = roc_auc_score(y, (x[:, 1] - x[:, 0]).numpy())
    else:
        expected = roc_auc_score(y, p, multi_class="ovr")
    assert auc(IDENTITY, x, y) == pytest.approx(expected, abs=1e-12)
    wins = []
    for c in range(1, 2) if classes == 2 else range(classes):
        own, other = p[y == c, c], p[y != c, c]
        gap = own[:, None] - other[None]
        gap[gap.abs() < 1e-12] = 0  # probabilities of equal log-odds
        wins.append(float((gap > 0).double().mean() + (gap == 0).double().mean() / 2))
    assert auc(IDENTITY, x, y) == pytest.approx(sum(wins) / len(wins), abs=1e-12)


def test_auc_of_classes_that_are_there():
    x, y = randn(30, 4), torch.arange(30) % 3  # class 3 has no rows
    p = x.double().softmax(1)
    expected = sum(roc_auc_score(y == c, p[:, c].numpy()) for c in range(3)) / 3
    assert auc(IDENTITY, x, y) == pytest.approx(expected, abs=1e-12)
    assert auc(IDENTITY, x, torch.zeros(30, dtype=torch.long)) is None


def test_auc_survives_confidence():
    x = torch.tensor([[60.0, 0, 0], [50, 0, 0]])  # in float64 both have probability 1
    assert auc(IDENTITY, x, torch.tensor([0, 1])) == 1
    scaled = torch.tensor([[400.0], [300], [200], [100]])
    assert auc(IDENTITY, scaled, torch.tensor([1, 1, 0, 0])) == 1  # every probability is 1


def test_auc_does_not_change_with_the_scale_or_the_order_of_rows():
    x, y = randn(50, 3), torch.arange(50) % 3
    shuffle = torch.randperm(50, generator=torch.Generator().manual_seed(1))
    assert auc(IDENTITY, x[shuffle], y[shuffle]) == auc(IDENTITY, x, y)
    two, labels = randn(50, 1), torch.arange(50) % 2
    assert auc(IDENTITY, 7 * two, labels) == auc(IDENTITY, two, labels)
    assert auc(IDENTITY, two, 1 - labels) == pytest.approx(1 - auc(IDENTITY, two, labels))


def test_training_watches_the_same_number():
    model, x, y = MLP(5), randn(40, 5), torch.arange(40) % 2
    assert split_auc(model, Split(x, y)) == auc(model, x, y)


def test_sensitivity_by_hand():
    x = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1], [2, 2]])
    x_adv = torch.tensor([[1.0, 0.9], [1, 1.1], [1, 0], [0, 1], [2, 1]])
    changed = [False, True, True, False, False]  # a tie is class 0
    assert changed_predictions(IDENTITY, x, x_adv).tolist() == changed
    assert sensitivity(IDENTITY, x, x_adv) == 0.4
    assert sensitivity(IDENTITY, x_adv, x) == 0.4
    assert sensitivity(IDENTITY, x, x) == 0


def test_chunks_change_nothing_and_leave_the_mode(monkeypatch):
    model, x, y = MLP(6), randn(33, 6), torch.arange(33) % 2
    model.train()
    x_adv = x + 0.5 * randn(33, 6, seed=1)
    whole = auc(model, x, y), sensitivity(model, x, x_adv)
    monkeypatch.setattr(r2et.models.output, "CHUNK_NUMBERS", 24)
    assert (auc(model, x, y), sensitivity(model, x, x_adv)) == whole
    assert model.training
    with pytest.raises(InputError, match=r"^auc: model must be .* got NaN or inf in row 30\.$"):
        auc(_broken_at(x[30]), x, y)


def _broken_at(row):
    class Broken(nn.Module):
        def forward(self, x):
            return torch.where((x == row).all(1, keepdim=True), torch.nan, x[:, :2])

    return Broken()


X, Y = randn(4, 2), torch.tensor([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: auc(IDENTITY, X, [0, 1, 0, 1]), "auc: y must be a torch.Tensor, got list."),
        (lambda: auc(IDENTITY, X, Y.float()), "auc: y must be a tensor of whole numbers"),
        (lambda: auc(IDENTITY, X, Y[:3]), "auc: y must be of shape (4,), got int64 tensor"),
        (lambda: auc(IDENTITY, X, Y + 1), "auc: y must be in 0..1, got 2."),
        (lambda: auc(IDENTITY, X, Y - 1), "auc: y must be in 0..1, got -1."),
        (lambda: auc(len, X, Y), "auc: model must be a torch.nn.Module, got builtin"),
        (
            lambda: sensitivity(IDENTITY, X, X[:3]),
            "sensitivity: x_adv must be of the shape of x, (4, 2), got float32",
        ),
        (
            lambda: sensitivity(IDENTITY, X, X / 0),
            "sensitivity: x_adv must be finite, got NaN or infinity in 4 of 4 rows",
        ),
        (
            lambda: sensitivity(IDENTITY, X, X.double()),
            "sensitivity: x_adv must be of the type of x, torch.float32, got float64",
        ),
        (
            lambda: changed_predictions(IDENTITY, X, None),
            "changed_predictions: x_adv must be a torch.Tensor, got NoneType.",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
