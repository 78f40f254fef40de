"""What perf/certify.py and perf/hunt.py recorded is what was promised."""

import pytest

from hunt import CODE, failures
from recording import digest, load_record

RECORD, HUNT = load_record("certify"), load_record("hunt")
CASES = RECORD["tightness"]


def name(case):
    return "-".join(str(case[part]) for part in ("data", "kind", "activation", "layers"))


@pytest.mark.parametrize("case", CASES, ids=name)
def test_no_attack_beats_a_proof(case):
    assert all(0 < ratio < 1 for ratio in case["ratio"].values())
    assert case["ratio"]["split"] >= 0.98 * case["ratio"]["linear"]
    assert case["ratio"]["linear"] >= 0.98 * case["ratio"]["interval"]


@pytest.mark.parametrize("case", [c for c in CASES if c["layers"] == 1], ids=name)
def test_one_layer_is_tight(case):
    assert case["ratio"]["split"] >= (0.95 if case["activation"] == "leaky_relu" else 0.6)
    assert {"vanilla", "r2et", "gap"} == {c["kind"] for c in CASES if c["layers"] == 1}


def test_the_code_is_what_was_hunted():
    """After a change of the code that certifies or explains: `python perf/hunt.py`."""
    assert HUNT["code"] == digest(*CODE)


def test_no_counter_example_was_found():
    hunt = HUNT["totals"]
    assert failures(HUNT["cases"]) == []
    assert hunt["broken"] == 0
    assert hunt["rows"] >= 100_000
    assert hunt["minimum_norm_rows"] == hunt["rows"]
    assert hunt["closest"] < 1


def test_there_was_something_to_break():
    hunt = HUNT["totals"]
    assert hunt["with_a_radius"] >= 0.9 * hunt["rows"]
    for case in HUNT["cases"]:
        # A million gradients: explanations along a path take up to five for each point.
        several = case.get("explainer") in ("IntegratedGradients", "SmoothGrad")
        assert "refused" in case or case["points"] >= (200_000 if several else 1_000_000)


def test_certificates_are_fast():
    large = [case for case in RECORD["speed"]["certify"] if case["rows"] == 1000]
    assert large
    assert all(case["seconds"] < 2 for case in large)
