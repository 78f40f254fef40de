"""audit: what it measures on models with known answers, and that nothing but the rows matters."""

import json
import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from nets import ResidualNet
from r2et import audit
from r2et.attack import StrongAttack
from r2et.audit import Audit, compare
from r2et.audit.input_rows import Chunk
from r2et.audit.measures import MeasureChunk
from r2et.audit.run import identity
from r2et.audit.settings import AuditSettings
from r2et.errors import InputError
from r2et.explain import Captum, Concept, Gradient, SmoothGrad
from r2et.models import MLP
from r2et.rank import distinct_top_k, largest_top_k_share, precision_at_k
from r2et.region import L2, Linf
from r2et.train import fit
from training_data import small

SUMMARY = (
    *("precision_noise", "precision_er", "precision_strong", "certified_share"),
    *("certified_precision", "radius_certified_median", "radius_attacked_median", "thickness"),
    *("thickness_probability", "auc_clean", "auc_attacked", "sensitivity", "dffot"),
    *("comprehensiveness", "sufficiency", "largest_top_k_share"),
)


@pytest.fixture(scope="module")
def data():
    return small()


@pytest.fixture(scope="module")
def model(data):
    return fit(MLP(data.train.x.shape[1]), data, "vanilla", epochs=30, progress=False).model


@pytest.fixture(scope="module")
def found(model, data):
    return audit(model, *data.test, k=3, region=L2(0.3), rows=48, budget="fast", chunk=16)


def test_the_summary_has_every_promised_figure_with_its_interval(found):
    told = found.summary()
    assert (told["rows"], told["k"], told["radius"]) == (48, 3, 0.3)
    for name in SUMMARY:
        value, low, high = told[name], told[f"{name}_low"], told[f"{name}_high"]
        if name == "largest_top_k_share":
            assert low is high is None
        else:
            assert low <= value <= high, name
    assert type(told["distinct_top_k"]) is int
    assert found.skipped == []
    assert found.result["counts"]["auc_linear"] == 48
    assert "IEEE arithmetic" in found.result["assumptions"]
    assert all(not isinstance(value, dict | list) for value in told.values())


def test_figures_against_a_second_computation(found, model, data):
    told, rows = found.summary(), found.rows
    index = [row["index"] for row in rows]
    assert sorted(set(index)) == sorted(index)
    assert index != sorted(index)  # a random order
    x, y = data.test.x[index], data.test.y[index]
    assert [row["label"] for row in rows] == y.tolist()
    with torch.no_grad():
        out = model(x)
    assert told["auc_clean"] == pytest.approx(roc_auc_score(y, out.diff(dim=1)[:, 0]))
    scores = Gradient()(model, x)
    assert told["distinct_top_k"] == distinct_top_k(scores, 3)
    assert told["largest_top_k_share"] == pytest.approx(largest_top_k_share(scores, 3))
    for name in ("precision_strong", "dffot", "thickness", "certified_precision"):
        assert told[name] == pytest.approx(np.mean([row[name] for row in rows]))
    share = np.mean([row["radius_certified"] >= 0.3 for row in rows])
    assert told["certified_share"] == pytest.approx(share)
    # The attack's figures are an upper end, the certificate's a lower one, row by row.
    for row in rows:
        broken = math.inf if row["radius_attacked"] is None else row["radius_attacked"]
        assert row["radius_certified"] <= broken
        assert row["certified_precision"] <= row["precision_strong"] <= 1
        assert (row["precision_strong"] < 1) <= (broken <= 0.3 * (1 + 1e-6))
    for point in found.result["curve"]:
        assert point["proved"] + point["unknown"] + point["broken"] == pytest.approx(1)


