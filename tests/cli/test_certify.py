"""r2et certify, as a user types it."""

import json

import pytest
import torch
from rich.console import Console
from tests.credit import credit_table

from r2et.audit import Bracket
from r2et.cli.certify import show
from r2et.data import load_table
from r2et.models import MLP, save_model


@pytest.fixture
def run(program):
    return program("certify")


def test_table_and_curve(run, folder, tmp_path):
    code, out, err = run(folder, "adult", "--rows", "12", "--figure", "curve.svg")
    assert (code, err) == (0, "")
    for part in (
        "proved up to",
        "broken at",
        "unknown",
        "Different top-8 sets: ",
        "The proof assumes",
    ):
        assert part in out
    assert (tmp_path / "curve.svg").exists()


def test_json(run, folder):
    code, out, _ = run(folder, "adult", "--rows", "5", "--k", "3", "--norm", "linf", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["rows"], found["k"], found["norm"]) == (5, 3, "linf")
    for proved, broken in zip(found["certified"], found["attacked"], strict=True):
        assert broken is None or proved <= broken
    assert [sum(e[n] for n in ("proved", "unknown", "broken")) for e in found["curve"]] == (
        pytest.approx([1.0] * len(found["curve"]))
    )


def test_training_rows_are_left_out(program, tmp_path):
    credit_table(160).to_csv(tmp_path / "loans.csv", index=False)
    options = ("--target", "class", "-o", "m", "--recipe", "vanilla", "--epochs", "1", "--k", "2")
    assert program("train")("loans.csv", *options, "--no-baselines")[0] == 0
    run = program("certify")
    code, out, _ = run("m", "loans.csv", "--rows", "20", "--budget", "fast")
    first = " ".join(out.split())
    assert code == 0
    assert first.startswith("136 of the 160 rows given were used in training (112 to train on, 24")
    assert "and are left out; the figures are of 20 of the other 24. 20 rows, quantiles" in first
    held_out = json.loads(run("m", "loans.csv", "--budget", "fast", "--json")[1])
    stored = json.loads(run("m", "--budget", "fast", "--json")[1])
    assert held_out["training_rows"]["training"] == 112
    assert stored["rows"] == held_out["rows"] == 24
    # The file has the test rows in its own order.
    assert sorted(stored["certified"]) == pytest.approx(sorted(held_out["certified"]), rel=1e-3)
    everything = run("m", "loans.csv", "--all-rows", "--rows", "3", "--budget", "fast")[1]
    assert everything.startswith("Training rows included: 136 of the 160")
    lines = (tmp_path / "loans.csv").read_text().splitlines()
    rows = load_table(tmp_path / "loans.csv", "class").row_numbers[0].tolist()
    (tmp_path / "seen.csv").write_text("\n".join([lines[0], *(lines[1 + i] for i in rows)]))
    code, _, err = run("m", "seen.csv")
    assert code == 2
    assert err.startswith("certify: x must be rows that the training has not seen")


def test_nothing_reads_as_more_than_was_proved(capsys):
    certified = torch.tensor([1.0005] * 57 + [0.01] * 3, dtype=torch.float64)
    nothing = torch.full((60,), torch.inf, dtype=torch.float64)
    show(Console(width=120), Bracket(certified, nothing, "l2", 2, 1.0, "", "", 3, 0.5))
    shown = capsys.readouterr().out
    between = torch.full((60,), 0.02998, dtype=torch.float64)
    show(Console(width=120), Bracket(between, nothing, "l2", 2, 1.0, "", "", 3, 0.5))
    rounded = capsys.readouterr().out
    assert shown.count("at least 1.0000") == 4
    assert "0.0299" in rounded
    assert "0.0300" not in rounded
    certified = torch.tensor([1.0] * 1997 + [0.0], dtype=torch.float64)
    nothing = torch.full((1998,), torch.inf, dtype=torch.float64)
    show(Console(width=120), Bracket(certified, nothing, "l2", 2, 1.0, "", "", 3, 0.5))
    assert "100.0%" not in capsys.readouterr().out  # 99.95 %


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere", "adult"), "one with model.json"),
        (("{folder}", "adlut"), "a file that exists or a data set of `r2et data list`, got adlut"),
        (("{folder}", "rows.csv"), "a file that exists or a data set"),
        (("{folder}", "adult", "--k", "28"), "k must be in 1..27 for 28 features, got 28"),
        (("{folder}", "adult", "--rows", "0"), "rows must be a positive whole number, got 0"),
        (("{folder}", "adult", "--norm", "l1"), "norm must be l2 or linf, got l1"),
        (("{folder}", "adult", "--limit", "-1"), "limit must be positive, at most 1e+06, got -1"),
        (("{folder}", "adult", "--limit", "1e300"), "limit must be positive, at most 1e+06"),
        (("{folder}", "adult", "--figure", "x.pdf"), "a name that ends in .png or .svg, got x.pdf"),
        (
            ("{folder}", "adult", "--figure", "bare/model.json/x.png"),
            "a file that can be written, got",
        ),
        (("bare", "adult"), "one that fit or `r2et train` has written"),
    ],
)
def test_bad_input_is_one_sentence(run, folder, arguments, message):
    save_model(MLP(28), "bare")
    code, out, err = run(*(a.format(folder=folder) for a in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
