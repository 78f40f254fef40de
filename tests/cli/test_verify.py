"""r2et audit --pack, and r2et verify of it: the same figures, or one sentence."""

import json
import os
import shutil
import zipfile

import numpy as np
import pytest

from forged import forged
from r2et.audit import open_pack, pack
from r2et.audit.request import Request
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
    assert "  page, rows and card " in out
    assert " 3 of 3 equal to the bit\n" in out
    assert "  not checked: name (what the model is called)\n" in out
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
    better = {"precision_strong": 0.999}
    forged(tmp_path / "forged.zip", opened.members, audit=lambda a: a["summary"].update(better))
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
    said = "verify: PACK must be of members that r2et writes, got letter.html.\n"
    assert (code, err) == (2, said)
    (tmp_path / "more.zip").unlink()
    odd = opened.members["audit.json"].replace(b'"auc_clean": ', b'"auc_clean": NaN, "auc": ', 1)
    write_archive("test", "more.zip", {**opened.members, "audit.json": odd})
    code, _, err = verify("more.zip", *options)
    said = "verify: audit.json must be JSON, got an error: NaN is no number of JSON.\n"
    assert (code, err) == (2, said)
    (tmp_path / "more.zip").unlink()
    write_archive("test", "more.zip", {**opened.members, "model/net.py": b"import os"})
    code, _, err = verify("more.zip", "--members-only")
    said = "verify: PACK must be of members that r2et writes of a factory, got model/net.py.\n"
    assert (code, err) == (2, said)
    blob = bytearray(opened.members["model/weights.safetensors"])
    blob[-1] ^= 1
    changed = {**opened.members, "model/weights.safetensors": bytes(blob)}
    write_archive("test", "weights.zip", changed)
    code, _, err = verify("weights.zip", *options)
    assert code == 2
    assert err.startswith("verify: the model must be the one that was audited (weights ")
    request = json.loads(opened.members["repeat.json"])["request"]
    for part, value, expected in [
        ("request", {**request, "k": "2"}, "request.k must be int or null, got 2"),
        ("request", {**request, "model": "os:abort"}, "of settings that this version"),
        ("run", {"rows": 12, "budget": "fast"}, "run.seed must be int, got nothing"),
        ("data", {"kind": "file", "path": 3}, "audit.json: inputs.data must be of the file 3, got"),
        ("data", {"kind": "file", "path": "/dev/rows.csv"}, "got none at /dev/rows.csv"),
        ("request", None, "made by `r2et audit --pack` to be audited again"),
        ("model", {"kind": "pickle"}, "model must be a folder or a factory, got pickle"),
    ]:
        change = {part: value}
        forged(tmp_path / "odd.zip", opened.members, repeat=lambda r, c=change: r.update(c))
        code, _, err = verify("odd.zip", *options)
        assert (code, expected in err, err.count("\n")) == (2, True, 1), err
    late = {"skipped": [{"what": "rows", "why": "the time was up"}]}
    forged(tmp_path / "late.zip", opened.members, audit=lambda a: a.update(late))
    code, _, err = verify("late.zip", *options)
    assert (code, "got one that --minutes stopped" in err) == (2, True), err
    # The wrong kind of model; by the option that was given, and by no place of a moment.
    code, _, err = verify("evidence.zip", "--model", str(tmp_path))
    expected = f"verify: --model must be package.module:factory, as {strange}:net: the pack is of"
    assert (code, err.startswith(expected)) == (2, True), err
    code, _, err = verify("evidence.zip", "--model", f"{strange}:number", "--engine", "serial")
    assert (code, err.startswith("verify: MODEL must be a function of "), err.count("\n")) == (
        2, True, 1)  # fmt: skip


def test_pages_and_texts_that_nobody_vouches_for(program, strange, given, tmp_path, monkeypatch):
    assert program("audit")(*given, "--pack", "evidence.zip")[0] == 0
    opened, verify = open_pack("evidence.zip"), program("verify")
    options = ("--model", f"{strange}:net", "--engine", "serial")
    module, again = f"model/{strange}.py.txt", []

    def once(request, *of, **settings):
        """The audit of the first call, as all are of the same."""
        again[:] = again or [whole(request, *of, **settings)]
        return again[0]

    whole = Request.run
    monkeypatch.setattr(Request, "run", once)
    # Another text of the module than that of the one that was run.
    honest = b"# an honest logistic regression\n"
    forged(tmp_path / "text.zip", {**opened.members, module: honest})
    code, out, err = verify("text.zip", *options)
    said = "must be compared, got figures that repeat alone.\n"
    assert (code, err) == (4, f"verify: {module} {said}")
    assert out.splitlines()[1] == f"figures repeated, equal to the bit; NOT compared: {module}"
    code, out, _ = verify("text.zip", *options, "--json")
    assert (code, json.loads(out)["passed"], json.loads(out)["repeated"]) == (4, False, True)
    # The pages of a version that is not here.
    files = {"page.html": b"<h1>AUC 0.99</h1>", "rows.csv": b"lies"}

    def claims(held):
        held["environment"]["r2et"] = "0.0.9"

    def versions(held):
        held["versions"]["r2et"] = "0.0.9"

    forged(tmp_path / "old.zip", {**opened.members, **files}, audit=versions, repeat=claims)
    code, out, err = verify("old.zip", *options)
    names = "page.html, rows.csv, model-card.md"
    assert (code, err) == (4, f"verify: {names} {said}")
    assert out.splitlines()[1] == f"figures repeated, equal to the bit; NOT compared: {names}"


def test_members_only_asks_for_nothing_else(program, given):
    assert program("audit")(*given, "--pack", "evidence.zip")[0] == 0
    for option in ("--data", "--model"):
        code, out, err = program("verify")("evidence.zip", "--members-only", option, "x")
        said = f"verify: {option} must be left out with --members-only, which audits nothing, got g"
        assert (code, out, err) == (2, "", f"{said}iven.\n")


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
        forged(tmp_path / "odd.zip", kept)
        code, _, err = program("verify")("odd.zip", "--engine", "serial")
        begin = "verify: the pack's model must be one that can be opened, got an error ("
        assert (code, err.startswith(begin), err.count("\n")) == (2, True, 1), err
        assert expected in err, err
        assert "r2et-verify" not in err
    # What the folder says of names and challengers, in both places.
    swapped = dict(described, extra={**described["extra"], "names": ["b", "a", "c"]})
    write_archive("test", "names.zip", {**members, "model/model.json": _json(swapped)})
    code, _, err = program("verify")("names.zip", "--members-only")
    said = "verify: model/model.json must be the file that was audited (SHA-256 "
    assert (code, err.startswith(said)) == (2, True), err
    kept = {**members, "model/model.json": _json(swapped)}
    names = {"names": ["b", "a", "c"]}
    forged(tmp_path / "names.zip", kept, audit=lambda a: a.update(names), pages=True)
    code, out, err = program("verify")("names.zip", "--engine", "serial")
    assert "  not checked: names (as model/model.json has them, not fitted again; " in out
    assert (code, err) == (0, "")
    code, out, err = program("verify")("names.zip", "--engine", "serial", "--model", "model")
    assert (code, "DIFFERENT: inputs.files.model.json: " in out) == (3, True), out


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