class Unread(nn.Module):
    """What no certificate can read."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 5), nn.Linear(5, 2)

    def forward(self, x):
        return self.two(torch.erfinv(self.one(x).tanh() / 2))


@pytest.mark.usefixtures("short_attacks")
def test_a_network_that_cannot_be_certified_is_attacked_and_the_reason_told():
    torch.manual_seed(0)
    x = torch.rand(12, 6)
    report = audit(Unread().eval(), x, k=2, region=L2(0.5), budget="fast")
    why = {s["what"]: s["why"] for s in report.skipped}
    assert "got erfinv" in why["certified"]
    assert report.summary()["certified_share"] is None
    assert report.summary()["precision_strong"] is not None
    assert {point["proved"] for point in report.result["curve"]} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_rows_do_not_depend_on_the_engine(engine, found, model, data):
    if engine == "ray":
        pytest.importorskip("ray")
    again = audit(
        *(model, *data.test),
        k=3,
        region=L2(0.3),
        rows=48,
        budget="fast",
        chunk=16,
        engine=engine,
        workers=2,
    )
    assert again.summary() == found.summary()
    assert again.result["rows"] == found.result["rows"]
    assert again.result["shown"] == found.result["shown"]


@pytest.mark.usefixtures("short_attacks")
def test_a_stream_is_read_in_its_order_and_in_chunks(model, data):
    x, y = data.test.x[:40], data.test.y[:40]
    seen = []

    class Batches:
        def __iter__(self):
            for start in range(0, 40, 7):
                seen.append(start)
                yield x[start : start + 7], y[start : start + 7]

    settings = {"k": 3, "region": L2(0.3), "budget": "fast", "chunk": 16}
    streamed = audit(model, Batches(), **settings, rows=30)
    assert [row["index"] for row in streamed.rows] == list(range(30))
    assert [row["label"] for row in streamed.rows] == y[:30].tolist()
    assert seen[-1] < 35  # what is not needed is not read
    whole = audit(model, Batches(), **settings)
    assert [row["index"] for row in whole.rows] == list(range(40))
    clean = Gradient()(model, x)
    for row in whole.rows:
        assert row["top"] == clean[row["index"]].argsort(descending=True, stable=True)[:3].tolist()
    assert whole.summary()["auc_linear"] is not None


@pytest.mark.usefixtures("short_attacks")
def test_a_frame_gives_the_names_and_wide_numbers_are_narrowed(model, data):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data.test.x[:16].double().numpy(), columns=list(data.names))
    found = audit(model, frame, data.test.y[:16].tolist(), k=3, region=L2(0.3), budget="fast")
    assert found.result["names"] == list(data.names)
    same = audit(model, data.test.x[:16], data.test.y[:16], k=3, region=L2(0.3), budget="fast")
    assert found.summary() == same.summary()


@pytest.mark.usefixtures("short_attacks")
def test_what_time_does_not_allow_is_said(model, data, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    whole = MeasureChunk.__call__

    def slow(self, chunk):
        result = whole(self, chunk)
        clock[0] += 40
        return result

    monkeypatch.setattr(MeasureChunk, "__call__", slow)
    found = audit(
        model, *data.test, k=3, region=L2(0.3), rows=64, chunk=16, minutes=1, budget="fast"
    )
    assert found.summary()["rows"] == 32
    assert {"what": "rows", "why": "the time was up after 32 of 64 rows"} in found.skipped
    assert found.result["shown"][0]["steps"][-1]["radius"] == 0.3


@pytest.mark.usefixtures("short_attacks")
def test_no_time_at_all_still_explains_one_chunk(model, data):
    found = audit(model, *data.test, k=3, minutes=1e-9, chunk=8, budget="fast")
    told = found.summary()
    assert told["rows"] == 8
    assert told["precision_strong"] is told["radius_attacked_median"] is None
    assert told["distinct_top_k"] >= 1
    assert {s["what"] for s in found.skipped} >= {"rows", "strong", "certified", "faithfulness"}
    assert found.result["curve"] == []
    json.dumps(found.to_dict(), allow_nan=False)


def test_shown_rows_are_the_worst_and_say_how(found, data):
    shown = found.result["shown"]
    worst = [row for row in shown if row["kind"] == "worst"]
    least = sorted(row["precision_strong"] for row in found.rows)
    measured = {row["index"]: row for row in found.rows}
    got = sorted(measured[row["index"]]["precision_strong"] for row in worst)
    assert got == least[: len(worst)]
    assert any(row["kind"] == "ordinary" for row in shown)
    for row in shown:
        x = data.test.x[row["index"]]
        assert torch.tensor(row["x"]) == pytest.approx(x, abs=1e-5)
        radii = [step["radius"] for step in row["steps"]]
        assert radii == sorted(radii)
        assert radii[-1] == 0.3
        falling = [step["precision"] for step in row["steps"]]
        assert falling == sorted(falling, reverse=True)
        assert falling[-1] <= measured[row["index"]]["precision_strong"]
        for step in row["steps"]:
            moved = torch.tensor(step["x"])
            assert float((moved - x).norm()) <= step["radius"] * 1.0001
            scores = torch.tensor([step["scores"]])
            before = torch.tensor([row["scores"]])
            assert float(precision_at_k(before, scores, 3)) == pytest.approx(step["precision"])
            assert step["proved_precision"] <= step["precision"]


def test_json_there_and_back(found, tmp_path):
    found.to_json(tmp_path / "deep" / "audit.json")
    again = Audit.from_json(tmp_path / "deep" / "audit.json")
    assert again.result == found.result
    assert str(again) == str(found)
    assert "P@3, attacked at most" in str(found)
    (tmp_path / "half.json").write_text((tmp_path / "deep" / "audit.json").read_text()[:500])
    with pytest.raises(InputError, match="half a file: it ends in the middle"):
        Audit.from_json(tmp_path / "half.json")
    (tmp_path / "other.json").write_text('{"format": "something"}')
    with pytest.raises(InputError, match="must be 'r2et-audit/1', as `r2et audit --json`"):
        Audit.from_json(tmp_path / "other.json")
    found.to_html(tmp_path / "page" / "audit.html")
    assert "Explanation audit: MLP" in (tmp_path / "page" / "audit.html").read_text()
    with pytest.raises(InputError, match=r"^to_json: path must be a file that can be written, got"):
        found.to_json(tmp_path / "half.json" / "audit.json")


@pytest.mark.usefixtures("short_attacks")
def test_a_stopped_audit_goes_on_where_it_was(model, data, tmp_path, monkeypatch):
    settings = {"k": 3, "region": L2(0.3), "rows": 48, "budget": "fast", "chunk": 16}
    plain = audit(model, *data.test, **settings)
    kept = tmp_path / "audit.partial"
    whole, seen = MeasureChunk.__call__, []

    def stop_at_the_third(self, chunk):
        seen.append(chunk.number)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return whole(self, chunk)

    monkeypatch.setattr(MeasureChunk, "__call__", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        audit(model, *data.test, **settings, partial=kept)
    with open(kept, "ab") as handle:
        handle.write(b'{"number": 2, "fing')  # as a stop in the middle of writing leaves it
    again = audit(model, *data.test, **settings, partial=kept)
    assert seen == [0, 1, 2, 2]
    assert again.result["rows"] == plain.result["rows"]
    assert again.summary() == plain.summary()
    audit(model, *data.test, **settings, explainer=Gradient(chunk=5), partial=kept)
    assert len(seen) == 4
    with pytest.raises(InputError, match="partial must be a file that an audit of the same rows"):
        audit(model, *data.test, **{**settings, "k": 2}, partial=kept)
    with pytest.raises(InputError, match=r"settings.explainer.of was log_odds, is logit"):
        audit(model, *data.test, **settings, explainer=Gradient(of="logit"), partial=kept)
    other = data.test.x.clone()
    other[:] += 0.01
    audit(model, other, data.test.y, **settings, partial=kept)
    assert len(seen) == 7  # other rows are measured anew


@pytest.mark.slow
def test_killed_in_the_middle(tmp_path):
    """kill -9 of a real process loses no chunk that was done."""
    kept = tmp_path / "audit.partial"
    code = f"""
