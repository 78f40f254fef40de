"""Rows whose border is a tie: counted, and said in the terminal, the summary and the page."""

import pytest
import torch
from torch import nn

from r2et import audit
from r2et.audit.measures.ties import border_ties
from r2et.region import L2


def tied(scores, k):
    return border_ties(torch.tensor(scores), k)["tied"].tolist()


def test_equal_and_nearly_equal_scores_are_tied():
    scores = [[3.0, 2.0, 1.0], [3.0, 1.0, 1.0], [1.0, 1.0 + 1e-7, 0.5], [0.0, 0.0, 0.0]]
    assert tied(scores, 1) == [False, False, True, True]
    assert tied(scores, 2) == [False, True, False, True]
    assert border_ties(torch.tensor(scores), 1)["flat"].tolist() == [False, False, False, True]
    # In double precision the same difference is no rounding.
    precise = torch.tensor(scores, dtype=torch.float64)
    assert border_ties(precise, 1)["tied"].tolist() == [False, False, False, True]


def test_size_of_the_scores_does_not_matter():
    scores = torch.tensor([[3.0, 2.0, 2.0 - 1e-3, 1.0]])
    for size in (1e-20, 1.0, 1e20):
        assert border_ties(size * scores, 2)["tied"].tolist() == [False]
        assert border_ties(size * scores.round(), 2)["tied"].tolist() == [True]


class MaxPoolCNN(nn.Module):
    """Most pixels are no window's largest, and have no influence at all."""

    def __init__(self):
        super().__init__()
        self.pool, self.line = nn.MaxPool2d(4), nn.Linear(4, 2)

    def forward(self, x):
        return self.line(self.pool(x).flatten(1))


@pytest.mark.usefixtures("short_attacks")
def test_a_max_pool_network_says_why_its_radius_is_nothing(tmp_path):
    torch.manual_seed(0)
    x, y = torch.rand(9, 1, 8, 8), torch.arange(9) % 2
    x[0] = 0.5  # flat, and yet one pixel of each window is picked
    found = audit(MaxPoolCNN(), x, y, k=6, region=L2(0.3), budget="fast")
    assert found.summary()["ties"] == 9  # four pixels have scores, and six are asked for
    text = str(found)
    assert "rows tied at the border of the top 6" in text
    assert "note: ties at the border decide for 9 of 9 rows" in text
    found.to_html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "ties at the border decide for 9 of 9 rows" in page
    assert "Ties at the border" in page
    assert all(row["tied"] is True for row in found.rows)
    assert not found.check(["ties<=0"])


@pytest.mark.usefixtures("short_attacks")
def test_without_ties_nothing_is_said():
    torch.manual_seed(0)
    found = audit(nn.Linear(4, 2), torch.rand(9, 4), k=2, region=L2(0.1), budget="fast")
    assert found.summary()["ties"] == 0
    assert found.result["notes"] == []
    assert found.check(["ties<=0"])


@pytest.mark.usefixtures("short_attacks")
def test_flat_scores_are_told_apart():
    line = nn.Linear(4, 2)
    with torch.no_grad():
        line.weight.zero_()
    found = audit(line, torch.rand(5, 4), k=2, region=L2(0.1), budget="fast")
    (note,) = found.result["notes"]
    assert note.endswith("5 rows have the same score for every feature.")
