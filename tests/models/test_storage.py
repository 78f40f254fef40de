import copy
import hashlib
import json
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from r2et.errors import InputError
from r2et.models import (
    MLP,
    HingeMLP,
    ResNet18,
    SiameseCNN,
    SiameseGCN,
    SiameseMLP,
    TableMLP,
    load_extra,
    load_model,
    save_model,
    smooth,
    undisturbed,
)

NETWORKS = {
    "mlp": (lambda: MLP(5, (4, 3), classes=3, activation="relu"), (4, 5)),
    "linear": (lambda: MLP(5, ()), (4, 5)),
    "softplus": (lambda: MLP(5, activation="softplus"), (4, 5)),
    "cnn": (lambda: SiameseCNN(classes=10), (2, 2, 28, 28)),
    "resnet": (lambda: ResNet18(channels=1, width=2, stem="large", classes=3), (2, 1, 64, 64)),
    "gcn": (lambda: SiameseGCN(5, (4, 3), features="strength"), (2, 2, 5, 5)),
    "edges": (lambda: SiameseMLP.fitted(torch.rand(9, 2, 6), 3), (4, 2, 6)),
    "hinge": (lambda: HingeMLP.fitted(torch.rand(50, 5), 4, knots=3), (4, 5)),
    "table": (lambda: TableMLP.fitted(torch.rand(50, 5), (4, 3), bins=6), (4, 5)),
}


def network(name):
    torch.manual_seed(0)
    make, shape = NETWORKS[name]
    model = make()
    x = torch.randn(shape)
    with torch.no_grad():
        model(x)  # in training mode: statistics of BatchNorm leave their initial values
    return model, x


def files(folder):
    return sorted(p.name for p in folder.iterdir() if p.name != ".lock")


def weights_of(folder):
    (path,) = folder.glob("weights-*.safetensors")
    return path


# --- what comes back


