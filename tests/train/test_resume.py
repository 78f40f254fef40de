"""Training that is killed, interrupted or out of room, and goes on as if nothing had happened."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import r2et
from ctrl_c import hearing_ctrl_c
from killed_training import main as uninterrupted
from r2et.errors import InputError, R2ETError
from r2et.explain import Gradient, SmoothGrad
from r2et.models import MLP, load_extra, load_model
from r2et.train import fit, recipe
from r2et.train.checkpoint import NAME
from training_data import small

SCRIPT = Path(__file__).parents[1] / "killed_training.py"


def start(folder: Path, save_every: float = 0.0, **kwargs) -> subprocess.Popen:
    command = hearing_ctrl_c([sys.executable, str(SCRIPT), str(folder), str(save_every)])
    path = {**os.environ, "PYTHONPATH": str(Path(r2et.__file__).parents[1])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": path}
    return subprocess.Popen(command, **pipes, **kwargs)


def stamp(folder: Path) -> int:
    return (folder / NAME).stat().st_mtime_ns if (folder / NAME).exists() else 0


def wait_for(folder: Path, process: subprocess.Popen) -> None:
    """Until the process has written a checkpoint of its own, and so is in the middle of things."""
    before = stamp(folder)
    for _ in range(2400):
        if stamp(folder) != before or process.poll() is not None:
            return
        time.sleep(0.05)
    raise AssertionError("no checkpoint after two minutes")


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.slow
def test_killed_five_times_and_bit_identical(tmp_path):
    expected = uninterrupted(None, 1e9)
    chance = random.Random(0)
    kills = 0
    for _ in range(5):
        process = start(tmp_path)
        wait_for(tmp_path, process)
        time.sleep(chance.random() * 0.1)
        if process.poll() is None:
            process.kill()
            kills += 1
        process.communicate()
    process = start(tmp_path, save_every=1e9)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    assert b"finished" in out
    assert same(load_model(tmp_path).state_dict(), expected)
    assert kills == 5
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")] == []


@pytest.mark.slow
def test_interrupted_at_a_step_and_bit_identical(tmp_path):
    expected = uninterrupted(None, 1e9)
    process = start(tmp_path, save_every=0.05)
    wait_for(tmp_path, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in err
    state = torch.load(tmp_path / NAME, weights_only=True)["state"]
    assert state["step"] > 0
    assert same(uninterrupted(str(tmp_path), 1e9), expected)


def test_a_finished_training_is_not_repeated(tmp_path):
    first = fit(None, small(), "vanilla", out=tmp_path, epochs=2, progress=False)
    stamp = (tmp_path / NAME).stat().st_mtime_ns
    again = fit(None, small(), "vanilla", out=tmp_path, epochs=2, progress=False)
    assert same(first.model.state_dict(), again.model.state_dict())
    assert again.history == first.history
    assert (tmp_path / NAME).stat().st_mtime_ns == stamp
    assert load_extra(tmp_path)["names"] == [f"f{i}" for i in range(8)]


def test_another_training_in_the_folder(tmp_path):
    fit(None, small(), "vanilla", out=tmp_path, epochs=1, progress=False)
    for change, word in [
        ({"seed": 1}, "weights"),
        ({"epochs": 2}, "epochs was 1, is 2"),
        ({"recipe": "wd"}, "recipe.weight_decay was 0.0, is 0.001"),
        ({"recipe": recipe("vanilla", lr=0.1)}, "recipe.lr was 0.01, is 0.1"),
        ({"recipe": recipe("r2et", epochs=1)}, "model"),  # which begins elsewhere
        ({"explainer": SmoothGrad()}, "explainer was Gradient, is SmoothGrad"),
        ({"model": MLP(8, (4,))}, "model"),
        ({"data": small(seed=3)}, "data"),
    ]:
        told = {"model": None, "data": small(), "recipe": "vanilla", "epochs": 1, **change}
        with pytest.raises(InputError) as caught:
            fit(told.pop("model"), told.pop("data"), told.pop("recipe"), out=tmp_path, **told)
        assert "the checkpoint of another training" in str(caught.value)
        assert word in str(caught.value)
    fit(None, small(), "wd", out=tmp_path, epochs=1, resume=False, progress=False)
    assert load_extra(tmp_path)["recipe"] == "wd"
    network = MLP(8)
    fit(network, small(), "vanilla", out=tmp_path / "own", epochs=1, progress=False)
    with pytest.raises(InputError, match=r"recipe\.penalty was None, is R2ET"):
        fit(network, small(), recipe("r2et"), out=tmp_path / "own", epochs=1, progress=False)


def test_what_changes_no_weight_goes_on(tmp_path):
    first = fit(None, small(), "r2et", out=tmp_path, epochs=2, progress=False)
    stamp = (tmp_path / NAME).stat().st_mtime_ns
    renamed = replace(recipe("r2et"), name="mine", about="the same")
    explainer = Gradient(of="probability", chunk=7)
    again = fit(
        *(None, small(), renamed),
        out=tmp_path,
        epochs=2,
        progress=True,
        save_every=5.0,
        explainer=explainer,
    )
    assert same(first.model.state_dict(), again.model.state_dict())
    assert (tmp_path / NAME).stat().st_mtime_ns == stamp


def test_a_checkpoint_of_an_earlier_version(tmp_path):
    fit(None, small(), "vanilla", out=tmp_path, epochs=1, progress=False)
    state = torch.load(tmp_path / NAME, weights_only=True)
    for older in ({}, {"model": "MLP()", "recipe's lr": "0.01"}, {"format": "r2et-checkpoint/1"}):
        torch.save({**state, "identity": json.dumps(older)}, tmp_path / NAME)
        with pytest.raises(InputError, match="got a checkpoint of another version of r2et"):
            fit(None, small(), "vanilla", out=tmp_path, epochs=1)


def test_a_checkpoint_made_before_a_setting_existed(tmp_path):
    first = fit(None, small(), "r2et", out=tmp_path, epochs=1, progress=False)
    state = torch.load(tmp_path / NAME, weights_only=True)
    identity = json.loads(state["identity"])
    penalty = identity["recipe"]["penalty"]
    del penalty["form"]
    penalty["defaults"].remove("form")
    torch.save({**state, "identity": json.dumps(identity)}, tmp_path / NAME)
    again = fit(None, small(), "r2et", out=tmp_path, epochs=1, progress=False)
    assert same(first.model.state_dict(), again.model.state_dict())
    exponential = recipe("r2et", form="exponential")
    with pytest.raises(InputError, match=r"recipe.penalty.form was not there, is exponential"):
        fit(None, small(), exponential, out=tmp_path, epochs=1, progress=False)


def test_a_checkpoint_that_is_none(tmp_path):
    for content in (b"half a file", b"junk", b""):
        (tmp_path / NAME).write_bytes(content)
        with pytest.raises(InputError, match="a file that cannot be read"):
            fit(None, small(), "vanilla", out=tmp_path, epochs=1)
        assert (tmp_path / NAME).read_bytes() == content
    for content in ([1, 2], torch.ones(2), {"identity": "{}"}):
        torch.save(content, tmp_path / NAME)
        with pytest.raises(InputError, match="out must be another folder, or start anew"):
            fit(None, small(), "vanilla", out=tmp_path, epochs=1)


def test_a_fresh_start_leaves_nothing_of_the_old_network(tmp_path):
    fit(None, small(), "vanilla", out=tmp_path, epochs=1, progress=False)
    own = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
    found = fit(own, small(), "wd", out=tmp_path, epochs=1, resume=False, progress=False)
    assert not (tmp_path / "model.json").exists()
    stored = load_file(tmp_path / "weights.safetensors")
    assert same(stored, found.model.state_dict())


def test_one_training_at_a_time(tmp_path):
    process = start(tmp_path)
    wait_for(tmp_path, process)
    with pytest.raises(InputError, match="a folder that no other training is writing to"):
        uninterrupted(str(tmp_path), 1e9)
    process.kill()
    process.communicate()


def test_a_checkpoint_runs_nothing(tmp_path):
    class Bad:
        def __reduce__(self):
            return (exec, ("raise SystemExit('it ran')",))

    torch.save({"identity": Bad()}, tmp_path / NAME)
    with pytest.raises(InputError, match="a file that cannot be read"):
        fit(None, small(), "vanilla", out=tmp_path, epochs=1)


def test_a_loss_that_is_no_number(tmp_path):
    class Blows(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = MLP(8)
            self.count = 0

        def forward(self, x):
            self.count += self.training
            return self.inner(x) * (torch.nan if self.count > 5 else 1.0)

    with pytest.raises(R2ETError) as caught:
        fit(Blows(), small(), "vanilla", out=tmp_path, epochs=9, save_every=0.0, progress=False)
    message = str(caught.value)
    assert "got nan in the loss at step 6, epoch 3" in message
    assert str(tmp_path) in message
    saved = torch.load(tmp_path / NAME, weights_only=True)
    assert saved["state"]["step"] == 5
    assert all(torch.isfinite(w).all() for w in saved["model"].values())


def test_a_weight_that_makes_the_penalty_the_culprit():
    wild = recipe("r2et", weight=1e38, every=1, lr=1e30)
    with pytest.raises(R2ETError, match=r"got (nan|-?inf) in the (loss|penalty|total) at step \d"):
        fit(None, small(), wild, epochs=3, progress=False)
    exact = recipe("r2et-nh", weight=1e39, every=1, form="exponential", l1=1e38)
    with pytest.raises(R2ETError, match=r"got inf in the (penalty|total) at step 1, epoch 1"):
        fit(None, small(), exact, epochs=1, progress=False)


def _small_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))


@pytest.mark.slow
def test_a_full_disk(tmp_path):
    process = start(tmp_path, preexec_fn=_small_files)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    last = err.decode().strip().splitlines()[-1]
    assert "fit: out must be writable, got" in last
    assert "File too large" in last
    assert not (tmp_path / NAME).exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")] == []


def test_a_folder_that_cannot_be_one(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="folder must be a folder"):
        fit(None, small(), "vanilla", out=tmp_path / "file", epochs=1)
