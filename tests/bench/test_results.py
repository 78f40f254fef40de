"""docs/results.md says what the committed records say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from r2et.bench.archive import pack, replay, unpack
from r2et.bench.case import checked
from r2et.bench.cases import CASES
from r2et.bench.claim import load_claims
from r2et.bench.figures import PICTURES
from r2et.bench.grid import Grid
from r2et.bench.panel import load_panels
from r2et.bench.record import Record, Records
from r2et.bench.results import place, results
from r2et.bench.spec import COARSE, gathered
from r2et.bench.tables import ALIASES, TABLE_NAMES, spec

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "records"
NAMES = [name for name in (*TABLE_NAMES, "leaderboard") if name not in ALIASES]


@pytest.fixture(scope="module")
def archive():
    return unpack(RECORDS / "runs")


def test_the_page_is_what_the_records_make():
    texts = [(ROOT / "tools" / name).read_text() for name in ("summary.md", "why.md")]
    text = results(RECORDS, "records", *texts)
    assert (ROOT / "docs" / "results.md").read_text() == text


def test_the_check_sees_a_page_that_is_out_of_date(tmp_path):
    for part in ("tools/results.py", "docs/results.md"):
        (tmp_path / part).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    for name in ("summary.md", "why.md"):
        (tmp_path / "tools" / name).write_text("")
    (tmp_path / "docs/results.md").write_text("typed by hand")
    command = [sys.executable, str(tmp_path / "tools/results.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "must be made anew" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_in_a_record(name, archive):
    """Each claim's numbers are made anew from the records that it names."""
    claims = load_claims(RECORDS, name)
    assert {claim.data for claim in claims} >= {"adult", "bank", "compas"}
    for claim in claims:
        parts = {part.key: part for part in spec(name, claim.data).parts}
        assert set(parts) == set(claim.numbers)
        for key, some in claim.numbers.items():
            if some.failed is None:
                found = gathered(parts[key], [archive[r] for r in some.records], some.reported)
                assert len(some.seeds) == claim.settings["seeds"]
                assert (found.seeds, found.rows) == (some.seeds, some.rows)
                assert all(archive[r].task["of"]["data"] == claim.data for r in some.records)
                assert all(archive[r].task["of"]["recipe"] == claim.recipe for r in some.records)


@pytest.mark.parametrize("name", PICTURES)
def test_every_panel_names_its_records(name, archive):
    own = place(RECORDS, name)
    records = archive if own == RECORDS else unpack(own / "runs")
    for panel in load_panels(own, name):
        assert panel.records
        assert all(r in records for r in panel.records)
        if name in ("figure2", "figure4"):
            seeds = [records[r] for r in panel.records]
            assert [r.task["of"]["seed"] for r in seeds] == [0, 1, 2]
            for record, told in zip(seeds, panel.values["seeds"], strict=True):
                assert all(record.measured[key] == value for key, value in told.items())


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_is_what_its_plan_makes_of_the_records(name, archive):
    """Choices, thresholds, ties, reasons and durations too: nothing in a claim is typed."""
    for claim in load_claims(RECORDS, name):
        if checked(claim.data):  # or the name of its records needs files that somebody supplies
            grid = Grid.of(claim.settings, claim.data, claim.recipe)
            plan = spec(name, claim.data).plan(grid, claim.data, claim.recipe)
            assert replay(plan, archive).to_json() == claim.to_json()
            assert {*claim.choices, *claim.trained} <= archive.keys()


def test_no_row_is_thick_to_a_point_where_its_top_k_has_changed():
    for panel in load_panels(place(RECORDS, "figure4"), "figure4"):
        for seed in panel.values["seeds"]:
            both = zip(seed["precision_rows"], seed["adversarial_rows"], strict=True)
            assert [thick for kept, thick in both if kept < 1 and thick >= 1] == []


def test_where_thickness_is_an_upper_estimate_it_is_said():
    for claim in load_claims(RECORDS, "table5"):
        assert claim.numbers["thickness"].failed or COARSE in claim.numbers["thickness"].unreliable
        assert COARSE not in claim.numbers["mean_gap"].unreliable
    part = next(p for p in spec("table5", "adult").parts if p.key == "thickness")
    fine = Record({}, {"adversarial": 0.5, "points": 201})
    assert gathered(part, [fine], None).unreliable == ()


def test_links_lead_somewhere():
    text = (ROOT / "docs" / "results.md").read_text()
    links = set(re.findall(r"\]\(([^)#]+)", text))
    assert len(links) > 100
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
    places = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert len(places) > 9
    assert places <= set(re.findall(r'<a id="([^"]+)">', text))


def test_all_recipes_and_three_seeds_of_every_table():
    for name in NAMES:
        for data in ("adult", "bank", "compas"):
            claims = [c for c in load_claims(RECORDS, name) if c.data == data]
            assert {c.recipe for c in claims} == set(CASES[data].candidates)
            assert {c.settings["seeds"] for c in claims} == {3}


def test_no_machine_has_a_name(archive):
    assert all("host" not in record.made for record in archive.values())
    assert len(archive) > 1000


def test_packing_adds_and_replaces(tmp_path):
    settings = {"kind": "clean", "of": {"data": "adult", "recipe": "wd"}}
    for number, names in enumerate((("a", "b"), ("b", "c"))):
        run = Records(tmp_path / str(number))
        for name in names:
            told = {"seconds": 1, "host": "somewhere"}
            why = "a line\u2028and another"
            run.save(Record(settings, {"from": number}, unreliable=(why,), made=told, name=name))
        pack(tmp_path / str(number), tmp_path / "archive")
    assert [p.name for p in (tmp_path / "archive").iterdir()] == ["adult-wd.jsonl"]
    found = unpack(tmp_path / "archive")
    assert {name: r.measured["from"] for name, r in found.items()} == {"a": 0, "b": 1, "c": 1}
    assert found["a"].made == {"seconds": 1}
