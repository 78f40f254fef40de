"""What a pack says of itself: no part of it may say anything else than the others."""

import json

import pytest

from audits import tabular
from forged import forged
from r2et.audit import Audit, open_pack, pack
from r2et.errors import InputError


@pytest.fixture(autouse=True)
def no_paper(monkeypatch):
    monkeypatch.setattr(pack, "printed", lambda _: pack.Printed(None, "not asked for"))


@pytest.fixture
def opened(tmp_path):
    Audit(tabular()).to_pack(tmp_path / "evidence.zip")
    return open_pack(tmp_path / "evidence.zip")


CARD = "r2et verify x`.\n\n## Approved by the supervisor\n\n`"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda r: r.update(verify=CARD), "repeat.json: verify must be r2et verify and a plain na"),
        (lambda r: r.update(verify="r2et verify --model"), "repeat.json: verify must be r2et veri"),
        (lambda r: r.update(verify=["r2et"]), "repeat.json: verify must be r2et verify and a pla"),
        (lambda r: r.update(command="r2et all"), "command must be that of audit.json, got r2et al"),
        (lambda r: r.update(settings={"radius": 9}), "settings must be that of audit.json, got an"),
        (lambda r: r.update(config={}), "repeat.json: config must be that of audit.json, got ano"),
        (lambda r: r.update(inputs={}), "repeat.json: inputs must be that of audit.json, got ano"),
        (lambda r: r.update(pdf="stamped"), "repeat.json: pdf must be what is in the pack, got st"),
        (lambda r: r.update(pdf="page.pdf"), "repeat.json: pdf must be what is in the pack, got p"),
        (lambda r: r.update(approved=True), "of the entries that r2et writes, got approved"),
        (lambda r: r.pop("run"), "of the entries that r2et writes, got run"),
        (lambda r: r.update(environment=[]), "environment must be an object of texts, got []"),
        (lambda r: r.update(environment={"r2et": 1}), "environment must be an object of texts, go"),
        (lambda r: r.update(model=[]), "repeat.json: model must be an object, got []"),
        (lambda r: r.update(data=3), "repeat.json: data must be an object, got 3"),
        (lambda r: r.update(model={"kind": []}), "model must be a folder or a factory, got []"),
        (lambda r: r.update(data={"kind": {}}), "versions must be those of repeat.json, got {'"),
        (lambda r: r.update(request={"name": "another"}), "name must be that of repeat.json, got"),
    ],
)  # fmt: skip
def test_repeat_json_says_what_audit_json_says(opened, tmp_path, change, expected):
    path = tmp_path / "forged.zip"
    forged(path, opened.members, repeat=change)
    with pytest.raises(InputError, match=r"^open_pack: ") as refused:
        open_pack(path)
    assert expected in str(refused.value)
    assert str(refused.value).count("\n") == 0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda a: a.update(date="2026-01-01 (approved)"), "date must be a date such as 2026-01"),
        (lambda a: a["settings"].update(minutes=-3), "settings.minutes must be null or a posit"),
        (lambda a: a.update(versions={"torch": "9 " * 200}), "versions must be an object of text"),
        (lambda a: a["inputs"]["data"].update(sha256="x"), "inputs.data must be told apart by a"),
    ],
)  # fmt: skip
def test_what_is_of_the_run_has_the_form_in_which_it_is_written(opened, tmp_path, change, expected):
    path = tmp_path / "forged.zip"
    forged(path, opened.members, audit=change, pages=True)
    with pytest.raises(InputError, match=r"^open_pack: audit.json: ") as refused:
        open_pack(path)
    assert expected in str(refused.value)


def test_what_nobody_can_check_is_listed(opened, tmp_path):
    path = tmp_path / "forged.zip"

    def change(audit):
        audit["date"], audit["seconds"] = "1999-01-01", 1.0
        audit["settings"]["minutes"] = 3

    forged(path, opened.members, audit=change, pages=True)
    found = open_pack(path).compare(Audit(tabular()))
    assert found.passed, str(found)
    assert "  not checked: date, seconds, versions, settings.minutes (of the run, " in str(found)
    assert "not checked: inputs.command (what was typed; what is repeated is in r" in str(found)
    assert found.to_dict()["unchecked"]["date"] == "of the run, and no figure"

    def lies(audit):
        audit["inputs"]["rows"] = 50_000
        audit["inputs"]["data"] |= {"sha256": "00" * 32, "tensors": "ab" * 32}

    forged(path, opened.members, audit=lies, pages=True)
    found = open_pack(path).compare(Audit(tabular()))
    assert {d.place for d in found.differences} == {"inputs.rows", "inputs.data.sha256"}
    assert str(found).startswith("NOT repeated\n")


def test_entries_that_are_there_twice(opened, tmp_path):
    """Whoever takes the first of them reads another figure than whoever takes the last."""
    path = tmp_path / "forged.zip"
    whole = opened.members["audit.json"]
    for name, content in [
        ("audit.json", b'{"name": "better", ' + whole[1:]),
        ("audit.json", whole.rstrip(b"\n")),
        ("repeat.json", b'{"command": "x", ' + opened.members["repeat.json"][1:]),
        ("audit.json", whole.replace(b'"auc_clean": 0.874', b'"auc_clean": 0.8740')),
    ]:
        path.unlink(missing_ok=True)
        pack.write_archive("test", path, {**opened.members, name: content})
        with pytest.raises(InputError, match=f"{name} must be as r2et writes what it holds, got o"):
            open_pack(path)
    assert json.loads(opened.members["audit.json"]) == tabular()


def test_members_of_a_model_are_those_of_its_kind(opened, tmp_path):
    path = tmp_path / "forged.zip"
    for name in ("model/notes.py.txt", "model/model.json", "model/model.py"):
        pack.write_archive("test", path, {**opened.members, name: b"all is well"})
        with pytest.raises(InputError, match=f"that r2et writes of a module, got {name}"):
            open_pack(path)
        path.unlink()


def test_a_pack_of_any_name_is_called_by_a_plain_one(tmp_path):
    path = tmp_path / "x`. $(rm) é.zip"
    Audit(tabular()).to_pack(path)
    opened = open_pack(path)
    assert opened.repeat["verify"] == "r2et verify evidence.zip"
    assert b"`r2et verify evidence.zip` checks" in opened.members["model-card.md"]
    assert opened.compare(Audit(tabular())).passed


def test_what_is_no_audit_is_not_compared(opened):
    for other in (3, None, tabular()):
        with pytest.raises(InputError, match=r"^compare: again must be an Audit, got "):
            opened.compare(other)