import torch
from r2et import audit
torch.set_num_threads(1)
torch.manual_seed(0)
from r2et.models import MLP, predict
model, x = MLP(6, (8,)).eval(), torch.rand(640, 6, generator=torch.Generator().manual_seed(0))
audit(model, x, k=2, budget="fast", chunk=16, partial={str(kept)!r})
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if kept.exists() and kept.read_bytes().count(b"\n") >= 3:
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    finally:
        process.wait()
    done = kept.read_bytes().count(b"\n") - 1
    assert done >= 2
    torch.manual_seed(0)
    net, x = MLP(6, (8,)).eval(), torch.rand(640, 6, generator=torch.Generator().manual_seed(0))
    plain = audit(net, x, k=2, budget="fast", chunk=16, rows=(done + 1) * 16)
    resumed = audit(net, x, k=2, budget="fast", chunk=16, rows=(done + 1) * 16, partial=kept)
    assert resumed.result["rows"] == plain.result["rows"]


@pytest.mark.usefixtures("short_attacks")
@pytest.mark.parametrize(
    ("explainer", "proved"),
    [(SmoothGrad(samples=4), True), (Captum("Saliency"), False), (Captum("DeepLift"), False)],
)
def test_other_explanations_are_proved_or_have_all_else(model, data, explainer, proved):
    x, y = data.test.x[:8], data.test.y[:8]
    found = audit(model, x, y, k=3, explainer=explainer, budget="fast")
    told = found.summary()
    assert (told["certified_share"] is not None) == proved
    assert 0 <= told["precision_strong"] <= told["precision_noise"] <= 1
    lacking = {s["what"] for s in found.skipped}
    assert ("certified" in lacking) != proved
    assert ("papers" in lacking) == (explainer.equivalent() is None)


