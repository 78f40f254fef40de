"""What perf/certify.py and perf/hunt.py recorded is what was promised."""

import pytest

from hunt import CODE, failures
from recording import digest, load_record

RECORD, HUNT, OTHERS = (load_record(part) for part in ("certify", "hunt", "others"))
CASES = RECORD["tightness"]


def name(case):
    return "-".join(str(case[part]) for part in ("data", "kind", "activation", "layers"))


def closest(case):
    """Of all ways to bound, the last look: splits or symbols."""
    return max(case["ratio"].get("split", 0), case["ratio"].get("symbols", 0))


@pytest.mark.parametrize("case", CASES, ids=name)
def test_no_attack_beats_a_proof(case):
    ratio = case["ratio"]
    assert all(0 < value < 1 for value in ratio.values())
    assert closest(case) >= 0.98 * ratio["linear"]
    assert ratio["linear"] >= 0.98 * ratio["interval"]


@pytest.mark.parametrize("case", RECORD["images"], ids=name)
def test_no_attack_beats_a_proof_of_pictures(case):
    assert all(0 <= value < 1 for value in case["ratio"].values())
    assert closest(case) >= (0.95 if case["kind"] == "cnn" else 0.6)


@pytest.mark.parametrize("case", [c for c in CASES if c["layers"] == 1], ids=name)
def test_one_layer_is_tight(case):
    floor = 0.95 if case["activation"] == "leaky_relu" else 0.6
    if (case["data"], case["kind"], case["activation"]) == ("adult", "gap", "leaky_relu"):
        floor = 0.87  # its radii, the largest of all, cross many kinks
    assert closest(case) >= floor
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
    # Symbols, in smooth networks, are a closer look for a few times the work.
    limits = {"leaky_relu": 2, "softplus": 5}
    assert all(case["seconds"] < limits[case["activation"]] for case in large)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_ours_proves_no_less_than_the_others(activation):
    cases = [case for case in OTHERS["cases"] if case["activation"] == activation]
    assert {(case["layers"], case["norm"]) for case in cases} == {
        (layers, norm) for layers in (1, 2, 3) for norm in ("l2", "linf")
    }
    for case in cases:
        ways = case["ways"]
        assert ways["r2et"]["broken"] == ways["interval"]["broken"] == 0
        assert case["outside"]["r2et"]["rows_float32"] == 0
        # All stop up to the bisection's tolerance below what they could prove.
        best = max(ways[way]["ratio"] for way in ("interval", "jacobian"))
        assert ways["r2et"]["ratio"] >= best - 2e-3
