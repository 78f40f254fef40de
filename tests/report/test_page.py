"""The page as a text: what is in it, how large it is, how it is written."""

import builtins
import html
import itertools
import json
import os
import re
import stat

import pytest

from audits import HOSTILE, audit, colour, hostile, image, several, skipped, tabular
from r2et.errors import InputError
from r2et.report import page
from r2et.report.model_table import table
from r2et.report.page import html as page_text
from r2et.report.page import island


def visible(text):
    """What a reader sees, on one line."""
    bare = re.sub(r"<(style|script)\b.*?</\1>", " ", text, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split())


def test_the_static_parts_of_a_table():
    text = visible(page_text([tabular()]))
    for part in (
        "Explanation audit: certified",
        "60 rows · 4 reasons each · radius 0.1 (Euclidean length over all features) · 2026-11-16",
        "proved: 80 % unknown: 12 % broken: 8 % of 60 rows at radius 0.1",
        "AUC of a linear model A logistic regression",
        "Row 17 at radius 0.1",
        "Left: loan amount. Entered: debt ratio.",
        "Correlation (Pearson):",
        "version of torch 2.13.0",
        "The proof assumes: The network is in evaluation mode",
        "Pareto front Models that no other",
    ):
        assert part in text, part
    # A name, what it means in words, and its figures.
    assert re.search(r"Thickness \D+ 0\.3 0\.29 to 0\.31 ↑ higher 60", text)
    assert re.search(r"Sufficiency \D+ −0\.013 −0\.023 to −0\.003 ↓ lower 60", text)  # noqa: RUF001
    assert "0.30000" not in text


def test_all_that_was_skipped_says_so():
    text = visible(page_text([skipped()]))
    assert "Neither a proof nor an attack was run" in text
    assert text.count("not measured") >= 18
    assert "the proof : IntervalCertifier: model must be feed-forward, got LSTM." in text
    assert "The curve was not measured." in text
    assert "Worst rows" not in text
    assert "There was no proof, hence no assumptions of one." in text


def test_assumptions_that_an_audit_brings_along_are_shown():
    text = visible(page_text([tabular() | {"assumptions": "exact arithmetic"}]))
    assert "The proof assumes: exact arithmetic" in text


def test_several_are_compared():
    text = page_text(several())
    assert "Explanation audit: 4 models" in text
    table = re.search(r'<table class="compare">.*?</table>', text, re.S)[0]
    lines = {re.search(r'row">([^<]+)', line)[1]: line for line in table.split("<tr>")[2:]}
    cells = {name: re.findall(r"<td>(.*?)</td>", line) for name, line in lines.items()}
    shown = [re.sub(r'<span class="range">.*', "", cell) for cell in cells["AUC"]]
    best = '<b>{}</b> <span class="tag">best</span>'.format
    assert shown == [best("0.881"), best("0.879"), "0.876", "0.860"]  # 0.883 reaches 0.881
    assert cells["AUC"][2].endswith('<span class="range">0.872 to 0.880</span>')
    assert "too close to tell" not in lines["AUC"]
    assert cells["Rows proved"][3] == "not measured"
    assert "best" not in lines["AUC under attack"]  # all alike
    assert "best" not in lines["AUC of a linear model"]
    assert "too close to tell" not in lines["AUC of a linear model"]
    assert "Not measured alike" not in text
    assert text.count("On the Pareto front: certified, r2et, vanilla.") == 4


def test_audits_that_were_not_made_alike_say_so():
    text = visible(page_text([tabular(), audit("other", k=3, radius=0.2)]))
    assert "Not measured alike k: 4 (certified), 3 (other)" in text
    assert "radius: 0.1 (certified), 0.2 (other)" in text


def test_a_radius_sought_in_vain_is_the_best():
    one, two = tabular(), tabular()
    two["name"] = "firm"
    two["summary"] |= dict.fromkeys(f"radius_attacked_median{end}" for end in ("", "_low", "_high"))
    two["counts"]["radius_attacked_median"] = 40
    (line,) = [x for x in table([one, two]) if x["figure"].name == "radius_attacked_median"]
    assert [(cell["text"], cell["best"]) for cell in line["cells"]][1] == ("none found", True)
    assert not line["cells"][0]["best"]
    assert "none found" in page_text([two])
    del two["counts"]["radius_attacked_median"]
    (line,) = [x for x in table([one, two]) if x["figure"].name == "radius_attacked_median"]
    assert line["cells"][1] == {"text": "not measured", "span": "", "best": False}


