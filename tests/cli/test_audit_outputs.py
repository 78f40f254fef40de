"""r2et audit: its outputs and its gate, rows that changed or do not fit, and what may not move."""

import json
import os
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from r2et.audit import Audit
from r2et.audit.measures import MeasureChunk
from r2et.audit.request import columns_called
from r2et.errors import InputError

FAST = ("--budget", "fast", "--engine", "here", "--rows", "24")


@pytest.fixture
def run(program):
    return program("audit")


def test_outputs_are_tried_before_the_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr("r2et.audit.request.audit", None)  # nothing is opened, nothing measured
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for options, said in [
        (("--json", "file/a.json"), "--json must be a file that can be written, got file/a.json ("),
        (("--html", "ok.html", "--json", "file/a.json"), "--json must be a file that can be"),
        (("--html", "folder"), "--html must be a file that can be written, got folder (Is a dir"),
        (("--html", "a", "--json", "./a"), "--html and --json must be two files, got "),
        (("--html", "-"), "--html must be a file: --json alone is printed, got -."),
        (("--pack", "-", "--weights", "w"), "--pack must be a file: --json alone is printed, got"),
        (("--html", ""), "--html must be the path of a file, got ''."),
        (("--json", ""), "--json must be the path of a file, got ''."),
        (("--pack", ""), "--pack must be the path of a file, got ''."),
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
    monkeypatch.setattr("r2et.audit.measures.MeasureChunk.__call__", None)  # all is there
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
    monkeypatch.setattr("r2et.audit.measures.MeasureChunk.__call__", _stop)
    code, _, err = run(*given)
    assert (code, err.splitlines()[-1]) == (130, "Stopped.")


def test_a_stop_after_the_measuring_names_what_is_left(run, strange, tmp_path, monkeypatch):
    given = (f"{strange}:net", "rows.csv", "--k", "2", "--target", "label", *FAST)
    monkeypatch.setattr("r2et.audit.pack.printed", _stop)
    code, out, err = run(*given, "--weights", "weights.safetensors", "--pack", "a.zip")
    (left,) = tmp_path.glob(".r2et-audit-*.partial")
    assert (code, "net: 24 rows" in out) == (130, True)
    kept = f"what was measured is kept in {left.name}, the same command continues there"
    assert err.splitlines()[-1] == f"Stopped; {kept}."
    assert not (tmp_path / "a.zip").exists()


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
        stopped.setattr("r2et.audit.measures.MeasureChunk.__call__", _stop)
        assert run(*given)[0] == 130
    (left,) = tmp_path.glob(".r2et-audit-*.partial")
    head = json.loads(left.read_text())
    left.write_text(json.dumps({**head, "audit": "of another chunk"}) + "\n")
    code, out, err = run(*given)
    assert (code, err) == (0, "")
    assert "net: 30 rows" in out
    assert not left.exists()


def test_a_gate_needs_all_rows(run, strange, tmp_path, monkeypatch):
    x = np.random.default_rng(0).random((200, 4))
    np.savez(tmp_path / "many.npz", x=x)
    given = (f"{strange}:net", "many.npz", "--k", "2", "--budget", "fast", "--engine", "here")
    given += ("--radius", "0.001", "--gate", "precision_noise", "--fail-under", "0.1")
    given += ("--weights", "weights.safetensors")
    code, _, err = run(*given, "--minutes", "0.00001")
    assert code == 3
    assert err == (
        "audit: precision_noise must be 0.1 or more, got nothing: it was not measured.\n"
    )
    assert not list(tmp_path.glob(".r2et-audit-*.partial"))  # there is nothing to go on from
    measured = MeasureChunk.__call__

    def slow(self, chunk):
        """The whole chunk, and then the time is up."""
        found = measured(self, replace(chunk, until=None))
        time.sleep(max(0.0, chunk.until - time.time()))
        return found

    with monkeypatch.context() as clock:
        clock.setattr(MeasureChunk, "__call__", slow)
        code, _, err = run(*given, "--minutes", "0.01")
    assert code == 3
    said, why = err.splitlines()
    assert said == "What was measured is kept; with more --minutes it goes on there."
    assert why.startswith("audit: precision_noise must be measured on all rows to pass, got ")
    assert "of 64 of 200 rows: give it more minutes" in why
    (left,) = tmp_path.glob(".r2et-audit-*.partial")
    code, _, err = run(*given, "--minutes", "5")
    assert (code, err) == (0, f"Note: 64 rows taken over from the unfinished {left.name}.\n")
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
        (verdict,) = told(*found).check([f"certified_share>={bar}"])
        assert verdict.passed is (verdict.reason is None)
        return verdict.reason

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