@pytest.mark.usefixtures("short_attacks")
def test_pictures_and_concepts():
    torch.manual_seed(0)
    net = ResidualNet(3, nn.Softplus).eval()
    x = torch.rand(8, 3, 5, 5)
    found = audit(net, x, torch.arange(8) % 3, k=4, region=Linf(0.05), budget="fast")
    assert (found.result["shape"], found.result["scores_shape"]) == ([3, 5, 5], [5, 5])
    assert found.summary()["auc_clean"] is not None
    why = {s["what"]: s["why"] for s in found.skipped}
    assert "reduce abs or signed" in why["certified"]
    by_layer = audit(net, x, k=2, explainer=Concept(), budget="fast", region=Linf(0.05))
    assert {"certified", "faithfulness"} <= {s["what"] for s in by_layer.skipped}
    assert by_layer.result["scores_shape"] == [6]


@pytest.mark.usefixtures("short_attacks")
def test_pictures_of_one_channel_have_a_proof():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Softplus(), nn.Flatten(), nn.Linear(27, 2))
    found = audit(net, torch.rand(6, 1, 5, 5), k=4, region=Linf(0.01), budget="fast")
    assert found.summary()["radius_certified_median"] > 0
    assert found.result["scores_shape"] == [5, 5]


@pytest.mark.usefixtures("short_attacks")
def test_a_scaled_ball_is_certified_in_its_own_units(model, data):
    x = data.test.x[:12]
    plain = audit(model, x, k=3, region=L2(0.3), budget="fast")
    doubled = audit(model, x, k=3, region=L2(0.15, scale=[2.0] * x.shape[1]), budget="fast")
    for one, two in zip(plain.rows, doubled.rows, strict=True):
        assert two["radius_certified"] == pytest.approx(one["radius_certified"] / 2, rel=5e-3)
        assert two["certified_precision"] == one["certified_precision"]


@pytest.mark.usefixtures("short_attacks")
def test_nothing_of_the_model_changes(data):
    net = nn.Sequential(nn.Linear(data.test.x.shape[1], 8), nn.BatchNorm1d(8), nn.Tanh())
    net.append(nn.Linear(8, 2))
    net.train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = data.test.x[:12].clone()
    audit(net, x, k=3, budget="fast")
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert all(module.training for module in net.modules())
    assert all(p.grad is None for p in net.parameters())
    assert torch.equal(x, data.test.x[:12])


