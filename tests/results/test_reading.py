"""Files that are no audits, each by the sentence it gets."""

import copy
import json

import pytest

from audits import HOSTILE, colour, hostile, image, skipped, tabular, without
from r2et.errors import InputError
from r2et.report import page, read_audit


@pytest.mark.parametrize("make", [tabular, image, colour, skipped, hostile])
def test_what_was_written_is_read(make, tmp_path):
    file = tmp_path / "audit.json"
    file.write_text(json.dumps(make()))
    assert read_audit(file) == make()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "file must be whole JSON, got {file} (half a file: it ends in the middle)."),
        (b'{"format": "r2et-audit/1", "na',
         "file must be whole JSON, got {file} (half a file: it ends in the middle)."),
        (b"{'format': 1}", "file must be whole JSON, got {file} (Expecting property name"),
        (b"\xff\xfe\x00", "file must be a JSON text, got {file} (not UTF-8)."),
        (b"[1, 2]", "{file}: audit must be an object, got list."),
        (b'{"a": 1}',
         "{file}: format must be 'r2et-audit/1', as `r2et audit --json` writes it, got none."),
        (b'{"format": "captum/3"}', "as `r2et audit --json` writes it, got captum/3."),
        (b'{"format": "r2et-audit/2"}',
         "format must be 'r2et-audit/1' (a newer r2et wrote this file: update r2et),"
         " got r2et-audit/2."),
    ],
)  # fmt: skip
def test_foreign_half_and_newer_files(content, sentence, tmp_path):
    file = tmp_path / "audit.json"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_audit(file)
    said = str(caught.value)
    assert said.startswith("read_audit: ")
    assert sentence.format(file=file) in said
    assert "\n" not in said


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"must be one that can be read, got .*No such file"):
        read_audit(tmp_path / "none.json")


def test_a_deeply_nested_file(tmp_path):
    file = tmp_path / "audit.json"
    file.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(InputError, match="nested"):
        read_audit(file)


def changed(path, value):
    found = copy.deepcopy(tabular())
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("name",), 3, "name must be a text, got 3."),
        (("rows",), [], "rows must be an object, got []."),
        (("summary", "k"), 13, "summary.k must be in 1..12, got 13."),
        (("summary", "k"), True, "summary.k must be in 1..12, got True."),
        (("summary", "rows"), None, "summary.rows must be how many rows were audited, got None."),
        (("inputs",), "x", "inputs must be null or an object of objects, got x."),
        (("names",), ["a"], "names must be null or a list of 12, got ['a']."),
        (("scores_shape",), [0, 3], "scores_shape must be a list of positive whole numbers"),
        (("skipped",), ["certified"], "skipped must be a list of objects"),
        (("notes",), ["one", 2], "notes must be a list of texts"),
        (("classes",), "yes", "classes must be null or a list, got yes."),
        (("counts",), 7, "counts must be an object, got 7."),
        (("rows", "thickness"), 7, "rows.thickness must be null or a list, got 7."),
        (("rows", "thickness"), [1.0], "rows must be columns of one length"),
        (("curve", 3), {"radius": 1}, "curve must be a list of objects with numbers radius,"),
        (("curve", 3, "proved"), "much", "curve must be a list of objects with numbers radius,"),
        (("shown", 0, "x"), [1.0], "shown[0].x must be a list of 12 numbers, got [1.0]."),
        (("shown", 1, "steps", 2, "scores", 5), None,
         "shown[1].steps[2].scores must be a list of 12 numbers"),
        (("shown", 1, "steps", 2, "radius"), "big",
         "shown[1].steps[2].radius must be a number from 0 on, got big."),
        (("shown", 0), 5, "shown[0] must be an object with steps, got 5."),
        (("figures",), 5, "figures must be null or a list of objects, got 5."),
        (("figures",), [{"name": "a"}], "figures[0] must be an object with name, label, and"),
        (("figures",), [{"name": "a", "label": "A", "colour": "red"}], "figures[0] must be an"),
        (("figures",), [{"name": "a", "label": "A", "unit": "m"}],
         "figures[0] must be a figure, got Figure: unit must be one of share,"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(path, value, sentence, tmp_path):
    with pytest.raises(InputError) as caught:
        page([tabular(), changed(path, value)], tmp_path / "page.html")
    assert str(caught.value).startswith("page: audit 1: ")
    assert sentence in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["name", "settings", "summary", "rows", "curve", "shown"])
def test_what_is_missing_is_named(key, tmp_path):
    with pytest.raises(InputError, match=f"page: audit 0: {key} must be"):
        page([without(tabular(), key)], tmp_path / "page.html")


@pytest.mark.parametrize(
    "key", ["date", "seconds", "versions", "counts", "names", "groups", "classes", "skipped"]
)
def test_what_the_page_can_do_without_may_be_missing(key, tmp_path):
    page([without(tabular(), key)], tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_an_error_about_hostile_content_is_one_printable_line():
    with pytest.raises(InputError) as caught:
        page([{"format": HOSTILE + "\n\x1b[2J"}], "page.html")
    assert str(caught.value).isprintable()


def test_a_figure_without_a_name_is_no_figure(tmp_path):
    audit = tabular()
    audit["summary"][""] = 0.5
    page([audit], tmp_path / "page.html")
    assert (tmp_path / "page.html").is_file()
