"""The first screen of results: who is shown, what is said where there is nothing."""

from r2et.bench.claim import Claim, SeedValues
from result_pages.first_screen import KEYS, dataset_tables, overview, screen_rows


def claim(recipe, er, data="adult", regime="long", below=(), **more):
    numbers = {key: SeedValues() for key in KEYS}
    if er is not None:
        numbers["erattack"] = SeedValues((er / 100,))
    numbers |= {key: SeedValues((value,)) for key, value in more.items()}
    settings = {"seeds": 1} | ({} if regime == "long" else {"regime": regime})
    return Claim("table1", data, recipe, {}, tuple(below), numbers, settings)


def rows(*claims):
    own = {r: [c for c in claims if c.regime == r] for r in ("papers", "long")}
    return {row.group: row.cells for row in screen_rows("adult", "adult", own)}


def test_the_best_of_each_group_that_is_compared():
    shown = rows(
        claim("vanilla", 60, cauc=0.8812, sets=12, proved=0.0, strongattack=0.255),
        claim("r2et", 70),
        claim("r2et-mm", 90, below=["too low"]),
        claim("r2et-nh", 71, regime="papers"),
    )
    link = "results/table1.md#table1-adult"
    assert shown["Vanilla"][0] == "87.6 `vanilla`"
    assert shown["Vanilla"][1] == "not run"
    assert shown["Vanilla"][6:] == (f"[60.0]({link}) `vanilla`", "25.5", "0.0", "0.881", "12")
    assert shown["R2ET, best variant"][6] == f"[70.0]({link}) `r2et`"
    theirs = "results/table1.md#table1-papers-adult"
    assert shown["R2ET, best variant"][1] == f"[71.0]({theirs}) `r2et-nh`"
    assert "linear" not in shown  # in neither regime, nor in the papers


def test_of_equal_ones_the_first_named():
    shown = rows(claim("r2et-mm", 70), claim("r2et", 70))
    assert shown["R2ET, best variant"][6].endswith("`r2et`")


def test_what_is_not_compared_is_marked_and_what_failed_is_said():
    link = "results/table1.md#table1-adult"
    assert (
        rows(claim("r2et", 70, below=["low"]))["R2ET, best variant"][6] == f"[70.0]({link})° `r2et`"
    )
    assert rows(claim("linear", None))["linear"][6] == f"[no number]({link}), `linear`"


def test_all_eight_have_a_table_run_or_not():
    text = "\n".join(dataset_tables({"papers": [], "long": [claim("vanilla", 60)]}))
    assert text.count("### ") == 8
    assert "### ROCT, for which `oct-kermany-64` stands in\n" in text
    assert "### Adult (1 seed)\n" in text
    assert "| Vanilla | 59.0 `vanilla` | not run |  |  |  |  | not run |  |  |  |  |" in text


def test_the_overview_has_a_line_for_each_of_the_eight():
    own = {
        "papers": [
            claim("vanilla", 61, regime="papers", cauc=0.87, strongattack=0.3),
            claim("r2et", 72, regime="papers", below=["too low"], cauc=0.8),
        ],
        "long": [claim("vanilla", 60, proved=0.0), claim("certified", 99, proved=0.985)],
    }
    head, *lines = overview(own)
    columns = head.splitlines()[0].count("|")
    assert [line.count("|") for line in lines if line] == [columns] * 8
    cells = [cell.strip() for cell in lines[0].split("|")[1:-1]]
    assert cells[:3] == ["[Adult](#adult)", "87.6, 97.5", "61.0, 72.0°, -"]
    assert cells[3:5] == ["30.0, -, -", "0.870, 0.800, -"]
    assert cells[5:] == ["60.0, -, 99.0", "", "", "0.0, -, 98.5"]
    empty = [cell.strip() for cell in lines[7].split("|")[1:-1]]
    assert empty == ["[BP](#adhd-frontal)", "69.4, 73.8", *[""] * 7]
