"""Gates of r2et audit: the table of docs/audit/gates.md, line by line, and what is reported."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from r2et.audit import Audit, Gate
from r2et.errors import InputError
from r2et.results import FIGURES

PAGE = Path(__file__).parents[2] / "docs" / "audit" / "gates.md"
LOGISTIC = """
import torch
from torch import nn
def net():
    line = nn.Linear(4, 2)
    with torch.no_grad():
        line.weight.copy_(torch.tensor([[0.0, 0, 0, 0], [3.0, -2.0, 1.0, 0.5]]))
        line.bias.zero_()
    return line
"""


def table():
    """(options, exit code) of each line of the page's table."""
    lines = re.findall(r"^\| (`--.*`|\(none\)) \| ([023]) \| ", PAGE.read_text(), re.MULTILINE)
    return [
        ("" if options == "(none)" else options.strip("`"), int(code)) for options, code in lines
    ]


@pytest.fixture
def run(program, tmp_path, monkeypatch):
    """r2et audit of a logistic regression on a few rows, which it ranks rather well."""
    random = np.random.default_rng(0)
    x = random.random((24, 4)).round(3)
    y = (
        3 * x[:, 0] - 2 * x[:, 1] + x[:, 2] + 0.5 * x[:, 3] + random.normal(0, 0.8, 24) > 1
    ).astype(int)
    lines = [",".join(map(str, [*row, label])) for row, label in zip(x, y, strict=True)]
    (tmp_path / "rows.csv").write_text("a,b,c,d,label\n" + "\n".join(lines) + "\n")
    np.savez(tmp_path / "bare.npz", x=x)
    (tmp_path / "logistic.py").write_text(LOGISTIC)
    monkeypatch.syspath_prepend(str(tmp_path))
    audit = program("audit")

    def call(*options):
        quick = ("--k", "2", "--radius", "0.1", "--budget", "fast", "--engine", "serial")
        if "--no-labels" in options:
            given = [option for option in options if option != "--no-labels"]
            return audit("logistic:net", "bare.npz", *quick, *given)
        return audit("logistic:net", "rows.csv", "--target", "label", *quick, *options)

    return call


def test_the_table_is_long_enough():
    assert len(table()) >= 20
    assert {code for _, code in table()} == {0, 2, 3}


@pytest.mark.parametrize(("options", "expected"), table())
def test_exit_codes_of_the_page(run, options, expected):
    code, out, err = run(*shlex.split(options))
    assert code == expected, (out, err)
    if code == 2:
        assert out == ""
        assert err.startswith("audit: ")
        assert err.count("\n") == 1
    gates = options.count("--gate '") + options.count("--fail-under")
    if code != 2 and gates:
        assert f" of {gates} passed" in out
        assert out.count("  passed  ") + out.count("  FAILED  ") == gates
        assert out.count("  FAILED  ") == len(err.splitlines()) == (1 if code else 0)


def test_each_gate_is_reported_everywhere(run, tmp_path):
    gates = ("--gate", "certified_share>=0.9", "--gate", "distinct_top_k >= 2")
    gates += ("--gate", "largest_top_k_share<=0.5")
    code, out, err = run(*gates, "--json", "a.json", "--html", "a.html")
    assert code == 3
    assert "gates: 1 of 3 passed\n" in out
    assert re.search(r"^  passed  certified_share >= 0.9: 1.0000 \(low end 0\.8\d+\)$", out, re.M)
    assert "  FAILED  distinct_top_k >= 2: 1\n" in out
    page, *reasons = err.splitlines()
    assert page.startswith("Page: ")
    assert reasons == [
        "audit: distinct_top_k must be 2 or more, got 1.",
        "audit: largest_top_k_share must be 0.5 or less, got 1.0000.",
    ]
    stored = json.loads((tmp_path / "a.json").read_text())["gates"]
    assert [(gate["name"], gate["passed"]) for gate in stored] == [
        ("certified_share", True),
        ("distinct_top_k", False),
        ("largest_top_k_share", False),
    ]
    assert stored[0]["value"] == 1 > stored[0]["end"] > 0.8
    html = (tmp_path / "a.html").read_text()
    assert "1 of 3 passed" in html
    assert reasons[0].removeprefix("audit: ").rstrip(".") in html
    code, out, _ = run(*gates, "--json", "-")
    assert code == 3
    assert json.loads(out)["gates"] == stored


