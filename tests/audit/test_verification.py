"""Two results of one audit, compared value by value."""

import copy
import json

import pytest

from audits import tabular
from r2et.audit import Audit, pack
from r2et.audit.verification import compare_results, is_close
from r2et.errors import InputError
from r2et.results.archive import write_archive


def changed(**summary):
    again = copy.deepcopy(tabular())
    again["summary"].update(summary)
    return again


def test_the_same_is_equal_to_the_bit_whatever_the_clock_says():
    again = changed()
    again |= {"date": "1999-01-01", "seconds": 1e9, "durations": {}, "versions": {"torch": "0"}}
    again["settings"]["minutes"] = 3.0
    again["inputs"] = {**again["inputs"], "command": "another"}
    found = compare_results(tabular(), again, 1e-3)
    assert found.passed
    assert found.bit_equal
    assert bool(found)
    assert sum(own["equal"] for own in found.counts.values()) > 1000
    assert str(found).startswith("repeated, equal to the bit\n")
    json.dumps(found.to_dict(), allow_nan=False)


def test_last_digits_are_within_tolerance_and_named():
    old = tabular()
    value = old["summary"]["auc_clean"]
    found = compare_results(old, changed(auc_clean=value * (1 + 1e-12)), 1e-3)
    assert found.passed
    assert not found.bit_equal
    assert [d.place for d in found.differences] == ["summary.auc_clean"]
    assert found.counts["figures"]["within tolerance"] == 1
    assert not compare_results(old, changed(auc_clean=value * (1 + 1e-12)), 0.0).passed
    far = compare_results(old, changed(auc_clean=value * 1.002), 1e-3)
    assert not far
    assert "DIFFERENT: summary.auc_clean: " in str(far)
    assert str(far).startswith("NOT repeated\n")


def test_other_rows_sentences_and_weights_are_different():
    old, again = tabular(), tabular()
    again["rows"]["radius_certified"][3] *= 1.5
    again["rows"]["top"] = again["rows"]["top"][:-1]
    again["notes"] = ["something"]
    again["inputs"]["weights"]["sha256"] = "00" * 32
    del again["summary"]["dffot"]
    found = compare_results(old, again, 1e-3)
    places = {d.place for d in found.differences if not d.close}
    assert {"rows.radius_certified[3]", "rows.top", "inputs.weights", "summary.dffot"} <= places
    assert any(place.startswith("notes") for place in places)


def test_numbers_next_to_zero_flags_and_nothing():
    assert is_close(0.0, 1e-7, 1e-3)
    assert not is_close(0.0, 1e-5, 1e-3)
    assert not is_close(0.0, 1e-7, 0.0)
    assert not is_close(True, 1.0, 1e-3)
    assert not is_close(None, 0.0, 1e-3)
    assert is_close(1, 1.0, 0.0)
    assert not is_close(10_000, 10_001, 1e-3)
    assert not is_close(1, 1.0000001, 1e-3)
    for tolerance in (-1, 1, float("nan")):
        with pytest.raises(InputError, match="verify: tolerance must be 0 or more, and below 1"):
            compare_results(tabular(), tabular(), tolerance)


def test_whole_numbers_and_what_was_asked_for_are_equal_or_different():
    """Rows, reasons, seeds and counts in their thousands lie within a thousandth of each other."""
    old = tabular()
    old["rows"]["id"] = [1000.0 + i for i in range(60)]
    old["rows"]["index"] = [5000 + i for i in range(60)]
    old["settings"]["seed"] = 10**6
    for places, value in [
        (("rows", "index", 3), 5004),
        (("rows", "id", 3), 1003.5),
        (("rows", "top", 0, 0), 1),
        (("settings", "seed"), 10**6 + 7),
        (("settings", "radius"), 0.1 * (1 + 1e-5)),
        (("summary", "radius"), 0.1 * (1 + 1e-5)),
        (("inputs", "rows"), 61),
    ]:
        again = copy.deepcopy(old)
        inner = again
        for place in places[:-1]:
            inner = inner[place]
        assert inner[places[-1]] != value
        inner[places[-1]] = value
        found = compare_results(old, again, 1e-3)
        assert not found.repeated, places


def test_what_is_not_as_it_was_is_said():
    found = compare_results(tabular(), tabular(), 1e-3)
    found = found.made({"torch": "2.0", "cpu": "A"}, {"torch": "2.1", "cpu": "A", "numpy": "2"})
    assert found.changed == (("torch", "2.0", "2.1"), ("numpy", "none", "2"))
    assert "not as it was: torch: 2.0 then, 2.1 now" in str(found)
    assert found.passed


def test_a_pack_in_python(tmp_path, monkeypatch):
    from r2et.audit import open_pack, pack

    monkeypatch.setattr(pack, "printed", lambda _: pack.Printed(None, "not asked for"))
    path = tmp_path / "evidence.zip"
    assert Audit(tabular()).to_pack(path) == "not asked for"
    opened = open_pack(path)
    assert opened.audit.result == tabular()
    assert opened.repeat["pdf"] == "not printed: not asked for"
    assert opened.repeat["environment"]["torch"]
    assert opened.compare(Audit(tabular())).bit_equal
    assert opened.compare(Audit(tabular())).changed == ()
    with pytest.raises(InputError, match="to_pack: path must be a file that is not there yet"):
        Audit(tabular()).to_pack(path)
    before = path.read_bytes()
    Audit(tabular()).to_pack(tmp_path / "again" / "evidence.zip")
    assert (tmp_path / "again" / "evidence.zip").read_bytes() == before


def test_pages_of_another_version_are_listed_and_not_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "printed", lambda _: pack.Printed(None, "not asked for"))
    path, audit = tmp_path / "evidence.zip", Audit(tabular())
    audit.to_pack(path)
    path.rename(tmp_path / "renamed.zip")
    opened = pack.open_pack(tmp_path / "renamed.zip")
    found = opened.compare(audit)
    assert found.bit_equal, str(found)
    assert found.counts["page, rows and card"]["equal"] == 3
    opened.repeat["environment"]["r2et"] = "9.9"
    found = opened.compare(audit)
    assert (found.bit_equal, found.repeated, found.passed, bool(found)) == (True, True, False, 0)
    names = "page.html, rows.csv, model-card.md"
    assert str(found).startswith(f"figures repeated, equal to the bit; NOT compared: {names}\n")
    assert "  not compared: page.html (of r2et 9.9)\n" in str(found)
    assert set(found.to_dict()["left_out"]) == {"page.html", "rows.csv", "model-card.md"}


def test_a_pdf_is_vouched_for_only_where_it_is_printed_again(tmp_path, monkeypatch):
    def prints(content, reason=None):
        monkeypatch.setattr(pack, "printed", lambda _: pack.Printed(content, reason))

    path, audit = tmp_path / "evidence.zip", Audit(tabular())
    prints(b"%PDF-1")
    assert audit.to_pack(path) is None
    opened = pack.open_pack(path)
    assert opened.compare(audit).left_out == {}
    forged = tmp_path / "forged.zip"
    write_archive("test", forged, {**opened.members, "page.pdf": b"%PDF-2"})
    line = "  not compared: page.pdf (the browser here prints other bytes: read page.html, or"
    found = pack.open_pack(forged).compare(audit)
    assert f"\n{line} print it again)\n" in str(found)
    assert str(found).startswith("repeated, equal to the bit; not compared: page.pdf\n")
    prints(None, "no browser here")
    line = "  not compared: page.pdf (not printed again: no browser here; page.html is what was"
    assert f"\n{line} checked)\n" in str(opened.compare(audit))
