"""r2et report, as a user types it."""

import json

import pytest

from audits import several, tabular


@pytest.fixture
def run(program, tmp_path):
    for number, audit in enumerate(several()):
        (tmp_path / f"{number}.json").write_text(json.dumps(audit))
    return program("report")


def test_one_audit(run, tmp_path):
    assert run("0.json") == (0, "wrote report.html\n", "")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>Explanation audit: vanilla</title>" in text


def test_several_audits_under_a_title(run, tmp_path):
    assert run("0.json", "1.json", "-o", "both.html", "--title", "Two & one")[0] == 0
    text = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert "<title>Two &amp; one</title>" in text
    assert 'id="compare"' in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("none.json",),
         "read_audit: file must be one that can be read, got none.json"
         " (No such file or directory)."),
        (("0.json", "half.json"),
         "read_audit: file must be whole JSON, got half.json"
         " (half a file: it ends in the middle)."),
        (("0.json", "-o", "0.json/page.html"),
         "page: path must be a file that can be written, got 0.json/page.html"
         " (File exists)."),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_exit_code_2(run, tmp_path, arguments, sentence):
    (tmp_path / "half.json").write_text(json.dumps(tabular())[:5000])
    assert run(*arguments) == (2, "", sentence + "\n")
    assert not list(tmp_path.glob("*.html"))


def test_no_audit_at_all(run):
    code, _, err = run()
    assert code == 2
    assert "Missing argument" in err
    assert "AUDIT.json" in err
