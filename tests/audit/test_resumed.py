"""An unfinished audit goes on with the model that began it, and with no other."""

import pytest
import torch
from torch import nn

from r2et.audit import audit
from r2et.audit.measures import MeasureChunk
from r2et.audit.resumed import behaviour
from r2et.audit.settings import AuditSettings


class Net(nn.Module):
    """Of one text and the same weights, whatever its forward computes."""

    bend = staticmethod(torch.relu)

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.bend(self.first(x)))


@pytest.mark.usefixtures("short_attacks")
def test_rows_of_another_function_are_measured_anew(tmp_path, monkeypatch):
    kept, said = tmp_path / "audit.partial", []
    x = torch.rand(6, 4, generator=torch.Generator().manual_seed(1))
    asked = {"k": 2, "budget": "fast", "partial": kept, "note": said.append}
    first = audit(Net(), x, **asked)
    assert said == []
    with monkeypatch.context() as other:
        other.setattr(Net, "bend", staticmethod(torch.tanh))
        again = audit(Net(), x, **asked)
    assert again.result["rows"]["probability"] != first.result["rows"]["probability"]
    why = "they, or what the model makes of them, are not as they were"
    assert said == [f"6 rows of {kept} measured anew: {why}"]
    with monkeypatch.context() as other:
        other.setattr(Net, "bend", staticmethod(torch.tanh))
        other.setattr(MeasureChunk, "__call__", None)  # nothing is measured
        assert audit(Net(), x, **asked).result["rows"] == again.result["rows"]
    assert said[1:] == [f"6 rows taken over from the unfinished {kept}"]


def test_a_digest_of_behaviour_leaves_no_trace_and_survives_errors():
    x, settings = torch.rand(6, 4), AuditSettings(2)
    work, state = MeasureChunk(Net(), settings), torch.get_rng_state()
    assert behaviour(work, x) == behaviour(work, x)
    assert behaviour(work, x) == behaviour(work, x[:4])  # of the first four rows
    assert behaviour(work, x) != behaviour(work, x.flip(0))
    assert torch.equal(torch.get_rng_state(), state)
    broken = MeasureChunk(nn.Sequential(nn.Linear(5, 2)), settings)
    assert behaviour(broken, x) != behaviour(work, x)
