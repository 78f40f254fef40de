"""docs/results.md and docs/results say what the committed records of `r2et bench` say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from r2et.bench.benchmark_config import has_checksums
from r2et.bench.figure_measurements import POINTS
from r2et.bench.figure_plans import FIGURES
from r2et.bench.grid import Grid
from r2et.bench.paper_tables import table_spec
from r2et.bench.papers import paper_tables
from r2et.bench.papers_regime import LENGTHS
from r2et.bench.regime_searches import nearest_length
from r2et.bench.registry import BENCHMARKS
from r2et.bench.table_plan import COARSE, gathered
from r2et.config import config_key
from result_pages.archive import archives, merged
from result_pages.first_screen import EIGHT, GROUPS, KEYS, REGIMES, screen_rows
from result_pages.page import TABLES, results
from result_pages.verdicts import verdicts

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "records"
DATASETS = ("adult", "bank", "compas")
LEADS = "ERAttack: a variant of R2ET leads the other methods"


@pytest.fixture(scope="module")
def runs():
    kept = archives(RECORDS)
    assert set(kept) == {"tables", "steps", "papers"}
    return {name: kept[name] for name in ("tables", "papers", "steps")}


@pytest.fixture(scope="module")
def tables(runs):
    return runs["tables"]


@pytest.fixture(scope="module")
def pages(runs):
    texts = [(ROOT / "tools" / name).read_text() for name in ("summary.md", "why.md")]
    return results(runs, *texts)


def test_the_pages_are_what_the_records_make(pages):
    stored = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs/results").glob("*.md")}
    assert {str(path) for path in stored} == set(pages) - {"results.md"}
    for name, text in pages.items():
        assert (ROOT / "docs" / name).read_text() == text, name


def test_the_first_page_is_short_and_has_all_eight_datasets(pages):
    lines = pages["results.md"].splitlines()
    assert len(lines) < 300
    titles = [line for line in lines if line.startswith("### ")]
    assert len(titles) == len(EIGHT) == 8
    for paper, title, _ in EIGHT:
        assert any(line.startswith(f"### {title}") for line in titles)
        assert paper in paper_tables()["table1"]["vanilla"]


def test_every_cell_of_the_first_screen_is_a_claims(runs):
    """Each number by hand from the seeds of its claim; where there is no claim, "not run"."""
    claims, _ = merged(runs.values())
    shown = 0
    for paper, _, data in EIGHT:
        own = {
            r: [c for c in claims.values() if c.table == "table1" and c.regime == r]
            for r in REGIMES
        }
        for row in screen_rows(paper, data, own):
            for i, regime in enumerate(REGIMES):
                cells = row.cells[1 + 5 * i : 6 + 5 * i]
                match = re.fullmatch(r"\[([\d.]+)\]\((.*)\)°? `(.*)`", cells[0])
                if match is None:
                    ran = [
                        c for c in own[regime] if c.data == data and c.recipe in GROUPS[row.group]
                    ]
                    assert (cells[0] == "not run") == (not ran), (data, row.group, regime)
                    continue
                (claim,) = (c for c in own[regime] if (c.data, c.recipe) == (data, match[3]))
                for cell, key in zip((match[1], *cells[1:]), KEYS, strict=True):
                    seeds = claim.numbers[key].seeds
                    if cell == "-":
                        assert not seeds
                        continue
                    digits = {"cauc": 3, "sets": 0}.get(key, 1)
                    value = sum(seeds) / len(seeds) * (1 if key in ("cauc", "sets") else 100)
                    assert cell == f"{value:.{digits}f}"
                    shown += 1
                assert (
                    f'<a id="{match[2].partition("#")[2]}"></a>'
                    in (ROOT / "docs/results/table1.md").read_text()
                )
    assert shown > 50


def test_the_check_sees_a_page_that_is_out_of_date(tmp_path):
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    for name in ("summary.md", "why.md"):
        (tmp_path / "tools" / name).write_text("")
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs/results", tmp_path / "docs/results")
    (tmp_path / "docs/results.md").write_text("typed by hand")
    command = [sys.executable, str(tmp_path / "tools/results.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "must be made anew" in done.stderr


def test_all_that_is_kept_is_small():
    files = list(RECORDS.iterdir())
    assert len(files) < 20
    assert sum(file.stat().st_size for file in files) < 3e6


def test_every_record_is_named_by_its_config(runs):
    for archive in runs.values():
        for name, record in archive.records.items():
            assert name.endswith(config_key(record.config))
            assert "host" not in record.made
    assert len(runs["tables"].records) > 1000


def of_both(runs, name):
    """Claims of a table in the long regime and in the papers', each with its archive."""
    short = runs["papers"].claims_of(f"{name}-papers")
    both = [(runs["tables"], claim) for claim in runs["tables"].claims_of(name)]
    return both + [(runs["papers"], claim) for claim in short]


@pytest.mark.parametrize("name", [*TABLES, "nearest"])
def test_every_number_is_in_a_record(name, runs):
    """Each claim's numbers are made anew from the records that it names."""
    every = of_both(runs, name)
    if name != "nearest":
        assert {claim.data for _, claim in every} >= set(DATASETS)
    for tables, claim in every:
        columns = {column.key: column for column in table_spec(name, claim.data).columns}
        assert set(columns) == set(claim.numbers)
        for key, values in claim.numbers.items():
            if values.failed is None:
                records = [tables.records[r] for r in values.records]
                again = gathered(columns[key], records, values.reported)
                assert len(values.seeds) == claim.settings["seeds"]
                assert (again.seeds, again.rows) == (values.seeds, values.rows)
                trained = [record.config["of"] for record in records]
                assert {of["data"] for of in trained} == {claim.data}
                assert {of["recipe"] for of in trained} == {claim.recipe}


