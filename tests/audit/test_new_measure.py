"""A new measure in the audit takes one file: what is below is all of it."""

import json

import pytest
import torch
from torch import Tensor, nn

from r2et import audit
from r2et.audit import Audit, AuditedRows, Figure, Mean, Measure, compare, register
from r2et.audit.measures import MEASURES
from r2et.errors import InputError
from r2et.region import L2
from r2et.report.page import html

TOP_SHARE = Figure(
    "top_share",
    "Weight of the strongest reason",
    unit="share",
    better="lower",
    meaning="Share of all scores that the strongest reason has by itself.",
    group="Concentration",
)


def strongest(rows: AuditedRows) -> dict[str, Tensor]:
    """The largest score over the sum of all, row by row."""
    scores = rows.scores.abs().double()
    return {"top_share": scores.amax(1) / scores.sum(1)}


MEASURE = Measure(
    "concentration", strongest, {TOP_SHARE: Mean("top_share", (0.0, 1.0))}, ("top_share",)
)


@pytest.fixture(scope="module")
def registered():
    """Afterwards the registry is as it was."""
    register(MEASURE)
    yield
    del MEASURES[MEASURE.name]


def linear() -> nn.Linear:
    """Gradients of the log-odds 3, 1, 0, 0 at every row."""
    net = nn.Linear(4, 2)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.0, 0, 0, 0], [3, 1, 0, 0]]))
        net.bias.zero_()
    return net


@pytest.fixture(scope="module")
def result(registered) -> Audit:  # noqa: ARG001
    x = torch.rand(6, 4, generator=torch.Generator().manual_seed(0))
    return audit(linear(), x, k=1, region=L2(0.1), budget="fast", engine="processes", workers=2)


def test_summary_page_and_json_pick_it_up(result, tmp_path):
    assert result.summary()["top_share"] == pytest.approx(0.75)
    assert result.summary()["top_share_low"] < 0.75 < result.summary()["top_share_high"]
    assert [row["top_share"] for row in result.rows] == pytest.approx([0.75] * 6)
    assert "concentration" in result.result["durations"]
    assert "Weight of the strongest reason             75.0%" in str(result)
    result.to_json(tmp_path / "audit.json")
    described = json.loads((tmp_path / "audit.json").read_text())["figures"]
    assert [figure["name"] for figure in described] == ["top_share"]


def test_its_page_can_be_made_where_nobody_knows_it(result, tmp_path, monkeypatch):
    result.to_json(tmp_path / "audit.json")
    monkeypatch.delitem(MEASURES, MEASURE.name)
    read = Audit.from_json(tmp_path / "audit.json")
    text = html([read.result]).replace("\u00a0", " ")
    assert "Concentration" in text
    assert "Share of all scores that the strongest reason has by itself." in text
    assert "75 %" in text
    assert str(read) == str(result)
    plain = audit(linear(), torch.rand(6, 4), k=1, region=L2(0.1), budget="fast", name="plain")
    assert "top_share" not in plain.summary()
    both = html([read.result, plain.result])
    assert both.count("Weight of the strongest reason") >= 2
    assert set(compare([read, plain]).summary()) == {"Linear", "plain"}


@pytest.mark.usefixtures("registered")
def test_a_name_is_taken_once():
    with pytest.raises(InputError, match="register: name must be a new one, got concentration"):
        register(MEASURE)
    with pytest.raises(InputError, match="register: figures must be of new names, got top_share"):
        register(Measure("another", strongest, MEASURE.figures))
    with pytest.raises(InputError, match=r"Figure: unit must be one of share, .* got metres"):
        Figure("length", "Length", unit="metres")
    with pytest.raises(InputError, match="Figure: better must be higher, lower or empty"):
        Figure("length", "Length", better="longer")
