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

from r2et.audit import Audit
from r2et.audit.task import columns_called, failed
from r2et.errors import InputError

FAST = ("--budget", "fast", "--engine", "here", "--rows", "24")
FACTORY = """
from torch import nn
def net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
def number():
    return 3
"""


@pytest.fixture
def run(program):
    return program("audit")


@pytest.fixture
def strange(tmp_path, monkeypatch):
    """Somebody's module, weights and numbers."""
    torch.manual_seed(0)
    name = f"their_model_{os.getpid()}_{time.monotonic_ns()}"
    (tmp_path / f"{name}.py").write_text(FACTORY)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    x = np.random.default_rng(0).random((30, 4)).round(3)
    y = np.where(x[:, 0] > 0.5, "yes", "no")
    rows = [",".join(map(str, [*row, label])) for row, label in zip(x, y, strict=True)]
    (tmp_path / "rows.csv").write_text("a,b,c,d,label\n" + "\n".join(rows) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


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
    assert err.startswith("audit: gate must be one of precision_strong,")


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


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(folder, tmp_path):
    command = [sys.executable, "-m", "r2et", "audit", folder, "adult", "--rows", "200"]
    command += ["--budget", "fast", "--engine", "processes", "--workers", "1", "--json", "a.json"]
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


def test_a_network_trained_anew_is_another_audit(run, strange, tmp_path, monkeypatch):
    """What an audit of the old weights left is in nobody's way."""
    from r2et.audit.measures import Measure

    given = (f"{strange}:net", "rows.csv", "--k", "2", "--target", "label", *FAST)
    given += ("--weights", "weights.safetensors")

    with monkeypatch.context() as stopped:
        stopped.setattr(Measure, "__call__", _stop)
        assert run(*given)[0] == 130
    (left,) = tmp_path.glob(".r2et-audit-*.partial")
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    assert run(*given)[0] == 0
    assert list(tmp_path.glob(".r2et-audit-*.partial")) == [left]


def test_outputs_are_tried_before_the_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr("r2et.audit.task.audit", None)  # nothing is opened, nothing measured
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for options, said in [
        (("--json", "file/a.json"), "--json must be a file that can be written, got file/a.json ("),
        (("--html", "ok.html", "--json", "file/a.json"), "--json must be a file that can be"),
        (("--html", "folder"), "--html must be a file that can be written, got folder (Is a dir"),
        (("--html", "a", "--json", "./a"), "--html and --json must be two files, got "),
    ]:
        code, out, err = run("nowhere", "adult", *options)
        assert (code, out) == (2, ""), options
        assert err.startswith(f"audit: {said}"), err
        assert err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_what_can_be_written_is_written(run, strange, tmp_path, monkeypatch):
    """A disk that fills up costs one output, and what was measured is kept."""

    def full(_, path):
        raise InputError(f"to_json: path must be a file that can be written, got {path}.")

    given = (f"{strange}:net", "rows.csv", "--k", "2", "--target", "label", *FAST)
    given += ("--json", "a.json", "--html", "a.html", "--weights", "weights.safetensors")
    with monkeypatch.context() as disk:
        disk.setattr(Audit, "to_json", full)
        code, out, err = run(*given)
    assert code == 2
    assert "net: 24 rows" in out
    assert "a.json.\nWhat was measured is kept; the same command continues there.\n" in err
    assert (tmp_path / "a.html").exists()
    assert len(list(tmp_path.glob(".r2et-audit-*.partial"))) == 1
    monkeypatch.setattr("r2et.audit.measures.Measure.__call__", None)  # all is there
    assert run(*given)[0] == 0
    assert (tmp_path / "a.json").exists()
    assert not list(tmp_path.glob(".r2et-audit-*.partial"))


def test_a_folder_in_which_nothing_can_be_kept(run, strange, tmp_path, monkeypatch):
    from r2et import files

    given = (f"{strange}:net", "rows.csv", "--k", "2", "--target", "label", *FAST)

    def refuses(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(files.Path, "touch", refuses)
    code, out, err = run(*given)
    assert code == 0
    assert "net: 24 rows" in out
    assert err.startswith("Note: nothing can be kept in this folder (Permission denied); once")
    assert not list(tmp_path.glob(".r2et*"))
    monkeypatch.setattr("r2et.audit.measures.Measure.__call__", _stop)
    code, _, err = run(*given)
    assert (code, err.splitlines()[-1]) == (130, "Stopped.")


def _stop(*_):
    raise KeyboardInterrupt


def test_bad_k_leaves_nothing_behind(run, folder, tmp_path):
    assert run(folder, "adult", *FAST, "--k", "28")[0] == 2
    assert os.listdir(tmp_path) == []


def test_rows_that_grew_are_measured_anew(run, strange, tmp_path, monkeypatch):
    given = (f"{strange}:net", "rows.npz", "--k", "2", "--budget", "fast", "--engine", "here")
    given += ("--weights", "weights.safetensors")
    random = np.random.default_rng(0)
    np.savez(tmp_path / "rows.npz", x=random.random((30, 4)))
    with monkeypatch.context() as stopped:
        stopped.setattr("r2et.audit.measures.Measure.__call__", _stop)
        assert run(*given)[0] == 130
    (left,) = tmp_path.glob(".r2et-audit-*.partial")
    head = json.loads(left.read_text())
    left.write_text(json.dumps({**head, "audit": "of another chunk"}) + "\n")
    code, out, err = run(*given)
    assert (code, err) == (0, "")
    assert "net: 30 rows" in out
    assert not left.exists()


def test_a_gate_needs_all_rows(run, strange, tmp_path):
    x = np.random.default_rng(0).random((200, 4))
    np.savez(tmp_path / "many.npz", x=x)
    given = (f"{strange}:net", "many.npz", "--k", "2", "--budget", "fast", "--engine", "here")
    given += ("--radius", "0.001", "--gate", "precision_noise", "--fail-under", "0.1")
    given += ("--weights", "weights.safetensors")
    code, _, err = run(*given, "--minutes", "0.00001")
    assert code == 3
    assert "got nothing: it was not measured" in err
    (left,) = tmp_path.glob(".r2et-audit-*.partial")
    assert "with more --minutes it goes on there" in err
    code, _, err = run(*given, "--minutes", "5")
    assert (code, err) == (0, "")
    assert not left.exists()


def told(value, rows, skipped=()):
    summary = {"rows": rows, "k": 2, "radius": 0.1, "certified_share": value}
    return Audit(
        {
            "summary": summary,
            "counts": {"certified_share": rows},
            "settings": {"rows_asked": 5000},
            "skipped": [{"what": what, "why": why} for what, why in skipped],
        }
    )


def test_what_a_gate_says():
    def said(bar, *found):
        return failed(told(*found), "certified_share", bar)

    assert said(0.5, 0.5, 5000) is None  # just as much as was asked
    assert said(0.5, 0.4999, 5000) == "audit: certified_share must be 0.5 or more, got 0.4999."
    late = [("rows", "the time was up after 625 of 5000 rows")]
    part = "0.9000 of 625 of 5000 rows: give it more minutes, or fewer rows."
    passed = said(0.5, 0.9, 625, late)
    assert passed == f"audit: certified_share must be measured on all rows to pass, got {part}"
    assert said(0.95, 0.9, 625, late) == f"audit: certified_share must be 0.95 or more, got {part}"
    assert said(0.5, 0.9, 5000, [("papers", "the time was up")]) is None  # another's time
    assert said(0.5, 0.9, 5000, [("certified", "the time was up (for 8 of 5000 rows)")])
    assert said(0.5, 0.9, 4000, [("certified", "some layer (for 1000 of 5000 rows)")]) is None


def test_columns_that_the_model_does_not_take(run, strange, tmp_path):
    table = (tmp_path / "rows.csv").read_text().replace(",yes", ",1").replace(",no", ",0")
    (tmp_path / "left_in.csv").write_text(table)
    code, out, err = run(f"{strange}:net", "left_in.csv", "--k", "2", *FAST)
    assert (code, out) == (2, "")
    assert err.startswith(
        "audit: DATA must be rows that the model takes, got 5 columns (a, b, c, d, label) in"
        " left_in.csv; is one of them the label (--target)? (RuntimeError: mat1 and mat2"
    )
    np.savez(tmp_path / "wide.npz", x=np.zeros((3, 7)))
    _, _, err = run(f"{strange}:net", "wide.npz", "--k", "2", *FAST)
    assert "got rows of shape (7,) in wide.npz (RuntimeError" in err


def test_bounds_and_frozen_columns(run, strange, tmp_path):
    given = (f"{strange}:net", "rows.csv", "--k", "2", "--target", "label", *FAST, "--radius", "2")
    code, _, err = run(*given, "--bounds", "0,1", "--frozen", "b, d", "--json", "a.json")
    assert (code, err) == (0, "")
    found = json.loads((tmp_path / "a.json").read_text())
    assert "bounds=(0.0, 1.0), frozen=(1, 3)" in found["settings"]["region"]
    for row in found["shown"]:
        last = row["steps"][-1]["x"]
        assert all(0 <= value <= 1 for value in last)
        assert (last[1], last[3]) == (row["x"][1], row["x"][3])
    for options, said in [
        (("--bounds", "0"), "bounds must be two numbers with a comma between, as 0,1, got 0."),
        (("--bounds", "1,0"), "bounds must be a pair with low <= high"),
        (("--frozen", "b,z"), "frozen must be names of columns (a, b, c, d), as a,b, got z."),
    ]:
        code, _, err = run(*given, *options)
        assert code == 2
        assert said in err


def test_a_column_of_categories_is_frozen_by_its_name():
    names = ("age", "sex: f", "sex: m", "sexless", "a,b")
    row = torch.zeros(5)
    assert columns_called("sex", names, row) == [1, 2]
    assert columns_called("age,sex: m", names, row) == [0, 2]
    assert columns_called("a,b", names, row) == [4]
    assert columns_called("3,0", None, row) == [0, 3]


def test_another_networks_width_is_named(run, strange, tmp_path):
    del strange
    (tmp_path / "wide.py").write_text(
        "from r2et.models import MLP\ndef net():\n    return MLP(9)\n"
    )
    code, _, err = run("wide:net", "rows.csv", "--k", "2", "--target", "label", *FAST)
    assert code == 2
    assert err.startswith("MLP: x must be rows of shape (B, 9), got float32 tensor of shape (1, 4)")