def test_the_papers_regime_is_the_one_that_was_searched_for(runs):
    """The length of training that the registry has is what the recorded search says."""
    panels = {panel.data: panel for panel in runs["papers"].panels_of("length-search")}
    assert set(panels) >= set(DATASETS)
    for data, panel in panels.items():
        assert panel.values["nearest"] == nearest_length(panel.values) == LENGTHS[data]
        assert len(panel.values["er_last"][0]) == 3
    for claim in runs["papers"].claims.values():
        if claim.regime == "long":  # of tables it is a run of its own
            assert claim.data not in DATASETS
            continue
        names = [r for values in claim.numbers.values() for r in values.records]
        for record in (runs["papers"].records[name] for name in names):
            assert record.config["of"]["regime"] == "papers"
            if record.config["name"] in ("er", "mse"):
                # Of scans the last point has nearly always another prediction.
                kept = "last_kept" if claim.data == "oct-kermany-64" else "last"
                assert record.config["attack"]["keep"] == kept
    assert not runs["papers"].records.keys() & runs["tables"].records.keys()


@pytest.mark.parametrize("name", [*TABLES, "nearest"])
def test_every_claim_is_what_its_plan_makes_of_the_records(name, runs):
    """Choices, thresholds, ties, reasons and durations too: nothing in a claim is typed."""
    for tables, claim in of_both(runs, name):
        if has_checksums(claim.data):  # or the names of its records need files somebody supplies
            grid = Grid.of_claim(claim.settings, claim.data, claim.recipe)
            plan = table_spec(name, claim.data).plan(grid, claim.data, claim.recipe)
            assert tables.replay(plan).to_json() == claim.to_json()
            assert {*claim.choices, *claim.trained} <= tables.records.keys()


@pytest.mark.parametrize("name", FIGURES)
def test_every_panel_names_its_records(name, runs):
    for archive in runs.values():
        for panel in archive.panels_of(name):
            assert panel.records
            assert all(r in archive.records for r in panel.records)
            if name in ("figure2", "figure4"):
                seeds = [archive.records[r] for r in panel.records]
                assert [r.config["of"]["seed"] for r in seeds] == [0, 1, 2]
                for record, drawn in zip(seeds, panel.values["seeds"], strict=True):
                    assert all(record.measured[key] == value for key, value in drawn.items())


def test_no_row_is_thick_to_a_point_where_its_top_k_has_changed(runs):
    panels = runs["steps"].panels_of("figure4")
    assert panels
    for panel in panels:
        for seed in panel.values["seeds"]:
            both = zip(seed["precision_rows"], seed["adversarial_rows"], strict=True)
            assert [thick for kept, thick in both if kept < 1 and thick >= 1] == []


def test_where_thickness_is_an_upper_estimate_it_is_said(tables):
    coarse = COARSE.format(10)
    for claim in tables.claims_of("table5"):
        assert claim.numbers["thickness"].failed or coarse in claim.numbers["thickness"].unreliable
        assert coarse not in claim.numbers["mean_gap"].unreliable
    assert POINTS > 10


def test_links_lead_somewhere(pages):
    links = 0
    for name, text in pages.items():
        here = ROOT / "docs" / name
        for link in set(re.findall(r"\]\(([^)]+)\)", text)):
            file, _, place = link.partition("#")
            there = (here.parent / file).resolve() if file else here
            assert there.exists(), (name, link)
            if place and "/results/" in str(there):
                assert f'<a id="{place}"></a>' in there.read_text(), (name, link)
            links += 1
    assert links > 30


def test_all_recipes_and_three_seeds_of_every_table(tables):
    for name in TABLES:
        for data in DATASETS:
            claims = [c for c in tables.claims_of(name) if c.data == data]
            assert {c.recipe for c in claims} == set(BENCHMARKS[data].candidates)
            assert {c.settings["seeds"] for c in claims} == {3}


def test_verdicts_of_the_records(tables):
    """The papers' side from their table alone; ours from the claims' seeds."""
    claims = tables.claims_of("table1")
    variants = ("r2et", "r2et-mm", "r2et-nh", "r2et-mm-nh")
    others = ("wd", "sp", "est-h", "at", "exact-h", "ssr", "cl")
    for data in DATASETS:
        rows = paper_tables()["table1"].items()
        theirs = {name: row[data][0] for name, row in rows if data in row}
        own = {
            c.recipe: 100 * sum(c.numbers["erattack"].seeds) / 3
            for c in claims
            if c.data == data and c.numbers["erattack"].seeds and not c.unreliable
        }
        (verdict,) = (v for v in verdicts(claims) if v.says == LEADS and v.data == data)
        for column, text in ((theirs, verdict.theirs), (own, verdict.ours)):
            best = [max(column[n] for n in some if n in column) for some in (variants, others)]
            assert text.startswith(f"{best[0]:.1f} `")
            assert f", {best[1]:.1f} `" in text
    integrated = [v for v in verdicts(tables.claims_of("table2")) if v.says.startswith("IG")]
    assert integrated == []
