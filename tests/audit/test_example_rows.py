"""The rows that are shown: the worst that was found within each radius, never less than before."""

import torch
from torch import nn

from r2et.audit import example_rows
from r2et.audit.settings import AuditSettings
from r2et.region import L2


class Scores(nn.Module):
    """Two classes whose log-odds have the gradient x + 5: points are explanations."""

    def forward(self, x):
        odds = (x + 5).square().sum(1) / 2
        return torch.stack([torch.zeros_like(odds), odds], 1)


CLEAN, SWAPPED = torch.tensor([[4.0, 3.0, 1.0]]), torch.tensor([[3.0, 4.0, 1.0]])


def test_a_wider_search_that_finds_less_does_not_undo_what_was_found(monkeypatch):
    """The worst point within 0.2 lies within 0.4, too, whatever the attack there says."""
    found = iter([CLEAN, SWAPPED, CLEAN, CLEAN, CLEAN])
    monkeypatch.setattr(example_rows, "_attack", lambda *_: next(found))
    monkeypatch.setattr(example_rows, "_proof", lambda *_: None)
    columns = {
        "index": torch.tensor([7]),
        "top": torch.tensor([[0]]),
        "probability": torch.tensor([1.0]),
        "precision_strong": torch.tensor([0.0]),
    }
    (row,) = example_rows.example_rows(
        Scores(), AuditSettings(1, L2(2.0)), columns, {0: (CLEAN[0], CLEAN[0])}
    )
    assert [step["precision"] for step in row["steps"]] == [1, 0, 0, 0, 0, 0]
    assert [step["x"] for step in row["steps"]] == CLEAN.tolist() + SWAPPED.tolist() * 5
    assert row["steps"][1]["scores"] == [8, 9, 6]