def figures(name, *ends):
    """Two audits with these figures and intervals of one measure."""
    found = []
    for number, (low, value, high) in enumerate(ends):
        one = tabular() | {"name": f"model {number}"}
        one["settings"]["limit"] = 0.3
        one["summary"] |= {f"{name}_low": low, name: value, f"{name}_high": high}
        found.append(one)
    (line,) = (line for line in table(found) if line["figure"].name == name)
    return line


def test_what_rows_cannot_tell_apart_is_not_called_best():
    apart = figures("auc_clean", (0.80, 0.85, 0.90), (0.6, 0.65, 0.7))
    assert [cell["best"] for cell in apart["cells"]] == [True, False]
    close = figures("auc_clean", (0.80, 0.883, 0.90), (0.8, 0.88, 0.9))
    assert [cell["best"] for cell in close["cells"]] == [False, False]
    assert close["same"]
    three = figures("auc_clean", (0.8, 0.85, 0.9), (0.8, 0.84, 0.9), (0.1, 0.2, 0.3))
    assert [cell["best"] for cell in three["cells"]] == [True, True, False]
    less = figures("sufficiency", (0.1, 0.2, 0.3), (0.01, 0.05, 0.09))
    assert [cell["best"] for cell in less["cells"]] == [False, True]
    at_limit = figures("radius_certified_median", *[(0.3, 0.3, 0.3)] * 2, (0.1, 0.1, 0.1))
    told = [(cell["text"], cell["best"]) for cell in at_limit["cells"]]
    assert told == [("at least 0.3", True), ("at least 0.3", True), ("0.1", False)]


def test_what_was_not_measured_alike_has_no_best_and_no_front():
    text = page_text([tabular(), audit("other", k=3, stable=0.1)])
    assert ">best<" not in text
    assert "Pareto front:" not in text
    assert "No figure is called the best: they were not measured alike." in text


def test_one_explanation_for_everybody_is_said_before_the_figures():
    one, two = several()[:2]
    assert "The same reasons for everybody" not in page_text([one, two])
    two["summary"]["largest_top_k_share"] = 1.0
    text = visible(page_text([one, two]))
    said = "The same reasons for everybody: r2et (100 % of rows)."
    assert text.index(said) < text.index("Rows proved")


def test_long_parts_of_several_models_are_folded_but_for_the_first():
    text = page_text(several())
    folded = re.findall(r'<details class="fold"( open)?><summary>([^<]+)', text)
    assert {name for opened, name in folded if opened} == {
        "All figures of vanilla",
        "Calibration of vanilla",
        "Worst rows of vanilla",
        "Thickness of vanilla",
        "A row and a radius of vanilla",
        "How vanilla was audited",
    }
    assert len(folded) == 24
    assert text.count('href="#top"') == 5
    assert 'class="fold"' not in page_text([tabular()])


def test_one_row_is_one_row():
    text = visible(page_text([audit(rows=1)]))
    assert "1 row · 4 reasons" in text
    assert "1 rows" not in text
    assert "Only 1 row: what holds for so few says little about others." in text


def test_equal_audits_have_no_best():
    assert ">best<" not in page_text([tabular(), tabular()])


