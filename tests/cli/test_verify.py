"""r2et audit --pack, and r2et verify of it: the same figures, or one sentence."""

import json
import os
import shutil
import zipfile

import numpy as np
import pytest

from r2et.audit import open_pack, pack
from r2et.data import load_table
from r2et.results.archive import write_archive
from r2et.train import fit

FAST = ("--budget", "fast", "--engine", "serial", "--rows", "12")


@pytest.fixture(autouse=True)
def no_paper(monkeypatch):
    monkeypatch.setattr(pack, "printed", lambda _: pack.Printed(None, "not asked for"))


@pytest.fixture
def given(strange):
    return (f"{strange}:net", "rows.csv", "--k", "2", "--target", "label", *FAST,
            "--weights", "weights.safetensors", "--gate", "precision_noise>=0.1")  # fmt: skip


def test_a_pack_of_a_factory_is_repeated_elsewhere(program, strange, given, tmp_path, monkeypatch):
    code, _, err = program("audit")(*given, "--pack", "out/evidence.zip")
    assert code == 0, err
    assert "evidence.zip (without a PDF: not asked for)" in err
    verify = program("verify")
    path = tmp_path / "out" / "evidence.zip"
    assert set(open_pack(path).model_files) == {"weights.safetensors", f"{strange}.py.txt"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    given = (str(path), "--model", f"{strange}:net", "--engine", "serial")
    code, out, err = verify(*given)
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == "repeated, equal to the bit"
    assert out.splitlines()[-1].startswith("  page, rows and card ")
    assert out.endswith(" 3 of 3 equal to the bit\n")
    assert os.listdir(elsewhere) == []
    # A pack alone runs nobody's code.
    code, out, err = verify(str(path))
    assert code == 2
    assert err.startswith(f"verify: the model must be given by --model, as {strange}:net: a pack")
    # Data that moved, that changed, and that is gone.
    shutil.move(tmp_path / "rows.csv", elsewhere / "moved.csv")
    code, _, err = verify(*given)
    assert code == 2
    assert err.startswith("verify: the data must be given by --data, the file that was audited")
    assert err.count("\n") == 1
    code, out, err = verify(*given, "--data", "moved.csv", "--json")
    assert json.loads(out)["bit_equal"] is True
    text = (elsewhere / "moved.csv").read_text()
    (elsewhere / "moved.csv").write_text(text + text.splitlines()[-1] + "\n")
    code, _, err = verify(*given, "--data", "moved.csv")
    assert (code, "got moved.csv (SHA-256 " in err) == (2, True)
    assert os.listdir(elsewhere) == ["moved.csv"]


def test_other_figures_and_other_weights(program, strange, given, tmp_path):
    assert program("audit")(*given, "--pack", "evidence.zip")[0] == 0
    opened = open_pack("evidence.zip")
    verify = program("verify")
    options = ("--model", f"{strange}:net", "--engine", "serial")
    forged = json.loads(opened.members["audit.json"])
    forged["summary"]["precision_strong"] = 0.999
    write_archive("test", "forged.zip", {**opened.members, "audit.json": _json(forged)})
    code, out, err = verify("forged.zip", *options)
    assert code == 3
    assert "NOT repeated" in out
    assert "DIFFERENT: summary.precision_strong: 0.999 in the pack" in out
    assert err == "verify: the audit must repeat within tolerance, got other figures.\n"
    # Pages that say something else than the figures, under a manifest of their own.
    for name in ("page.html", "model-card.md", "rows.csv"):
        (tmp_path / "page.zip").unlink(missing_ok=True)
        write_archive("test", "page.zip", {**opened.members, name: opened.members[name] + b" "})
        code, out, _ = verify("page.zip", *options)
        assert code == 3
        assert f"DIFFERENT: {name}: other bytes in the pack, made of audit.json now" in out
    write_archive("test", "more.zip", {**opened.members, "letter.html": b"all is well"})
    code, _, err = verify("more.zip", *options)
    expected = "verify: PACK must be of members that r2et writes, got letter.html.\n"
    assert (code, err) == (2, expected)
    (tmp_path / "more.zip").unlink()
    odd = opened.members["audit.json"].replace(b'"auc_clean": ', b'"auc_clean": NaN, "auc": ', 1)
    write_archive("test", "more.zip", {**opened.members, "audit.json": odd})
    code, _, err = verify("more.zip", *options)
    said = "verify: audit.json must be JSON, got an error: NaN is no number of JSON.\n"
    assert (code, err) == (2, said)
    (tmp_path / "more.zip").unlink()
    write_archive("test", "more.zip", {**opened.members, "model/net.py": b"import os"})
    code, _, err = verify("more.zip", "--members-only")
    assert (code, err) == (2, expected.replace("letter.html", "model/net.py"))
    blob = bytearray(opened.members["model/weights.safetensors"])
    blob[-1] ^= 1
    changed = {**opened.members, "model/weights.safetensors": bytes(blob)}
    write_archive("test", "weights.zip", changed)
    code, _, err = verify("weights.zip", *options)
    assert code == 2
    assert err.startswith("verify: the model must be the one that was audited (weights ")
    repeat = json.loads(opened.members["repeat.json"])
    for part, value, expected in [
        ("request", {**repeat["request"], "model": "os:abort"}, "of settings that this version"),
        ("request", {**repeat["request"], "k": "2"}, "request.k must be int or null, got 2"),
        ("run", {"rows": 12, "budget": "fast"}, "run.seed must be int, got nothing"),
        ("data", {"kind": "data set", "name": "/etc/passwd"}, "a data set of `r2et data list`"),
        ("data", {"kind": "file", "path": 3}, "a file, a data set or a test part"),
        ("data", {"kind": "file", "path": "/dev/zero"}, "got none at /dev/zero"),
        ("request", None, "made by `r2et audit --pack` to be audited again"),
        ("model", {"kind": "pickle"}, "model must be a folder or a factory, got pickle"),
    ]:
        members = {**opened.members, "repeat.json": _json({**repeat, part: value})}
        (tmp_path / "odd.zip").unlink(missing_ok=True)
        write_archive("test", "odd.zip", members)
        code, _, err = verify("odd.zip", *options)
        assert (code, expected in err, err.count("\n")) == (2, True, 1), err
    late = {**opened.audit.result, "skipped": [{"what": "rows", "why": "the time was up"}]}
    write_archive("test", "late.zip", {**opened.members, "audit.json": _json(late)})
    code, _, err = verify("late.zip", *options)
    assert (code, "got one that --minutes stopped" in err) == (2, True), err


def test_packs_that_are_none_and_files_that_are_there(program, given, tmp_path, monkeypatch):
    (tmp_path / "there.zip").write_text("mine")
    run = program("audit")
    with monkeypatch.context() as early:
        early.setattr("r2et.audit.request.audit", None)  # nothing is measured
        code, _, err = run(*given, "--pack", "there.zip")
    assert code == 2
    assert err == "audit: --pack must be a file that is not there yet, got there.zip.\n"
    assert (tmp_path / "there.zip").read_text() == "mine"
    verify = program("verify")
    before = sorted(os.listdir(tmp_path))
    code, out, err = verify("there.zip")
    assert (code, out) == (2, "")
    assert err.startswith("verify: PACK must be a pack that `r2et audit --pack` wrote, got there")
    code, _, err = verify("there.zip", "--tolerance", "2")
    assert err == "verify: tolerance must be 0 or more, and below 1, got 2.0.\n"
    with zipfile.ZipFile("evil.zip", "w") as file:
        file.writestr("../evil.txt", b"x")
    code, _, err = verify("evil.zip")
    assert (code, "members that stay in its folder, got '../evil.txt'" in err) == (2, True)
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "evil.zip"])
    assert not (tmp_path.parent / "evil.txt").exists()


