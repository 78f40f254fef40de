"""Probabilities are told from logits by the operation that made them."""

import pytest
import torch
from torch import nn

from r2et.errors import InputError
from r2et.models.logits_check import check_logits


class Ends(nn.Module):
    """A linear layer with something done to its output."""

    def __init__(self, ending, out=2):
        super().__init__()
        self.line = nn.Linear(3, out)
        self.ending = ending

    def forward(self, x):
        return self.ending(self.line(x))


X = torch.rand(2, 3)
SQUASHED = {
    "sigmoid": [
        nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()),
        Ends(lambda z: torch.sigmoid(z).squeeze(1), 1),
        Ends(lambda z: z.sigmoid()[:, 0], 1),
        Ends(lambda z: z.sigmoid().view(-1), 1),
        Ends(lambda z: torch.cat([1 - z.sigmoid(), z.sigmoid()], 1), 1),
        Ends(lambda z: torch.stack([1 - z[:, 0].sigmoid(), z[:, 0].sigmoid()], 1), 1),
        Ends(lambda z: nn.functional.logsigmoid(z).exp(), 1),
        Ends(lambda z: z.double().sigmoid().float().reshape(-1, 1), 1),
    ],
    "softmax": [
        nn.Sequential(nn.Linear(3, 4), nn.Softmax(dim=1)),
        nn.Sequential(nn.Linear(3, 4), nn.Flatten(), nn.Softmax(dim=1), nn.Flatten(), nn.Dropout()),
        Ends(lambda z: torch.softmax(z, -1)),
        Ends(lambda z: z.softmax(1)[:, 1]),
        Ends(lambda z: z.softmax(1).T.contiguous().T),
        Ends(lambda z: z.log_softmax(1).exp()),
    ],
}
LOGITS = [
    nn.Linear(3, 2),
    nn.Sequential(nn.Linear(3, 2), nn.LogSoftmax(dim=1)),
    nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 2)),
    Ends(lambda z: z.clamp(0, 1)),
    Ends(lambda z: 0.5 + 0 * z, 1),  # in 0..1 by chance
    Ends(lambda z: z.sigmoid() * z),
    Ends(lambda z: torch.cat([z, z.sigmoid()], 1)),
    Ends(lambda z: z.exp()),
    Ends(lambda z: torch.special.logit(z.sigmoid())),
]


@pytest.mark.parametrize(
    "named", [(name, i) for name, some in SQUASHED.items() for i in range(len(some))]
)
def test_probabilities_are_refused(named):
    name, number = named
    with pytest.raises(InputError) as caught:
        check_logits("audit", SQUASHED[name][number], X)
    assert str(caught.value) == (
        "audit: model must be one that returns logits, got probabilities:"
        f" it ends in a {name} (audit it without that layer)."
    )


@pytest.mark.parametrize("number", range(len(LOGITS)))
def test_logits_are_taken(number):
    check_logits("audit", LOGITS[number], X)


def test_frozen_weights_hide_nothing_and_nothing_stays_behind():
    model = nn.Sequential(nn.Linear(3, 1), nn.Dropout(), nn.Sigmoid()).requires_grad_(False).train()
    with torch.no_grad(), pytest.raises(InputError, match="ends in a sigmoid"):
        check_logits("audit", model, X)
    assert model.training
    assert not X.requires_grad
    assert model[0].weight.grad is None