@pytest.mark.parametrize("make", [tabular, image, colour, skipped, hostile, several])
def test_ids_are_unique_and_references_lead_to_them(make):
    made = make()
    text = page_text(made if isinstance(made, list) else [made])
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:href="#|for="|url\(#|data-from=")([\w-]+)', text)
    used += " ".join(re.findall(r'aria-labelledby="([^"]+)"', text)).split()
    assert used
    assert set(used) <= set(ids)


@pytest.mark.parametrize("make", [tabular, image, skipped])
def test_headings_come_in_order(make):
    for audits in ([make()], [make(), make()]):
        levels = [int(h) for h in re.findall(r"<h([1-6])\b", page_text(audits))]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_every_text_is_escaped():
    text = page_text([hostile()], title=HOSTILE)
    assert HOSTILE not in text
    assert "<img src=x" not in text
    assert "Decision: &#34; onload=&#34;alert(2)&#34; &lt;/script&gt;" in text
    assert "in truth: &lt;b&gt;&lt;/script&gt;" in text
    assert "{{ 7 * 7 }}" in html.unescape(text)
    assert HOSTILE in html.unescape(re.search(r"<title>(.*?)</title>", text)[1])
    assert '" onload="alert' not in text


def test_the_data_inside_the_page_cannot_leave_its_element():
    data = {"a": f"{HOSTILE}&\u2028\u2029<!--", "b": [1.5, None]}
    inside = str(island(data))
    assert not set(inside) & set("<>&\u2028\u2029")
    assert json.loads(inside) == data


def test_no_address_outside_the_page():
    for made in (tabular(), image(), hostile()):
        text = page_text([made])
        links = re.findall(r"""(?:src|href|action|data)\s*=\s*["']([^"']*)""", text)
        assert all(link.startswith(("#", "data:image/png;base64,", "data:,")) for link in links)
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
        assert "@import" not in text


def test_ten_thousand_rows_stay_small_and_a_thousand_dots_are_drawn():
    text = page_text([audit(rows=10_000, worst=6, ordinary=6)])
    assert len(text.encode()) < 500_000
    drawn = [int(n) for n in re.findall(r"of which (\d+) are drawn", visible(text))]
    assert [500 < n <= 1000 for n in drawn] == [True, True]
    assert (
        max(len(re.findall("h0", d)) for d in re.findall(r'class="dots" d="([^"]*)', text)) <= 1000
    )


def test_a_dozen_large_pictures_stay_small():
    made = audit(shape=(3, 32, 32), scores_shape=(32, 32), k=100, worst=6, ordinary=6)
    assert len(page_text([made]).encode()) < 3_000_000


def test_features_by_the_thousand_are_not_all_listed():
    made = audit(shape=(3000,), scores_shape=(3000,), k=8, worst=1, ordinary=0)
    text = page_text([made])
    assert len(text.encode()) < 300_000
    best = max(range(3000), key=made["shown"][0]["scores"].__getitem__)
    assert f'feature {best}</th><td role="cell"><span class="rank">1</span>' in text
    assert "3000 input values move: these 8, and 2992 smaller." in visible(text)


def test_the_same_audit_gives_the_same_bytes():
    assert page_text(several()) == page_text(several())


def test_numbers_that_are_none_of_json_do_not_break_it():
    made = tabular()
    made["summary"] |= {"thickness": float("nan"), "radius_attacked_median": float("inf")}
    made["shown"][0]["probability"] = float("nan")
    made["rows"]["first_flip"][0] = float("nan")
    assert "nan" not in visible(page_text([made])).lower().replace("finance", "")


def test_odd_values_in_a_file_of_the_right_form_do_not_break_the_page(tmp_path):
    made = tabular()
    made["names"][0] = "half a \ud800 pair"
    made["summary"]["thickness"] = -1e300
    made["rows"]["thickness"][3] = 1e300
    made["rows"]["first_flip"][3] = -1e300
    made["shown"][0] |= {"index": -1, "kind": "", "target": 77, "label": 9}
    page([made], tmp_path / "page.html")
    text = visible((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "half a ? pair" in text
    assert "in truth: class 9" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [[], "audit.json", None])
def test_what_is_no_list_of_audits_is_refused(value, tmp_path):
    with pytest.raises(InputError, match="page: audits must be"):
        page(value, tmp_path / "page.html")


def test_a_page_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    replace = os.replace

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InputError, match=r"page: path must be .* \(No space left on device\)\."):
        page([tabular()], path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    monkeypatch.setattr(os, "replace", replace)
    page([tabular()], path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(folder, os.W_OK):  # root writes anywhere

        def refuse(file, mode="r", **rest):
            if mode == "xb":
                raise PermissionError(13, "Permission denied")
            return opened(file, mode, **rest)

        opened = open
        monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(InputError) as caught:
        page([tabular()], folder / "page.html")
    monkeypatch.undo()
    folder.chmod(stat.S_IRWXU)
    assert str(caught.value) == (
        f"page: path must be a file that can be written, got {folder / 'page.html'}"
        " (Permission denied)."
    )
    assert list(folder.iterdir()) == []


def test_the_folder_is_made(tmp_path):
    page([tabular()], tmp_path / "new" / "deep" / "page.html")
    assert (tmp_path / "new" / "deep" / "page.html").exists()


@pytest.mark.parametrize("place", ["file/page.html", "folder"])
def test_a_path_that_is_no_file(place, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="page: path must be a file that can be written, got "):
        page([tabular()], tmp_path / place)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]
