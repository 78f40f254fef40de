"""Figures of a few rows by hand: what was not measured counts neither for nor against."""

import math

import pytest
import torch
from torch import nn

from r2et import audit
from r2et.audit.concatenate import left_out
from r2et.audit.input_rows import Chunk, InputRows
from r2et.audit.linear_baseline import LinearBaseline
from r2et.audit.measures import MeasuredChunk
from r2et.audit.settings import AuditSettings
from r2et.audit.statistics import median
from r2et.audit.summary import curve, summarize
from r2et.region import L2
from r2et.report.shares import shares_at_radius
from r2et.train.baselines import Logistic


def columns(**given):
    rows = len(next(iter(given.values())))
    top = torch.zeros(rows, 1, dtype=torch.long)
    return {"index": torch.arange(rows), "top": top, **given}


def test_rows_without_a_certificate_are_not_counted_as_unproved():
    radius = torch.tensor([0.5, 0.1, 0.4, math.nan, math.nan], dtype=torch.float64)
    told, counts = summarize(
        columns(radius_certified=radius), AuditSettings(1, L2(0.3)), LinearBaseline()
    )
    assert told["certified_share"] == pytest.approx(2 / 3)
    assert told["radius_certified_median"] == 0.4
    assert counts["certified_share"] == counts["radius_certified_median"] == 3
    nothing = torch.full((2,), math.nan)
    told, counts = summarize(
        columns(radius_certified=nothing), AuditSettings(1, L2(0.3)), LinearBaseline()
    )
    assert told["certified_share"] is told["radius_certified_median"] is None
    assert "certified_share" not in counts


def test_a_row_that_any_attack_changed_is_changed_on_the_terminal_and_on_the_page():
    given = {
        "precision_strong": [1.0, 0.5, 1.0, 1.0, math.nan],
        "radius_attacked": [0.3, 0.1, 0.31, math.inf, math.nan],
    }
    tensors = {name: torch.tensor(values, dtype=torch.float64) for name, values in given.items()}
    told, counts = summarize(columns(**tensors), AuditSettings(1, L2(0.3)), LinearBaseline())
    assert (told["changed_share"], counts["changed_share"]) == (0.5, 4)  # the first two of four
    rows = {n: [v if math.isfinite(v) else None for v in vs[:4]] for n, vs in given.items()}
    assert shares_at_radius({"summary": {"radius": 0.3}, "rows": rows}).broken == 0.5
    without = columns(precision_strong=torch.tensor([1.0, 0.5]))
    told, _ = summarize(without, AuditSettings(1, L2(0.3)), LinearBaseline())
    assert told["changed_share"] == 0.5


def test_a_radius_that_no_attack_found_is_said():
    audited = audit(nn.Linear(3, 2), torch.rand(8, 3), k=1, region=L2(0.1), budget="fast")
    assert audited.summary()["radius_attacked_median"] is None  # its reasons never move
    assert f"  {'median radius attacked':42} above 0.3, the largest looked for" in str(audited)


def chunk_of(x, y, number=0):
    return Chunk(number, torch.arange(len(x)), x, y)


def test_the_logistic_regression_of_the_training_is_scored_in_the_order_of_the_rows():
    fitted = Logistic(torch.tensor([[0.0], [1.0]]).double(), torch.zeros(2).double())
    linear = LinearBaseline(fitted)
    for number in (1, 0):  # as they come, from several workers' worth of chunks
        x = torch.tensor([[2.0 * number], [2.0 * number + 1]])
        linear.see(chunk_of(x, torch.tensor([0, 1]), number))
    scored = linear.columns([0, 1])["logits_logistic"]
    assert scored[:, 1].tolist() == [0, 1, 2, 3]
    given = columns(label=torch.tensor([0, 0, 1, 1]), logits_logistic=scored)
    told, counts = summarize(given, AuditSettings(1, L2(0.3)), linear)
    assert (told["auc_logistic"], counts["auc_logistic"]) == (1, 4)
    assert told["auc_linear"] is None  # nothing is fitted on the audited rows


def test_a_linear_model_that_is_always_wrong_has_no_half_for_it():
    line = LinearBaseline()
    # Leaving a pair out, the other pair points the wrong way.
    line.see(chunk_of(torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([0, 1, 0, 1])))
    assert min(line.auc()) == 0.0


def test_a_linear_model_of_huge_numbers():
    torch.manual_seed(0)
    x, y = torch.randn(40, 3).double(), torch.arange(40) % 2
    plain, huge = LinearBaseline(), LinearBaseline()
    plain.see(chunk_of(x, y))
    huge.see(chunk_of(x * torch.tensor([1.0, 1e200, 1e300], dtype=torch.float64), y))
    assert huge.auc() == pytest.approx(plain.auc())


def test_each_reason_has_its_own_rows():
    def part(number, rows, skipped):
        return MeasuredChunk(number, "", {"index": torch.arange(rows)}, {}, skipped, {})

    source = InputRows(nn.Linear(4, 2), torch.rand(9, 4), None, None)
    parts = [part(0, 4, {}), part(1, 3, {"strong": "a"}), part(2, 2, {"strong": "b"})]
    assert left_out(parts, source, {"auc_clean": None})[:2] == [
        {"what": "strong", "why": "a (for 3 of 9 rows)"},
        {"what": "strong", "why": "b (for 2 of 9 rows)"},
    ]