def test_a_factory_of_random_weights_gives_no_pack(program, given, tmp_path, monkeypatch):
    monkeypatch.setattr("r2et.audit.request.audit", None)  # nothing is measured
    given = [text for text in given if text not in ("--weights", "weights.safetensors")]
    code, _, err = program("audit")(*given, "--pack", "evidence.zip")
    assert code == 2
    assert "audit: MODEL must be one whose weights are the same each time (or given by" in err
    assert not list(tmp_path.glob("*.zip")) + list(tmp_path.glob(".r2et*"))


def test_a_folder_that_was_changed_is_named_by_its_member(program, tmp_path):
    """Under a manifest of its own; not by the place where it was put for a moment."""
    x = np.random.default_rng(0).random((120, 3)).round(3)
    rows = [f"{a},{b},{c},{'yes' if a > b else 'no'}" for a, b, c in x]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,label", *rows]) + "\n")
    settings = {"epochs": 1, "progress": False, "baselines": False}
    fit(None, load_table("table.csv", "label"), "vanilla", out="model", **settings)
    assert program("audit")("model", *FAST, "--pack", "evidence.zip")[0] == 0
    members = dict(open_pack("evidence.zip").members)
    described = json.loads(members["model/model.json"])
    weights = f"model/weights-{described['weights'][:16]}.safetensors"
    outside = {**described, "extra": {**described["extra"], "rows": "../../../dev/zero"}}
    for changed, expected in [
        ({"model/model.json": None}, "folder must be one with model.json, got none in model"),
        ({"model/model.json": b"[]"}, "model/model.json must be a JSON object, got list"),
        ({"model/model.json": _json(outside)}, "model: model.json: rows must be the name of a fil"),
        ({weights: None}, f"one with {weights.removeprefix('model/')}, got none in model"),
        ({weights: b"x"}, f"{weights} must be the file that model.json was written for (by SHA-"),
    ]:
        kept = {n: c for n, c in {**members, **changed}.items() if c is not None}
        (tmp_path / "odd.zip").unlink(missing_ok=True)
        write_archive("test", "odd.zip", kept)
        code, _, err = program("verify")("odd.zip", "--engine", "serial")
        begin = "verify: the pack's model must be one that can be opened, got an error ("
        assert (code, err.startswith(begin), err.count("\n")) == (2, True, 1), err
        assert expected in err, err
        assert "r2et-verify" not in err


@pytest.mark.slow
def test_a_folder_and_a_data_set_are_repeated_without_anything_else(program, folder, tmp_path):
    assert program("audit")(folder, "adult", *FAST, "--pack", "evidence.zip")[0] == 0
    assert program("audit")(folder, *FAST, "--pack", "test-part.zip")[0] == 0
    verify = program("verify")
    for name in ("evidence.zip", "test-part.zip"):
        code, out, _ = verify(name, "--engine", "serial")
        assert (code, out.splitlines()[1]) == (0, "repeated, equal to the bit")
        code, _, err = verify(name, "--data", "rows.csv")
        assert (code, "--data must be left out: it is the " in err) == (2, True)
    code, out, _ = verify("evidence.zip", "--members-only", "--json")
    assert (code, json.loads(out)["passed"]) == (0, True)
    before = (tmp_path / "evidence.zip").read_bytes()
    broken = before.replace(b'"passed"', b'"passee"', 1).replace(b"seconds", b"secondz", 1)
    (tmp_path / "evidence.zip").write_bytes(broken)
    code, _, err = verify("evidence.zip")
    assert (code, "audit.json" in err) == (2, True), err


def _json(value):
    return (json.dumps(value) + "\n").encode()