@pytest.mark.usefixtures("short_attacks")
def test_compare(found, data):
    torch.manual_seed(0)
    line = nn.Linear(data.test.x.shape[1], 2).eval()
    settings = {"k": 3, "region": L2(0.3), "rows": 48, "budget": "fast", "chunk": 16}
    linear = audit(line, *data.test, **settings, name="linear")
    both = compare([found, linear])
    assert set(both.summary()) == {"MLP", "linear"}
    aucs = {name: told["auc_clean"] for name, told in both.summary().items()}
    assert aucs["MLP"] > aucs["linear"]
    assert both.front() == ["MLP", "linear"]
    test = both.difference("linear", "MLP")
    mean = np.mean([1 - row["precision_strong"] for row in found.rows])
    assert test.difference == pytest.approx(mean)
    with pytest.raises(InputError, match=r"^difference: column must be one with a number for"):
        both.difference("linear", "MLP", "radius_attacked")
    with pytest.raises(InputError, match=r"^compare: audits must be of different names"):
        compare([found, found])
    other = audit(line, data.test.x[:8], k=2, region=L2(0.3), budget="fast", name="other k")
    with pytest.raises(InputError, match=r"^compare: audits must be of one k, got \[2, 3\]"):
        compare([found, other])


@pytest.mark.usefixtures("short_attacks")
def test_a_linear_model_that_could_not_be_fitted_is_named(model, data):
    x, y = data.test.x[:2], torch.tensor([0, 1])
    found = audit(model, x, y, k=3, region=L2(0.1), budget="fast", minutes=1e-6)
    assert found.summary()["auc_linear"] is None
    said = {item["what"]: item["why"] for item in found.skipped}
    assert said["linear model"] == "a class has a single row, and cross-validation takes two"


class Hole(nn.Module):
    """NaN for inputs with a first feature below zero."""

    def __init__(self):
        super().__init__()
        self.inner = MLP(6, (8,)).eval()

    def forward(self, x):
        return self.inner(torch.cat([x[:, :1].sqrt(), x[:, 1:]], 1))


@pytest.mark.usefixtures("short_attacks")
def test_a_model_without_an_output_everywhere_loses_only_what_needs_it():
    torch.manual_seed(0)
    x = torch.rand(6, 6) * 0.1 + 0.01
    found = audit(Hole(), x, k=2, region=Linf(0.2), budget="fast")
    why = {s["what"]: s["why"] for s in found.skipped}
    assert why["strong"].endswith("finite logits, got NaN or inf.")
    told = found.summary()
    assert told["precision_strong"] is None
    assert told["distinct_top_k"] >= 1
    assert [step["radius"] for step in found.result["shown"][0]["steps"]][-1] == 0.2


def test_a_row_that_the_model_fails_on_is_named_as_it_was_given():
    torch.manual_seed(0)
    x = torch.rand(40, 6)
    x[29, 0] = -1
    with pytest.raises(InputError, match=r"finite logits, got NaN or inf in row 29\.$"):
        audit(Hole(), x, k=2, minutes=1e-9, chunk=64)


def test_a_label_no_class_has_is_said_before_anything_is_measured(model, data, monkeypatch):
    monkeypatch.setattr(MeasureChunk, "__call__", None)
    with pytest.raises(
        InputError, match=r"^audit: y must be in 0\.\.1, the model's classes, got 7"
    ):
        audit(model, data.test.x, [0] * (len(data.test.x) - 1) + [7], k=3, chunk=1)


def test_what_is_kept_is_of_one_baseline_to_the_last_digit(model):
    some = torch.full((2000,), 0.12341, dtype=torch.float64)
    other = some.clone()
    other[1000] += 1e-12
    same = identity(model, AuditSettings(3, baseline=some))
    assert same == identity(model, AuditSettings(3, baseline=some.clone()))
    assert same != identity(model, AuditSettings(3, baseline=other))
    assert same != identity(model, AuditSettings(3, baseline=0.12341))


@pytest.mark.usefixtures("short_attacks")
def test_seeds_are_of_the_chunk_and_its_purpose(model, data):
    settings = AuditSettings(3, L2(0.3), budget="fast")
    chunk = Chunk(5, torch.arange(6), data.test.x[:6], None)
    first, again = MeasureChunk(model, settings)(chunk), MeasureChunk(model, settings)(chunk)
    assert all(torch.equal(first.columns[c], again.columns[c]) for c in first.columns)
    for values in first.columns.values():  # no views, which would bring along what they are of
        assert values.untyped_storage().nbytes() == values.numel() * values.element_size()
    direct = StrongAttack(L2(0.3), budget="fast")(
        model, Gradient(), chunk.x, k=3, generator=settings.generator(5, "strong")
    )
    assert torch.equal(direct.precision, first.columns["precision_strong"])
