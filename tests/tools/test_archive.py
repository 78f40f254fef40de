"""What is kept with the pages: everything comes back, and the same content is the same bytes."""

import json

import pytest

from bench_run import GRID, main
from r2et.bench.claim import load_claims
from r2et.bench.grid import Grid
from r2et.bench.measure_task import MeasureTask
from r2et.bench.paper_tables import table_spec
from r2et.bench.record import Record, Records
from r2et.bench.run import Runner, run_figure
from r2et.bench.train_task import TrainTask
from r2et.config import config_key
from result_pages.archive import Archive, archives


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder that `r2et bench` left."""
    folder = tmp_path_factory.mktemp("run")
    main(folder)
    run_figure("figure8", GRID, Runner(folder, "serial"))
    return folder


def test_a_run_is_kept_whole(run, tmp_path):
    archive = Archive()
    archive.add_run(run)
    archive.write(tmp_path / "mine.jsonl.xz")
    (again,) = archives(tmp_path).values()
    assert again == archive
    assert {f"{name}.json" for name in again.records} == {
        p.name for p in (run / "records").iterdir()
    }
    assert again.claims_of("table9") == load_claims(run / "claims", "table9")
    assert [panel.recipe for panel in again.panels_of("figure8")] == ["vanilla", "wd"]
    assert all("host" not in record.made for record in again.records.values())
    again.write(tmp_path / "again.jsonl.xz")
    assert (tmp_path / "again.jsonl.xz").read_bytes() == (tmp_path / "mine.jsonl.xz").read_bytes()


def test_claims_are_made_anew_from_their_records(run):
    archive = Archive()
    archive.add_run(run)

    def plan(claim):
        grid = Grid.of_claim(claim.settings, claim.data, claim.recipe)
        return table_spec("table9", claim.data).plan(grid, claim.data, claim.recipe)

    for claim in archive.claims_of("table9"):
        assert archive.replay(plan(claim)).to_json() == claim.to_json()
    del archive.records[claim.numbers["dffot"].records[0]]
    with pytest.raises(KeyError, match="faithfulness"):
        archive.replay(plan(claim))


def test_what_comes_later_replaces_what_has_its_name(tmp_path):
    archive = Archive()
    for number, names in enumerate((("a", "b"), ("b", "c"))):
        run = Records(tmp_path / str(number))
        for name in names:
            made = {"seconds": 1, "host": "somewhere"}
            why = "a line\u2028and another"
            config = {"name": "clean", "title": name}
            record = Record(config, {"from": number}, unreliable=(why,), made=made)
            run.save(Record(**{**vars(record), "name": f"{name}-{config_key(config)}"}))
        archive.add_run(tmp_path / str(number))
    archive.write(tmp_path / "x.jsonl.xz")
    records = Archive.read(tmp_path / "x.jsonl.xz").records
    measured = {name[0]: record.measured["from"] for name, record in records.items()}
    assert measured == {"a": 0, "b": 1, "c": 1}
    assert {json.dumps(record.made) for record in records.values()} == {'{"seconds": 1}'}


def test_a_record_of_an_earlier_version_counts_where_there_is_no_newer_one():
    task = MeasureTask(TrainTask("adult", "vanilla"), "thickness")
    config = task.config()
    assert config["version"] == 2
    names = [f"{task.title}-{config_key({**config, 'version': v})}" for v in (1, 2)]
    assert names[1] == task.name
    one, two = (Record({**config, "version": v}, name=names[v - 1]) for v in (1, 2))
    assert Archive({one.name: one}).find(task) is one
    assert Archive({one.name: one, two.name: two}).find(task) is two
    with pytest.raises(KeyError, match=task.name):
        Archive().find(task)


def test_there_is_nothing_in_a_file_that_is_not_there(tmp_path):
    assert Archive.read(tmp_path / "none.jsonl.xz") == Archive()
