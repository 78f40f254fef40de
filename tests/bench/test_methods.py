"""Somebody else's method: where it is found, what it may do, and when it is another one."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load as parse_weights

from bench_run import GRID, main
from r2et.bench.benchmark_config import BenchmarkConfig
from r2et.bench.method import method, source_of
from r2et.bench.registry import find_benchmark
from r2et.bench.task import TaskInput
from r2et.bench.train_task import TrainTask, own_copy, undisturbed
from r2et.errors import InputError
from r2et.train import recipe

GRID = replace(GRID, seeds=1)
CODE = """
import torch
from r2et.bench import Method

class Mine(Method):
    def train(self, network, data, *, k, radius, seed):
        {body}
        return network
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Put a method into a module of the current folder; gives its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def put(body, name="their_method"):
        (tmp_path / f"{name}.py").write_text(CODE.format(body=body))
        sys.modules.pop(name, None)
        return f"{name}:Mine"

    yield put
    for name in [n for n in sys.modules if n.startswith("their_")]:
        del sys.modules[name]


def row(folder, recipe, **more):
    """The numbers of a recipe's row in a tiny Table 9."""
    grid = replace(GRID, recipes=("vanilla", recipe), **more)
    (table,) = main(folder, grid=grid).tables
    return {r.recipe: [n.text or n.why for n in r.numbers] for r in table.rows}


def test_a_module_of_the_current_folder(write, tmp_path):
    name = write("pass")
    assert type(method(name)).__name__ == "Mine"
    assert str(tmp_path) in sys.path  # where workers look as well


def test_an_edited_method_is_measured_again(write, tmp_path):
    name = write("pass")
    before, mark = row(tmp_path / "out", name)[name], source_of(method(name))
    name = write("list(network.parameters())[-2].data.neg_()")
    assert source_of(method(name)) != mark
    assert row(tmp_path / "out", name)[name] != before


def test_two_methods_of_one_name_have_files_of_their_own(write, tmp_path):
    names = [write("pass", f"their_{n}") for n in "ab"]
    main(tmp_path / "out", grid=replace(GRID, recipes=("vanilla", *names)))
    files = sorted(p.name for p in (tmp_path / "out" / "claims" / "table9").iterdir())
    assert files == ["adult-their_a.Mine.json", "adult-their_b.Mine.json", "adult-vanilla.json"]


def test_what_a_method_does_to_its_data_is_its_own_affair(write, tmp_path):
    """The data, the random numbers and the kind of float are as before, and no test row is seen."""
    plain = row(tmp_path / "one", "linear")["vanilla"]
    x = find_benchmark("adult").load().test.x.clone()
    body = "data.train.x.mul_(0.5); data.val.x.zero_(); torch.set_grad_enabled(False); "
    body += (
        "torch.set_default_dtype(torch.float64); torch.manual_seed(7); assert not len(data.test.x)"
    )
    name = write(body)
    state = torch.get_rng_state()
    rows = row(tmp_path / "two", name)
    assert "-" not in "".join(rows[name])
    assert rows["vanilla"] == plain
    assert torch.equal(find_benchmark("adult").load().test.x, x)
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), state)


def test_what_a_method_prints_is_no_output(capsys):
    with undisturbed():
        print("working")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "working\n")


def test_a_method_gets_the_network_that_recipes_get(write, monkeypatch):
    name = write("pass")
    data = find_benchmark("adult").load()
    monkeypatch.setattr(BenchmarkConfig, "network", lambda *_: "the benchmark's")
    assert TrainTask("adult", name)._start(method(name), data) == "the benchmark's"
    assert len(own_copy(data).test.x) == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return None", "the result must be a torch.nn.Module from .*Mine.train, got None"),
        ("raise RuntimeError('no')", "RuntimeError: no"),
        ("raise SystemExit(0)", "SystemExit: 0"),
    ],
)
def test_a_method_that_fails_says_why(write, tmp_path, body, reason):
    name = write(body)
    rows = row(tmp_path / "out", name)
    assert rows["vanilla"][0] != ""
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(rows[name][0])


@pytest.mark.parametrize("text", ["raise ValueError('half done')", "def (", "1 / 0"])
def test_a_module_that_does_not_import(write, tmp_path, text):
    write("pass")
    (tmp_path / "their_broken.py").write_text(text)
    with pytest.raises(InputError, match="recipes must be importable, got 'their_broken:X'"):
        method("their_broken:X")


def test_a_class_that_needs_more(write, tmp_path):
    write("pass")
    text = CODE.format(body="pass").replace("Method):", "Method):\n    def __init__(self, a): pass")
    (tmp_path / "their_needy.py").write_text(text)
    with pytest.raises(InputError, match=r"importable, got 'their_needy:Mine' \(TypeError"):
        method("their_needy:Mine")


def test_names_are_found_in_any_case():
    with pytest.raises(InputError, match=r"did you mean r2et\?"):
        method("R2ET")


def test_a_recipe_that_knows_its_network_gets_it():
    named = TrainTask("adult", "certified-individual", epochs=1)
    done = named.do(())
    assert parse_weights(done.network)["layers.0.weight"].shape == (256, 28)
    record = SimpleNamespace(measured={"auc_validation": 0.0}, name="")
    assert named.rebuild(TaskInput(record, done.network)).settings["widths"] == [256]
    given = recipe("certified-individual")
    assert named.widths(given) == (256,)
    # Retrained, it starts at Vanilla's weights.
    assert TrainTask("adult", "certified-individual", retrain=True).widths(given) is None
