"""What training leaves behind: a folder that reads raw rows as it was trained to."""

import csv
import json

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from r2et.attack import StrongAttack
from r2et.data import Data, Origin, Split, load, load_table
from r2et.errors import InputError
from r2et.explain import Gradient, GradientTimesInput
from r2et.models import MLP, ResNet18, SiameseCNN, SiameseGCN, save_model
from r2et.rank import distinct_top_k, top_k
from r2et.region import L2
from r2et.train import fit, load_trained, recipe, report
from r2et.train.baselines import fit_baselines
from r2et.train.defaults import default_explainer, default_network
from r2et.train.run import changed, open_data, train, widths


def write_loans(path, rows=300, seed=0):
    """A table with numbers, a category, a gap, and an answer that depends on all of them."""
    random = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["income", "age", "grade", "note", "default"])
        for _ in range(rows):
            income, age = random.normal(3000, 900), random.integers(18, 90)
            grade = random.choice(["A", "B", "C"])
            risk = -(income - 3000) / 900 + {"A": -1, "B": 0, "C": 1}[grade] + random.normal()
            shown = "" if random.random() < 0.1 else f"{income:.2f}"
            out.writerow([shown, age, grade, "same", "yes" if risk > 0 else "no"])
    return path


@pytest.fixture
def loans(tmp_path):
    return write_loans(tmp_path / "loans.csv")


def data_of(shape, classes=2, rows=20):
    x = torch.rand(rows, *shape)
    part = Split(x, torch.arange(rows) % classes)
    names = tuple(map(str, range(classes)))
    return Data("made", part, part, part, (), (), 5, Origin("here"), names)


def test_raw_rows_are_predicted_alike_before_and_after(loans, tmp_path):
    data = load_table(loans, "default")
    done = fit(None, data, "r2et", epochs=2, out=tmp_path / "model", progress=False)
    found = load_trained(tmp_path / "model")
    later = write_loans(tmp_path / "later.csv", 50, seed=1)
    x, y = found.read(later)
    assert y is not None
    assert torch.equal(found.model(x), done.model(x))
    # Row by row from the raw cells, by the schema that training had.
    with later.open() as file:
        rows = list(csv.DictReader(file))
    raw = {name: [row[name] or None for row in rows] for name in rows[0]}
    raw["age"] = [float(value) for value in raw["age"]]
    raw["income"] = [float("nan") if value is None else float(value) for value in raw["income"]]
    torch.testing.assert_close(x, data.schema.encode(raw))
    assert [found.classes[i] for i in y] == [row["default"] for row in rows]
    assert found.names == data.names
    assert (found.k, found.radius, found.recipe, found.data) == (data.k, 0.3, "r2et", "loans")
    assert found.schema == data.schema
    chosen = top_k(Gradient()(found.model, x), found.k)
    assert all(found.names[i] for row in chosen.tolist() for i in row)


def test_a_folder_of_another_kind_is_refused(tmp_path):
    save_model(MLP(3), tmp_path)
    with pytest.raises(InputError, match=r"^load_trained: folder must be one that fit .* say k, "):
        load_trained(tmp_path)
    with pytest.raises(InputError, match=r"^load_model: folder must be one with model\.json"):
        load_trained(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "value"),
    [("mean", True), ("rows", "long " * 900), ("rows", "../loans.csv"), ("rows", 3)],
)
def test_a_description_that_was_changed(loans, tmp_path, name, value):
    data, out = load_table(loans, "default"), tmp_path / "model"
    fit(None, data, "vanilla", epochs=1, out=out, progress=False, baselines=False)
    path = out / "model.json"
    described = json.loads(path.read_text())
    described["extra"][name] = value
    path.write_text(json.dumps(described))
    if str(value).startswith("long"):
        assert load_trained(out).seen is None  # as where the file is gone
        return
    expected = "one that fit or `r2et train` has written, got"
    if name == "rows":
        expected = "model.json: rows must be the name of a file in the folder, got"
    with pytest.raises(InputError, match=expected):
        load_trained(out)


def test_rows_without_a_schema_cannot_be_read(tmp_path):
    fit(None, data_of((6,)), "vanilla", epochs=1, out=tmp_path, progress=False)
    with pytest.raises(InputError, match=r"^Trained\.read: the model must be one of a table, got"):
        load_trained(tmp_path).read("x.csv")


def test_the_report_is_what_its_parts_say():
    data = load("adult")
    done = fit(None, data, "vanilla", epochs=1, progress=False)
    found = report(done.model, data, rows=20, radius=0.5)
    with torch.no_grad():
        odds = done.model(data.test.x).diff(dim=1)[:, 0]
    assert found.auc_clean == pytest.approx(roc_auc_score(data.test.y, odds))
    x = data.test.x[:20]
    attacked = StrongAttack(L2(0.5), budget="fast")(done.model, Gradient(), x, k=8)
    assert found.precision_strong == pytest.approx(float(attacked.precision.mean()))
    assert found.precision_strong < 1
    assert found.distinct_top_k == distinct_top_k(Gradient()(done.model, x), 8)
    assert 0 < found.largest_top_k_share <= 1
    assert 0.5 < found.thickness_probability <= 1
    assert (found.rows, found.k, found.radius) == (20, 8, 0.5)


def test_the_linear_baseline_is_that_of_the_linear_recipe():
    data = load("adult")
    done = fit(None, data, "linear", epochs=10, progress=False)
    found = report(done.model, data, rows=5)
    assert found.auc_linear == pytest.approx(found.auc_clean, abs=0.003)
    # The gradient of a linear model is the same everywhere: stable, and the same for everybody.
    assert (found.precision_strong, found.distinct_top_k, found.largest_top_k_share) == (1, 1, 1)


