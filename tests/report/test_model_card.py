"""The section of a model card, and the page on paper."""

import re
import subprocess

import pytest

from audits import HOSTILE, hostile, skipped, tabular
from r2et.report import pdf
from r2et.report.model_card import escaped, model_card
from r2et.report.page import html
from r2et.results import FIGURES
from r2et.results.rows_csv import rows_csv


def test_the_section_has_the_figures_that_were_measured():
    whole = tabular()
    text = model_card(whole, "loans.zip")
    assert text.startswith(f"## Stability of explanations: {whole['name']}\n")
    assert "| Rows proved |" in text
    assert "held\\_out.csv" in text
    assert "ab" * 32 in text
    assert "`r2et verify loans.zip`" in text
    assert "### Limitations" in text
    assert "do not say" not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    measured = [n for n in FIGURES if whole["summary"].get(n) is not None]
    assert len(table) == 2 + len(measured)
    assert all(line.count("|") == 5 for line in table)


def test_what_was_not_measured_is_a_limitation():
    text = model_card(skipped())
    left = {**skipped(), "skipped": [{"what": "papers", "why": "these changes are no ball"}]}
    assert "- Not measured: the papers' attack: these changes are no ball\n" in model_card(left)
    assert "<b>the papers&#39; attack</b>: these changes" in html([left])
    assert "- Not measured: the proof: IntervalCertifier: model must be feed-forward" in text
    assert "| Rows proved |" not in text


def test_no_text_of_others_gets_out_of_its_place():
    text = model_card(hostile())
    assert HOSTILE not in text
    assert "<script" not in text.replace("\\<script", "")
    assert not re.search(r"(?<!\\)<", text)
    assert escaped("a\n# b | c") == "a \\# b \\| c"


def test_rows_as_a_table():
    whole = tabular()
    whole["rows"]["id"] = ["=1+1"] + ["b"] * (len(whole["rows"]["index"]) - 1)
    lines = rows_csv(whole).splitlines()
    assert len(lines) == 1 + len(whole["rows"]["index"])
    head = lines[0].split(",")
    first = dict(zip(head, lines[1].split(","), strict=True))
    assert first["top"] == "; ".join(whole["names"][: whole["summary"]["k"]])
    assert first["target"] == whole["classes"][1]
    assert first["id"] == "'=1+1"


def test_without_a_browser_there_is_no_pdf_and_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(pdf.shutil, "which", lambda _: None)
    content, reason = pdf.printed("<p>hello</p>")
    assert content is None
    assert reason.startswith("no browser here (chromium, ")
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(pdf, "browser", lambda: str(broken))
    assert pdf.printed("<p>hello</p>") == (None, "chromium did not print it")

    def slow(*_, timeout, **__):
        raise subprocess.TimeoutExpired("chromium", timeout)

    monkeypatch.setattr(pdf.subprocess, "run", slow)
    assert pdf.printed("x") == (None, "chromium took longer than 120 seconds")


def test_without_a_temporary_folder_there_is_no_pdf_and_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(pdf, "browser", lambda: "/usr/bin/chromium")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    expected = (None, "chromium did not print it: No such file or directory")
    assert pdf.printed("<p>hello</p>") == expected


def test_parts_of_a_print_are_numbered_alike(monkeypatch):
    def prints(start):
        text = "%PDF- " + " ".join(f"/ID (node{start + i:08d})" for i in (0, 3, 1))
        monkeypatch.setattr(pdf, "_print", lambda *_: text.encode())
        return pdf.printed("<p>hello</p>")

    monkeypatch.setattr(pdf, "browser", lambda: "/usr/bin/chromium")
    expected = b"%PDF- /ID (node00000001) /ID (node00000003) /ID (node00000002)"
    assert prints(437).content == prints(438).content == expected


@pytest.mark.slow
def test_the_page_on_paper_has_pages_and_one_date():
    if pdf.browser() is None:
        pytest.skip("no browser here")
    page = html([tabular()])
    first, second = pdf.printed(page), pdf.printed(page)
    assert first.reason is None
    assert first.content == second.content
    assert b"/CreationDate (D:19800101000000" in first.content
    assert 5 <= len(re.findall(rb"/Type /Page\b", first.content)) <= 20