def test_near_names_are_suggested(run):
    _, _, err = run("--gate", "precision_stong>=0.9")
    assert "near: precision_strong" in err
    _, _, err = run("--gate", "beauty>=0.9")
    assert all(name in err for name in ("distinct_top_k", "auc_clean", "sufficiency"))
    _, _, err = run("--gate", "auc_clean")
    assert "in quotes, as 'auc_clean>=0.8'" in err


def summarized(counts=(), skipped=(), **summary):
    return Audit(
        {
            "summary": {"rows": 9, **summary},
            "counts": {"radius_attacked_median": 9, **dict(counts)},
            "settings": {"rows_asked": 9, "limit": 0.9},
            "skipped": list(skipped),
        }
    )


def test_every_figure_can_be_gated_and_none_passes_unmeasured():
    for name in (*FIGURES, "auc_clean_low", "certified_share_high"):
        for sign in (">=", "<=", ">", "<"):
            empty = summarized(counts={"radius_attacked_median": 0}, **{name: None})
            (verdict,) = empty.check([f"{name}{sign}0.5"])
            assert not verdict.passed
            assert "it was not measured" in verdict.reason
            for value in (0.25, 0.5, 0.75):
                (verdict,) = summarized(**{name: value}).check([f"{name}{sign}0.5"])
                assert verdict.passed is eval(f"{value} {sign} 0.5")


def test_training_rows_pass_no_gate():
    audit = summarized(auc_clean=0.9, auc_clean_low=0.8)
    counts = {"given": 9, "training": 5, "validation": 0, "alike": 0}
    audit.result["training_rows"] = {**counts, "included": True}
    (verdict,) = audit.check(["auc_clean>=0.6"])
    assert not verdict.passed
    assert verdict.reason == (
        "audit: auc_clean must be of rows that the training has not seen, got 0.9000, training rows"
        " included."
    )
    (verdict,) = audit.check(["auc_clean>=0.95"])
    assert verdict.reason == "audit: auc_clean must be 0.95 or more, got 0.9000."
    for others in ({"included": False}, {"included": True, "training": 0}):
        audit.result["training_rows"] = {**counts, **others}
        assert audit.check(["auc_clean>=0.6"])


def test_a_report_is_true_where_all_pass():
    audit = summarized(auc_clean=0.7, auc_clean_low=0.6, auc_clean_high=0.8)
    assert audit.check(["auc_clean>=0.6"])
    assert not audit.check(["auc_clean>=0.6", "auc_clean<0.7"])
    assert [verdict.end for verdict in audit.check(["auc_clean>=0.1", "auc_clean<=1"])] == [
        0.6,
        0.8,
    ]
    for gates in ([], "auc_clean>=0.6", ["auc_clean>=0.6", Gate("auc_clean", ">", 0.5)]):
        with pytest.raises(InputError, match=r"^audit: gate"):
            audit.check(gates)


def test_digits_never_contradict_the_verdict():
    (verdict,) = summarized(auc_clean=0.79999999).check(["auc_clean>=0.8"])
    assert verdict.reason == "audit: auc_clean must be 0.8 or more, got 0.79999999."


def test_a_radius_that_no_attack_found():
    audit = summarized(radius_attacked_median=None)
    (verdict,) = audit.check(["radius_attacked_median>=0.9"])
    assert verdict.passed
    assert verdict.text == "above 0.9, beyond which nothing was looked for"
    for gate in ("radius_attacked_median>=0.91", "radius_attacked_median<=5"):
        assert not audit.check([gate])
