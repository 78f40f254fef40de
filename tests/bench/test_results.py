"""docs/results.md says what the committed records say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from r2et.bench.archive import pack, unpack
from r2et.bench.cases import CASES
from r2et.bench.claim import load_claims
from r2et.bench.figures import PICTURES
from r2et.bench.panel import load_panels
from r2et.bench.record import Record, Records
from r2et.bench.results import results
from r2et.bench.spec import gathered
from r2et.bench.tables import ALIASES, TABLE_NAMES, spec
from r2et.bench.verdict import as_large, at_most, both_above, no_worse, same_sign, verdicts

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "records"
NAMES = [name for name in (*TABLE_NAMES, "leaderboard") if name not in ALIASES]


@pytest.fixture(scope="module")
def archive():
    return unpack(RECORDS / "runs")


def test_the_page_is_what_the_records_make():
    text = results(RECORDS, "records", (ROOT / "tools" / "why.md").read_text())
    assert (ROOT / "docs" / "results.md").read_text() == text


def test_the_check_sees_a_page_that_is_out_of_date(tmp_path):
    for part in ("tools/results.py", "tools/why.md", "docs/results.md"):
        (tmp_path / part).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
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
    for panel in load_panels(RECORDS, name):
        assert panel.records
        assert all(r in archive for r in panel.records)
        if name in ("figure2", "figure4"):
            measured = archive[panel.records[0]].measured
            assert all(measured[key] == value for key, value in panel.values.items())


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


def test_verdicts_are_of_the_numbers():
    assert [same_sign(1, 2), same_sign(1, -2), same_sign(0, 9)] == ["yes", "no", "even"]
    assert [as_large(10, x) for x in (5, 4.9, -5, 21)] == ["yes", "less", "no", "more"]
    assert [both_above(0.5)(0.9, 0.6), both_above(0.5)(0.9, 0.4)] == ["yes", "no"]
    assert [at_most(0.02)(0.1, 0.12), at_most(0.02)(0.1, 0.13)] == ["yes", "no"]
    assert [no_worse(-1)(-0.1, 0.01), no_worse(-1)(-0.1, 0.03)] == ["yes", "no"]
    claims = load_claims(RECORDS, "table1")
    said = "ERAttack: its gain over Vanilla"
    (found,) = (v for v in verdicts(claims) if v.says == said and v.data == "adult")
    of = {c.recipe: 100 * c.numbers["erattack"].mean for c in claims if c.data == "adult"}
    best = max(of[n] for n in ("r2et", "r2et-mm", "r2et-nh", "r2et-mm-nh"))
    assert found.theirs == "+9.9"
    assert found.ours == f"{best - of['vanilla']:+.1f}"