def told(y, x=None):
    """What an audit without time leaves out."""
    torch.manual_seed(0)
    x = torch.rand(len(y), 4) if x is None else x
    found = audit(nn.Linear(4, 3), x, y, k=2, minutes=1e-9)
    return {s["what"]: s["why"] for s in found.skipped}


def test_why_there_is_no_auc():
    assert told([1, 1, 1])["accuracy"] == "the rows' labels are all of one class"
    assert "a class has a single row" in told([0, 0, 0, 1])["linear model"]
    assert not {"accuracy", "linear model"} & told([0, 0, 1, 1]).keys()


def test_a_stream_that_was_read_to_its_end_was_not_cut_short():
    class Batches:
        def __iter__(self):
            yield torch.rand(8, 4, generator=torch.Generator().manual_seed(0))

    found = audit(nn.Linear(4, 2), Batches(), k=2, minutes=1e-9, chunk=8)
    assert "rows" not in {s["what"] for s in found.skipped}
    found = audit(nn.Linear(4, 2), Batches(), k=2, minutes=1e-9, chunk=4)
    assert {"what": "rows", "why": "the time was up after 4 rows of the stream"} in found.skipped


def test_means_medians_and_the_curve_at_their_ends():
    settings = AuditSettings(1, L2(0.3))
    told, counts = summarize(
        columns(dffot=torch.tensor([1.0, math.nan, 0.5])), settings, LinearBaseline()
    )
    assert (told["dffot"], counts["dffot"]) == (0.75, 2)
    # Of one value nothing follows for others; of five their least and greatest are too few.
    assert median(torch.tensor([3.0]), 0.95) == (3.0, None, None)
    assert median(torch.arange(5), 0.95) == (2.0, None, None)
    assert median(torch.arange(6), 0.95) == (2.0, 0.0, 5.0)
    # Of ten values, the second smallest and the second largest hold the median in 97.9 %.
    assert median(torch.arange(10), 0.95) == (4.0, 1.0, 8.0)
    radii = columns(
        radius_certified=torch.tensor([0.3, 0.1], dtype=torch.float64),
        radius_attacked=torch.tensor([math.inf, 0.3], dtype=torch.float64),
    )
    (point,) = (point for point in curve(radii, settings) if point["radius"] == 0.3)
    assert (point["proved"], point["unknown"], point["broken"]) == (0.5, 0.0, 0.5)


def ends(name, values):
    given = columns(**{name: torch.tensor(values, dtype=torch.float64)})
    told, _ = summarize(given, AuditSettings(1, L2(0.3)), LinearBaseline())
    return told[f"{name}_low"], told[f"{name}_high"]


def test_equal_rows_are_no_certainty_about_others():
    rest = 1 - 0.025 ** (1 / 32)  # none of 32 rows was different: at most so many are, 10.9 %
    assert rest == pytest.approx(0.109, abs=5e-4)
    assert ends("precision_strong", [1.0] * 32) == pytest.approx((1 - rest, 1.0))
    assert ends("sensitivity", [0.0] * 32) == pytest.approx((0.0, rest))
    assert ends("dffot", [0.5] * 32) == pytest.approx((0.5 - rest / 2, 0.5 + rest / 2))
    assert ends("comprehensiveness", [0.0] * 32) == pytest.approx((-rest, rest))
    assert ends("thickness", [7.0] * 32) == (None, None)  # which could be anything elsewhere
    for name in ("precision_strong", "sensitivity", "thickness"):
        assert ends(name, [1.0]) == (None, None)


def test_shares_of_rows_have_exact_intervals():
    # The well-known ones of 1 of 10 and of 0 of 10.
    assert ends("sensitivity", [1.0] + [0.0] * 9) == pytest.approx((0.00253, 0.44502), abs=1e-5)
    radius = torch.tensor([0.3] * 2 + [0.3 - 1e-5] * 8, dtype=torch.float64)
    told, _ = summarize(
        columns(radius_certified=radius), AuditSettings(1, L2(0.3)), LinearBaseline()
    )
    assert told["certified_share"] == pytest.approx(0.2)  # proved at the radius, not nearly so far
    found = told["certified_share_low"], told["certified_share_high"]
    assert found == pytest.approx((0.02521, 0.55610), abs=1e-5)


def test_the_commonest_set_has_no_interval_nor_has_a_perfect_auc():
    given = columns(logits=torch.arange(8.0)[:, None], label=torch.arange(8) // 4)
    told, _ = summarize(given, AuditSettings(1, L2(0.3)), LinearBaseline())
    for name in ("largest_top_k_share", "auc_clean"):
        assert (told[name], told[f"{name}_low"], told[f"{name}_high"]) == (1.0, None, None)


def test_rows_with_other_labels_are_other_rows():
    def mark(y):
        return Chunk(0, torch.arange(2), torch.ones(2, 3), y).fingerprint

    marks = {mark(None), mark(torch.tensor([0, 1])), mark(torch.tensor([1, 0]))}
    assert len(marks) == 3


def test_classes_far_apart_are_told_apart_without_a_warning():
    """Their probabilities are 0 and 1 in float64, all alike; their log-odds are not."""
    x = torch.cat([torch.linspace(-1e4, -1e3, 30), torch.linspace(1e3, 1e4, 30)])[:, None]
    x = torch.cat([x, x**3], 1)
    beside = LinearBaseline()
    beside.see(Chunk(0, torch.arange(60), x, (torch.arange(60) >= 30).long()))
    assert beside.auc() == [1.0] * len(beside.auc())
    assert beside.auc()