def test_the_linear_baseline_of_many_classes_and_of_one():
    data = data_of((6,), classes=3, rows=60)
    assert 0 <= fit_baselines(data).logistic.auc_test <= 1
    first = Split(data.train.x[::3], data.train.y[::3])
    alone = Data("made", data.train, first, first, (), (), 5, Origin("here"), data.classes)
    assert fit_baselines(alone).logistic.auc_test is None
    assert report(MLP(6, classes=3), alone, k=2, rows=2).auc_clean is None


@pytest.mark.parametrize(
    ("shape", "network", "explainer"),
    [
        ((6,), MLP, Gradient()),
        ((2, 10), SiameseGCN, GradientTimesInput()),
        ((2, 1, 28, 28), SiameseCNN, Gradient(normalize=True)),
        ((3, 32, 32), ResNet18, Gradient(reduce="abs_sum")),
        ((1, 64, 64), ResNet18, Gradient(reduce="abs_sum")),
    ],
)
def test_each_kind_of_data_has_its_network(shape, network, explainer):
    if network is SiameseGCN:
        pytest.importorskip("torch_geometric")
    data = data_of(shape, rows=4)
    before = torch.random.get_rng_state()
    model = default_network(data, seed=1)
    assert torch.equal(before, torch.random.get_rng_state())
    assert type(model) is network
    assert model.eval()(data.train.x).shape == (4, 2)
    assert default_explainer(data) == explainer
    assert explainer(model, data.train.x).shape[1] > data.k
    again = default_network(data, seed=1).state_dict()
    assert all(torch.equal(value, again[name]) for name, value in model.state_dict().items())


def test_widths_are_for_networks_that_have_them():
    assert default_network(data_of((6,)), (5, 4)).settings["widths"] == [5, 4]
    assert default_network(data_of((3, 32, 32)), (4,)).settings["width"] == 4
    for shape in ((3, 32, 32), (2, 1, 28, 28)):
        with pytest.raises(InputError, match=r"^train: hidden must be "):
            default_network(data_of(shape), (5, 4))


def test_the_task_trains_what_fit_trains(loans, tmp_path):
    data = open_data(str(loans), "default")
    done = train(data, changed("r2et", ["weight=0.1"]), tmp_path / "a", epochs=2, seed=5)
    again = fit(None, data, changed("r2et", ["weight=0.1"]), epochs=2, seed=5, progress=False)
    stored = load_trained(tmp_path / "a").model.state_dict()
    assert all(torch.equal(v, stored[n]) for n, v in again.model.state_dict().items())
    assert json.loads(json.dumps(done.to_dict()))["epochs"] == 2
    assert done.report.k == data.k


def test_pairs_of_pictures_go_all_the_way(tmp_path):
    data = data_of((2, 1, 28, 28), rows=4)
    done = train(data, changed("r2et", []), tmp_path, epochs=1, k=50)
    assert done.report.rows == 4
    assert load_trained(tmp_path).schema is None


@pytest.mark.parametrize(("radius", "weight"), [(1.0, 0.1), (0.1, 1.0), (0.001, 3.0)])
def test_the_weight_of_a_proof_follows_its_radius(radius, weight):
    assert recipe("certified").prepared(2, radius).weight == pytest.approx(weight)
    assert recipe("certified", weight=0.7).prepared(2, radius).weight == 0.7  # unless it is given
    with pytest.raises(InputError, match="weight must be 0 or more, got None"):
        recipe("r2et", weight=None)  # it has no usual one
    with pytest.raises(InputError, match="weight must be None, or 0 or more, got -1"):
        recipe("certified", weight=-1)


def test_changes_and_widths_from_text():
    found = changed("r2et-ball", ["weight=0.5", "hinge=0.1", "pairs=all", "adaptive=true"])
    assert (found.weight, found.adaptive) == (0.5, True)
    assert (found.penalty.hinge, found.penalty.pairs) == (0.1, "all")
    assert changed("wd", ["patience=3", "epochs=None"]).patience == 3
    assert widths("32, 16") == (32, 16)
    assert widths(None) is None
    for text in ("", "32;16", "-1", "1e3", "1" * 20):
        with pytest.raises(InputError, match=r"^train: hidden must be whole numbers with commas"):
            widths(text)
    for text in ("weight", "=1", "weight=", "a b=1"):
        with pytest.raises(InputError, match=r"^train: a change must be of the form name=value"):
            changed("r2et", [text])
    with pytest.raises(InputError, match=r"^recipe: lr must be positive, got fast\.$"):
        changed("r2et", ["lr=fast"])


@pytest.mark.filterwarnings("ignore:fit. the trained network is clearly below")  # after one epoch
def test_a_recipe_may_know_its_network(loans, tmp_path):
    data, named = open_data(str(loans), "default"), recipe("certified-individual")
    assert fit(None, data, named, epochs=1, progress=False).model.settings["widths"] == [256]
    for given, made in ((None, [256]), ((4,), [4])):
        train(data, named, tmp_path / str(made), epochs=1, hidden=given)
        assert load_trained(tmp_path / str(made)).model.settings["widths"] == made
    told = recipe("vanilla", hidden=(5, 4))
    assert fit(None, data, told, epochs=1, progress=False).model.settings["widths"] == [5, 4]
    for wrong in ((0,), [32], 32, (1.5,)):
        with pytest.raises(InputError, match=r"^recipe: hidden must be None or a tuple"):
            recipe("vanilla", hidden=wrong)
