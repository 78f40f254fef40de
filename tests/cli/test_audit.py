"""r2et audit, as a user types it."""

import json
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ctrl_c import hearing_ctrl_c

FAST = ("--budget", "fast", "--engine", "here", "--rows", "24")


@pytest.fixture
def run(program):
    return program("audit")


def test_a_trained_folder(run, folder, tmp_path):
    code, out, err = run(folder, "adult", *FAST, "--json", "audit.json", "--radius", "0.3")
    assert (code, err) == (0, "")
    for part in ("adult: 24 rows, radius 0.3", "P@8, proved at least", "P@8, attacked at most"):
        assert part in out
    found = json.loads((tmp_path / "audit.json").read_text())
    assert found["settings"]["k"] == 8
    assert "age" in found["names"]
    assert sorted(os.listdir(tmp_path)) == ["audit.json"]


def test_the_gate(run, folder):
    code, _, err = run(folder, "adult", *FAST, "--radius", "1", "--fail-under", "0.95")
    assert code == 3
    assert err.startswith("audit: precision_strong must be 0.95 or more, got 0.")
    gate = ("--gate", "auc_clean", "--fail-under", "0.1")
    assert run(folder, "adult", *FAST, *gate)[0] == 0
    code, _, err = run(folder, "adult", *FAST, "--gate", "beauty", "--fail-under", "0.1")
    assert code == 2
    assert err.startswith("audit: gate must be one of certified_share,")


def test_json_on_the_screen(run, folder):
    code, out, _ = run(folder, "adult", *FAST, "--json", "-", "--k", "3", "--norm", "linf")
    found = json.loads(out)
    assert code == 0
    assert (found["settings"]["k"], found["settings"]["norm"]) == (3, "linf")


def test_a_model_nobody_here_wrote(run, strange, tmp_path):
    given = (f"{strange}:net", "rows.csv", "--weights", "weights.safetensors", "--k", "2")
    code, out, err = run(*given, *FAST, "--target", "label", "--radius", "0.1", "--json", "a.json")
    assert (code, err) == (0, "")
    assert "net: 24 rows, radius 0.1" in out
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["names"] == ["a", "b", "c", "d"]
    assert found["classes"] == ["no", "yes"]
    assert found["summary"]["certified_precision"] is not None
    np.savez(tmp_path / "rows.npz", x=np.random.default_rng(1).random((9, 4)), y=np.arange(9) % 2)
    code, out, _ = run(f"{strange}:net", "rows.npz", "--k", "2", *FAST)
    assert code == 0
    assert "net: 9 rows" in out


OWN = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 2)
    def forward(self, x):
        return self.line(x)
def own():
    import neighbour
    return Net().requires_grad_(neighbour.LEARNS)