@pytest.mark.parametrize("rho", [None, 7.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_comes_back_bit_for_bit(name, dtype, rho, tmp_path):
    model, x = network(name)
    model, x = model.to(dtype), x.to(dtype)
    model = model if rho is None else smooth(model, rho)
    save_model(model, tmp_path)
    again = load_model(tmp_path)
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    assert again.settings == model.settings
    assert not any(m.training for m in again.modules())
    assert all(p.requires_grad for p in again.parameters())
    assert all(torch.equal(v, model.state_dict()[k]) for k, v in again.state_dict().items())
    with undisturbed(model), torch.no_grad():
        assert torch.equal(again(x), model(x))


def test_a_network_that_came_back_can_be_trained_and_copied(folder):
    model = load_model(folder)
    twin = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.randn(2, 3)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(model.layers[0].weight, twin.layers[0].weight)
    assert torch.equal(load_model(folder).layers[0].weight, twin.layers[0].weight)


def test_neither_saving_nor_loading_draws_random_numbers_or_changes_the_model(tmp_path):
    model, _ = network("resnet")
    before = torch.get_rng_state(), {k: v.clone() for k, v in model.state_dict().items()}
    save_model(model, tmp_path)
    load_model(tmp_path)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert all(torch.equal(v, before[1][k]) for k, v in model.state_dict().items())
    assert model.training


def test_extra_comes_back(folder, tmp_path):
    assert load_extra(folder) == {"names": ["a", "b", "c"]}
    save_model(MLP(2), tmp_path / "plain")
    assert load_extra(tmp_path / "plain") == {}


def test_the_folder_holds_json_and_safetensors_only(folder):
    description = json.loads((folder / "model.json").read_text())
    digest = description["weights"]
    assert files(folder) == ["model.json", f"weights-{digest[:16]}.safetensors"]
    assert hashlib.sha256(weights_of(folder).read_bytes()).hexdigest() == digest
    assert description["class"] == "MLP"
    assert description["format"] == 1
    assert description["settings"] == {
        "features": 3,
        "widths": [4],
        "classes": 2,
        "activation": "leaky_relu",
    }


# --- writing


def test_saving_again_replaces_the_model(folder):
    save_model(MLP(7), folder)
    assert load_model(folder).settings["features"] == 7
    assert len(files(folder)) == 2
    save_model(load_model(folder), folder, extra={"again": True})
    assert load_extra(folder) == {"again": True}
    assert len(files(folder)) == 2


@pytest.mark.parametrize("stop", [1, 2])
def test_a_save_that_stops_half_way_leaves_the_old_model(folder, monkeypatch, stop):
    """The first rename finishes the weights, the second the description."""
    replace, calls = os.replace, []

    def full(*paths):
        calls.append(paths)
        if len(calls) == stop:
            raise OSError("disk full")
        replace(*paths)

    old = load_model(folder).state_dict()
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        save_model(MLP(3, (4,)), folder)
    monkeypatch.undo()
    again = load_model(folder).state_dict()
    assert all(torch.equal(again[k], v) for k, v in old.items())
    assert not [name for name in files(folder) if name.endswith(".part")]
    save_model(MLP(9), folder)
    assert load_model(folder).settings["features"] == 9


def test_other_files_in_the_folder_are_left_alone(folder):
    (folder / "notes.txt").write_text("mine")
    save_model(MLP(2), folder)
    assert (folder / "notes.txt").read_text() == "mine"


def test_only_our_networks_can_be_saved(tmp_path):
    class Sub(nn.Sequential):
        pass

    for model in (nn.Linear(2, 2), Sub(), type("MLP", (nn.Module,), {})()):
        with pytest.raises(InputError) as caught:
            save_model(model, tmp_path)
        assert str(caught.value) == (
            "save_model: model must be one of HingeMLP, MLP, ResNet18, SiameseCNN, SiameseGCN, "
            f"SiameseMLP, TableMLP (store others with torch.save), got {type(model).__name__}."
        )
    assert files(tmp_path) == []


def test_a_network_that_its_settings_do_not_describe_is_refused(tmp_path):
    model = MLP(2)
    model.layers[1] = nn.Tanh()
    with pytest.raises(InputError) as caught:
        save_model(model, tmp_path)
    assert str(caught.value) == (
        "save_model: model must be what its settings describe, got layers that were changed "
        "after it was built."
    )
    assert files(tmp_path) == []


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    model = MLP(2)
    with torch.no_grad():
        model.layers[0].bias[1] = torch.nan
    with pytest.raises(InputError) as caught:
        save_model(model, tmp_path)
    message = "save_model: model: layers.0.bias must be finite, got NaN or infinity."
    assert str(caught.value) == message
    assert files(tmp_path) == []


@pytest.mark.parametrize("extra", [{"x": torch.zeros(1)}, {"x": float("nan")}])
def test_extra_must_be_json(extra, tmp_path):
    with pytest.raises(InputError, match=r"^save_model: extra must be what JSON can hold, got "):
        save_model(MLP(2), tmp_path, extra=extra)
    assert files(tmp_path) == []


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(InputError) as caught:
        save_model(MLP(2), path)
    assert str(caught.value) == f"save_model: folder must be a folder, got {path}."
    with pytest.raises(InputError):
        load_model(path)


@pytest.mark.parametrize("extra", [[1], "text", 7])
def test_extra_must_be_a_dictionary(extra, tmp_path):
    message = r"^save_model: extra must be a dictionary of what JSON can hold, got "
    with pytest.raises(InputError, match=message):
        save_model(MLP(2), tmp_path, extra=extra)


@pytest.mark.parametrize("folder", [None, 7, b"bytes", "a\0b", ["a"]])
def test_a_folder_must_be_a_path(folder):
    for call in (lambda: save_model(MLP(2), folder), lambda: load_model(folder)):
        with pytest.raises(InputError, match=r"^(save|load)_model: folder must be a path, got "):
            call()
    with pytest.raises(InputError, match=r"^load_extra: folder must be a path, got "):
        load_extra(folder)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match=r"^save_model: folder must be one that can be made"):
            save_model(MLP(2), folder)
        with pytest.raises(InputError, match=r"^load_model: folder must be one with model\.json"):
            load_model(folder)


def test_kinds_of_numbers_that_no_network_computes_with(tmp_path):
    with pytest.raises(InputError, match=r"0\.weight must be of 16 bits or more, got float8_e5m2"):
        save_model(MLP(2).to(torch.float8_e5m2), tmp_path)
    model = MLP(2)
    model.layers[0].double()
    message = (
        "save_model: model must be of one kind of floats, got torch.float32 and torch.float64."
    )
    with pytest.raises(InputError) as caught:
        save_model(model, tmp_path)
    assert str(caught.value) == message
    save_model(MLP(2).bfloat16(), tmp_path)
    assert load_model(tmp_path).layers[0].weight.dtype is torch.bfloat16


# --- several processes

SAVES = """
import sys, torch
from r2et.models import MLP, save_model
folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(seed)
models = [MLP(3, (4,)), MLP(3, (5,))]
for i in range(count):
    save_model(models[i % 2], folder, extra={"seed": seed})
"""


def writer(folder, seed, count):
    command = [sys.executable, "-c", SAVES, str(folder), str(seed), str(count)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_readers_and_two_writers_never_meet_half_a_model(folder):
    writers = [writer(folder, seed, 60) for seed in (1, 2)]
    loads = 0
    while any(process.poll() is None for process in writers):
        load_model(folder)
        load_extra(folder)
        loads += 1
    for process in writers:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert loads > 20
    assert load_model(folder).settings["widths"] == [5]
    assert load_extra(folder)["seed"] in (1, 2)
    assert len(files(folder)) == 2
