"""The page's words for inputs, groups and settings; axes whose numbers differ."""

import re

import pytest

from audits import tabular
from r2et.explain import Gradient, SmoothGrad
from r2et.region import L2, Linf
from r2et.report.page import html
from r2et.report.row_tables import calibration, grouped, inputs
from r2et.report.settings_words import explainer, region
from r2et.report.svg import Axes, different, ticks
from r2et.wording import percent, significant


def test_inputs_in_words():
    pairs = dict(inputs(tabular()))
    assert pairs["data"] == "held_out.csv"
    assert pairs["SHA-256 of the data"] == "ab" * 32
    assert pairs["SHA-256 of the weights, of the numbers in memory"] == "cd" * 32
    assert pairs["command"].startswith("r2et audit model")
    assert inputs({}) == []


def test_groups_and_calibration_in_words():
    (table,) = grouped(tabular())
    assert (table["column"], table["outcome"]) == ("housing", "default")
    assert table["lines"][0]["auc"] == ("0.880", "0.780 to 0.980")
    assert table["lines"][1]["auc"] == ("not measured", "")
    drawn = calibration(tabular(), "c")
    assert "In every range" in drawn["sentence"]
    off = tabular()
    off["calibration"][0]["observed_high"] = 0.1
    assert "In 1 of 3 ranges" in calibration(off, "c")["sentence"]
    page = html([tabular()])
    assert "By housing. Predicted and came true: “default”." in page
    assert page.count("held_out.csv") == 2  # its name, and the command


def test_settings_without_code():
    audit = tabular()
    audit["config"] = {
        "region": Linf(0.1, bounds=(0, 1), frozen=[1, 3]).config(),
        "explainer": SmoothGrad(samples=20).config(),
    }
    assert region(audit) == (
        "change of each feature of at most 0.1; every feature from 0 to 1;"
        " fixed: income, late payments"
    )
    assert explainer(audit).startswith("SmoothGrad of the log-odds, absolute values, samples 20")
    audit["config"] = {"region": L2(0.3).config(), "explainer": Gradient().config()}
    audit["settings"] |= {"region": repr(L2(0.3)), "explainer": repr(Gradient())}
    assert region(audit) == "Euclidean length of at most 0.3"
    page = html([audit])
    assert "L2(" not in page
    assert "Gradient(" not in page


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 1e-14), (0.0, 1.0), (1.0, 1.00001), (0.98765, 0.98766), (-3.0, -2.999), (1e6, 1e6 + 1)],
)
def test_numbers_on_an_axis_differ(low, high):
    places = ticks(low, high, 5)
    assert len(set(places)) == len(places) >= 2
    for write in (significant, percent):
        texts = different(places, write)
        assert len(set(texts)) == len(texts)
    axes = Axes(480, 300, (low, high), (low, high))
    axes.grid("x", "y", significant)
    drawn = re.findall(r'class="tick"[^>]*>([^<]*)<', "".join(axes.parts))
    most = [text for text in set(drawn) if drawn.count(text) > 2]
    assert most == []  # each once on either axis