"""


@pytest.mark.slow
def test_a_class_of_ones_own_in_the_current_folder(tmp_path):
    """As it is typed: its own process, its own workers, nothing on the path but what Python has."""
    (tmp_path / "credit.py").write_text(OWN)
    (tmp_path / "neighbour.py").write_text("LEARNS = True\n")
    np.savez(tmp_path / "rows.npz", x=np.random.default_rng(0).random((9, 4)))
    # Not `-m r2et`, which puts the current folder on the path by itself.
    command = [sys.executable, "-I", "-c", "from r2et.cli import main; main()", "audit"]
    command += ["credit:own", "rows.npz", "--k", "2", "--budget", "fast", "--workers", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "own: 9 rows" in done.stdout


class Bomb:
    """Unpickled, it leaves a file."""

    def __reduce__(self):
        return open, ("exploded", "w")


def test_weights_that_are_none(run, strange, tmp_path):
    given = (f"{strange}:net", "rows.csv", "--k", "2", "--target", "label", *FAST)
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps(Bomb()))
    torch.save({"0.weight": torch.zeros(8, 4)}, tmp_path / "saved.pt")
    good = (tmp_path / "weights.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(good[: len(good) // 2])
    save_file({"0.weight": torch.zeros(8, 5)}, tmp_path / "other.safetensors")
    for name, said in {
        "pickle.pt": "pickle or torch.save file, which is never loaded",
        "saved.pt": "pickle or torch.save file, which is never loaded",
        "cut.safetensors": "weights must be a safetensors file",
        "other.safetensors": "weights must be those of the model",
        "none.safetensors": "weights must be a file that can be read",
    }.items():
        code, out, err = run(*given, "--weights", name)
        assert (code, out) == (2, ""), name
        assert err.startswith("audit: weights must be ")
        assert said in err, name
        assert err.count("\n") == 1
    assert not (tmp_path / "exploded").exists()
    np.savez(tmp_path / "evil.npz", x=np.array([Bomb()], dtype=object))
    code, _, err = run(f"{strange}:net", "evil.npz", "--k", "2", *FAST)
    assert code == 2
    assert err.startswith("audit: DATA must be an .npz file of plain arrays")
    assert not (tmp_path / "exploded").exists()


def test_bad_input_is_one_sentence(run, folder, strange, tmp_path):
    table = (tmp_path / "rows.csv").read_text()
    (tmp_path / "gap.csv").write_text(table.replace("0.", "", 1).replace(",yes", ",,", 1))
    (tmp_path / "nan.csv").write_text("a,b,c,d,label\n1,2,,4,yes\n1,2,3,4,no\n")
    (tmp_path / "program.pt2").write_bytes(b"x")
    for arguments, said in [
        ((f"{strange}:net", "rows.csv", "--k", "2"), "text in the columns label"),
        (
            (f"{strange}:net", "nan.csv", "--k", "2", "--target", "label"),
            "empty cells, got some in",
        ),
        ((f"{strange}:net", "rows.csv", "--target", "label"), "audit: k must be given for a model"),
        ((f"{strange}:net", "rows.csv", "--k", "2", "--target", "x"), "one of the columns a, b, c"),
        ((f"{strange}:number", "rows.csv", "--k", "2"), "that returns a torch.nn.Module"),
        ((f"{strange}:none", "rows.csv", "--k", "2"), f"MODEL must be a function of {strange}"),
        (("no_such_module_here:net", "rows.csv", "--k", "2"), "must be a module that imports"),
        (("program.pt2", "rows.csv"), "a torch.export archive may hold pickled objects"),
        (("nowhere", "rows.csv"), "audit: MODEL must be a folder of `r2et train`, or package"),
        ((folder, "nowhere.csv"), "audit: DATA must be a file that exists or a data set"),
        ((folder, "rows.csv"), "age"),
        ((folder, "adult", "--k", "28"), "audit: k must be in 1..27 for 28 features, got 28"),
        ((folder, "adult", "--norm", "l1"), "audit: norm must be l2 or linf, got l1"),
        ((folder, "adult", "--radius", "-1"), "radius must be positive and finite"),
        ((folder, "adult", "--fail-under", "95"), "audit: fail_under must be in 0..1, as 0.95"),
        ((folder, "adult", "--weights", "w"), "audit: weights must be left out for the folder"),
    ]:
        code, out, err = run(*arguments, *FAST)
        assert (code, out) == (2, ""), arguments
        assert said in err, (arguments, err)
        assert err.count("\n") == 1, err


def test_labels_that_are_numbers_are_the_classes_themselves(run, strange, tmp_path):
    (tmp_path / "three.py").write_text(
        "from torch import nn\ndef net():\n    return nn.Linear(4, 3)\n"
        "def needs(it):\n    return it\n"
    )
    quick = ("--k", "2", "--target", "y", "--minutes", "0.0001", "--engine", "here")
    rows = [f"{i / 7},{i % 3},{i % 2},{i},{(0, 2)[i % 2]}" for i in range(8)]
    (tmp_path / "lacks.csv").write_text("a,b,c,d,y\n" + "\n".join(rows) + "\n")
    code, _, _ = run("three:net", "lacks.csv", *quick, "--json", "a.json")
    assert code == 0
    found = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert found["label"] == [(0, 2)[i % 2] for i in found["index"]]
    code, _, err = run(f"{strange}:net", "lacks.csv", *quick)
    assert (code, err) == (2, "audit: y must be in 0..1, the model's classes, got 2.\n")
    words = [row[:-1] + ("no", "yes")[i % 2] for i, row in enumerate(rows)]
    (tmp_path / "words.csv").write_text("a,b,c,d,y\n" + "\n".join(words) + "\n")
    code, _, err = run("three:net", "words.csv", *quick)
    assert code == 2
    assert err.startswith("audit: classes must be 3 names, one per class of the model, got 2")
    code, _, err = run("three:needs", "lacks.csv", *quick)
    assert code == 2
    assert "when called without arguments, got three:needs (TypeError" in err


def test_modules_and_archives_of_any_kind(run, strange, tmp_path):
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "raises.py").write_text("1 / 0\n")
    x = np.random.default_rng(0).random((8, 4))
    np.savez(tmp_path / "words.npz", x=x, y=np.array(["a", "b"] * 4))
    np.savez(tmp_path / "big_endian.npz", x=x.astype(">f8"))
    with open(tmp_path / "array.npz", "wb") as file:
        np.save(file, x)
    (tmp_path / "empty.npz").write_bytes(b"")
    quick = ("--k", "2", "--minutes", "0.0001", "--engine", "here")
    for model, rows, said in [
        ("broken:f", "big_endian.npz", "must be a module that imports, got broken:f (SyntaxError"),
        ("raises:f", "big_endian.npz", "got raises:f (ZeroDivisionError: division by zero)"),
        (":f", "big_endian.npz", "must be a module that imports, got :f (ValueError"),
        (f"{strange}:net", "words.npz", "DATA must be an .npz file with numbers as y, got dtype"),
        (f"{strange}:net", "array.npz", "of plain arrays, got array.npz: one array"),
        (f"{strange}:net", "empty.npz", "of plain arrays, got empty.npz: No data left in file"),
    ]:
        code, out, err = run(model, rows, *quick)
        assert (code, out) == (2, ""), rows
        assert err.startswith("audit: ")
        assert said in err
        assert err.count("\n") == 1
    assert run(f"{strange}:net", "big_endian.npz", *quick)[0] == 0


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(folder, tmp_path):
    command = [sys.executable, "-m", "r2et", "audit", folder, "adult", "--rows", "200"]
    command += ["--budget", "fast", "--engine", "processes", "--workers", "1", "--json", "a.json"]
    command = hearing_ctrl_c(command)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and started.poll() is None:
            parts = list(tmp_path.glob(".r2et-audit-*.partial"))
            if parts and parts[0].read_bytes().count(b"\n") >= 2:
                break
            time.sleep(0.05)
        started.send_signal(2)
        said = started.communicate(timeout=60)[1].decode()
    finally:
        started.kill()
    assert started.returncode == 130, said
    assert "the same command continues" in said
    (part,) = tmp_path.glob(".r2et-audit-*.partial")
    done = part.read_bytes().count(b"\n") - 1
    assert done >= 1
    assert not (tmp_path / "a.json").exists()
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert b"200 rows" in ended.stdout
    assert sorted(os.listdir(tmp_path)) == ["a.json"]


def _stop(*_):
    raise KeyboardInterrupt


def test_a_network_trained_anew_is_another_audit(run, strange, tmp_path, monkeypatch):
    """What an audit of the old weights left is in nobody's way."""
    from r2et.audit.measures import MeasureChunk

    given = (f"{strange}:net", "rows.csv", "--k", "2", "--target", "label", *FAST)
    given += ("--weights", "weights.safetensors")

    with monkeypatch.context() as stopped:
        stopped.setattr(MeasureChunk, "__call__", _stop)
        assert run(*given)[0] == 130
    (left,) = tmp_path.glob(".r2et-audit-*.partial")
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    assert run(*given)[0] == 0
    assert list(tmp_path.glob(".r2et-audit-*.partial")) == [left]


def test_another_networks_width_is_named(run, strange, tmp_path):
    del strange
    (tmp_path / "wide.py").write_text(
        "from r2et.models import MLP\ndef net():\n    return MLP(9)\n"
    )
    code, _, err = run("wide:net", "rows.csv", "--k", "2", "--target", "label", *FAST)
    assert code == 2
    assert err.startswith("MLP: x must be rows of shape (B, 9), got float32 tensor of shape (1, 4)")
