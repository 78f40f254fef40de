"""r2et audit: what ties its result to the files, and who the rows are."""

import hashlib
import json

import numpy as np
import pytest

from r2et.data import load_table
from r2et.models.weights import weights_digest
from r2et.train import fit, load_trained

OPTIONS = ("--budget", "fast", "--engine", "serial", "--rows", "24")


@pytest.fixture
def run(program):
    return program("audit")


def credit(path, rows, first):
    """A table of loans with identifiers, categories and a gap among the labels."""
    random = np.random.default_rng(first)
    lines = ["customer,age,housing,late,outcome"]
    for i in range(rows):
        age, late = random.integers(19, 75), random.poisson(0.6)
        housing = random.choice(["own", "rent", "free"])
        bad = random.random() < 1 / (1 + np.exp(0.5 - late - (housing == "rent")))
        outcome = "" if i == 3 and first else ("bad" if bad else "good")
        lines.append(f"C{first + i},{age},{housing},{late},{outcome}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def model(tmp_path):
    credit(tmp_path / "loans.csv", 200, 0)
    data = load_table(tmp_path / "loans.csv", target="outcome")
    fit(None, data, "vanilla", k=2, epochs=1, out=tmp_path / "model", progress=False)
    return "model"


@pytest.mark.filterwarnings("ignore:.*rows without a outcome left out")
def test_the_result_can_be_tied_to_its_inputs(run, model, tmp_path):
    credit(tmp_path / "later.csv", 60, 1000)
    given = (model, "later.csv", *OPTIONS, "--id", "customer", "--by", "housing", "--by", "age")
    code, out, _ = run(*given, "--json", "a.json", "--html", "a.html")
    assert code == 0
    found = json.loads((tmp_path / "a.json").read_text())
    inputs = found["inputs"]
    data = hashlib.sha256((tmp_path / "later.csv").read_bytes()).hexdigest()
    (weights,) = (tmp_path / "model").glob("weights-*.safetensors")
    assert inputs["data"].items() >= {"name": "later.csv", "sha256": data, "of": "file"}.items()
    own = weights_digest(load_trained(tmp_path / "model").model)
    assert (inputs["weights"]["tensors"], len(inputs["data"]["tensors"])) == (own, 64)
    assert inputs["weights"]["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert inputs["rows"] == 59  # one has no label
    assert inputs["command"] == f"r2et audit {' '.join(given)} --json a.json --html a.html"
    # Rows are numbered without the one that has no label; their names are not.
    table = [line.split(",") for line in (tmp_path / "later.csv").read_text().splitlines()[1:]]
    labelled = [line for line in table if line[-1]]
    for index, name in zip(found["rows"]["index"], found["rows"]["id"], strict=True):
        assert labelled[index][0] == name
    housing, age = found["grouped_by"]
    for group in housing["groups"]:
        inside = [i for i in found["rows"]["index"] if labelled[i][2] == group["value"]]
        assert group["rows"] == len(inside) > 0
    assert all(" to " in group["value"] for group in age["groups"])
    assert "by housing" in out
    page = (tmp_path / "a.html").read_text()
    for text in (data, "later.csv", "--by housing", "By housing.", found["rows"]["id"][0][:3]):
        assert text in page
    shown = found["shown"][0]["index"]
    assert f"Row {shown}, id {labelled[shown][0]}" in page
    for repr_of in ("Gradient(", "L2(radius"):
        assert repr_of not in page


def test_columns_that_are_not_there(run, model):
    for option in ("--id", "--by"):
        code, _, err = run(model, "loans.csv", *OPTIONS, option, "beauty")
        assert code == 2
        name = option.removeprefix("--")
        assert err.startswith(f"audit: {name} must be one of the columns customer, age, housing")


def test_a_network_that_does_not_know_the_names(run, strange, tmp_path):
    rows = (tmp_path / "rows.csv").read_text().splitlines()
    named = [f"id,{rows[0]},town"]
    named += [f"{100 + i},{row},{('Rome', 'Bari')[i % 2]}" for i, row in enumerate(rows[1:])]
    (tmp_path / "named.csv").write_text("\n".join(named) + "\n")
    given = (f"{strange}:net", "named.csv", "--k", "2", "--target", "label", *OPTIONS)
    given += ("--weights", "weights.safetensors")
    assert run(*given)[0] == 2  # two columns too many
    code, _, err = run(*given, "--id", "id", "--by", "town", "--json", "a.json")
    assert (code, err) == (0, "")
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["names"] == ["a", "b", "c", "d"]
    assert found["inputs"]["weights"]["name"] == "weights.safetensors"
    pairs = zip(found["rows"]["index"], found["rows"]["id"], strict=True)
    assert all(name == str(100 + i) for i, name in pairs)
    assert [group["value"] for group in found["grouped_by"][0]["groups"]] == ["Bari", "Rome"]


def test_arrays_of_an_archive(run, strange, tmp_path):
    x = np.random.default_rng(0).random((12, 4))
    who = np.array([f"p{i}" for i in range(12)])
    np.savez(tmp_path / "rows.npz", x=x, y=np.arange(12) % 2, who=who, part=np.arange(12) // 6)
    given = (f"{strange}:net", "rows.npz", "--k", "2", *OPTIONS)
    code, _, _ = run(*given, "--id", "who", "--by", "part", "--json", "a.json")
    assert code == 0
    found = json.loads((tmp_path / "a.json").read_text())
    assert sorted(found["rows"]["id"]) == sorted(who.tolist())
    assert [group["rows"] for group in found["grouped_by"][0]["groups"]] == [6, 6]
