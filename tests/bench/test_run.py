"""The benchmark: the same records from every engine, after every kill, and no task twice."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import bench_run
import r2et
from bench_run import main
from r2et.bench.claim import load_claims
from r2et.bench.grid import Grid
from r2et.bench.record import OTHERWISE
from r2et.bench.run import Runner, opened, run_table
from r2et.errors import InputError
from r2et.lock import reserved

SCRIPT = Path(bench_run.__file__)


def compared(folder: Path) -> dict[str, dict]:
    """Every record but for the part that differs from run to run."""
    records = {}
    for path in sorted((folder / "records").glob("*.json")):
        stored = json.loads(path.read_text())
        made = stored.pop("made")
        assert {"seconds", "torch", "host", "date"} <= made.keys()
        records[path.name] = stored
    return records


def times(folder: Path) -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in (folder / "records").glob("*.json")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed run in this process."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, main(folder)


def test_records_and_claims(whole):
    folder, outcome = whole
    records = compared(folder)
    kinds = [stored["config"]["name"] for stored in records.values()]
    # wd: three candidates; the chosen one and vanilla with a second seed
    assert kinds.count("train") == 1 + 3 + 2
    assert kinds.count("validation") == 4
    assert kinds.count("choice") == 1
    assert kinds.count("clean") == kinds.count("faithfulness") == 4
    assert len(list((folder / "models").iterdir())) == kinds.count("train")
    faithful = next(r for r in records.values() if r["config"]["name"] == "faithfulness")
    assert faithful["reported"]["table"] == "table9"
    (table,) = outcome.tables
    for claim in load_claims(folder / "claims", "table9"):
        for name, number in claim.numbers.items():
            assert len(number.seeds) == 2, name
            for value, record in zip(number.seeds, number.records, strict=True):
                assert (
                    value
                    in json.loads((folder / "records" / f"{record}.json").read_text())[
                        "measured"
                    ].values()
                )
    assert [row.recipe for row in table.rows] == ["vanilla", "wd"]
    assert table.rows[0].numbers[0].reported == "0.24"


def test_a_second_run_does_nothing(whole):
    folder, first = whole
    before = times(folder)
    again = main(folder)
    assert times(folder) == before
    assert [t.rows for t in again.tables] == [t.rows for t in first.tables]


def test_only_what_is_missing(whole, tmp_path):
    folder, _ = whole
    copy = copied(folder, tmp_path)
    gone = sorted((copy / "records").glob("*faithfulness*"))[:2]
    for path in gone:
        path.unlink()
    before = times(copy)
    main(copy)
    after = times(copy)
    assert {n for n in after if after[n] != before.get(n)} == {p.name for p in gone}
    assert compared(copy) == compared(folder)


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to / "copy"))


def start(folder: Path, *more: str) -> subprocess.Popen:
    path = {**os.environ, "PYTHONPATH": str(Path(r2et.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(folder), "processes", *more]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=path, stdout=pipe, stderr=pipe, text=True)


def wait_for(folder: Path, count: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while len(times(folder)) < count:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    workers = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            line = (path / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid and "spawn_main" in line:
            workers.append(int(path.name))
    return workers


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_killed_driver_and_killed_worker(whole, tmp_path):
    expected = compared(whole[0])
    out = tmp_path / "out"
    (out / "records").mkdir(parents=True)
    driver = start(out)
    wait_for(out, 4, driver)
    driver.kill()
    driver.communicate()
    left = times(out)
    assert 4 <= len(left) < len(expected)
    driver = start(out)
    wait_for(out, len(left) + 3, driver)
    workers = children(driver.pid)
    assert workers
    os.kill(workers[0], signal.SIGKILL)
    output, err = driver.communicate(timeout=120)
    assert driver.returncode == 0, err
    assert "finished" in output
    assert compared(out) == expected
    after = times(out)
    assert all(after[name] == stamp for name, stamp in left.items())  # none done twice
    assert not list(out.glob("*/.*.part"))


@pytest.mark.slow
def test_two_ray_nodes_give_the_same_records(whole, tmp_path):
    pytest.importorskip("ray", exc_type=ImportError)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        main(tmp_path, "ray", cluster.address)
    finally:
        cluster.shutdown()
    assert compared(tmp_path) == compared(whole[0])


def test_what_is_no_record_is_set_aside(whole, tmp_path):
    copy = copied(whole[0], tmp_path)
    names = sorted(p.name for p in (copy / "records").glob("*.json"))
    half, other, swapped = (copy / "records" / n for n in names[:3])
    text = half.read_text()
    half.write_text(text[: len(text) // 2])
    other.write_text('{"format": "something else"}')
    swapped.write_text((copy / "records" / names[3]).read_text())
    outcome = main(copy)
    notes = "\n".join(outcome.notes)
    assert f"{half} was set aside as {half.name}.aside: half written or not JSON." in notes
    assert f"{other.name}.aside: its format is not r2et-bench/2." in notes
    assert f"{swapped.name}.aside: it is of another config than its name says." in notes
    assert half.with_name(half.name + ".aside").read_text() == text[: len(text) // 2]
    assert compared(copy) == compared(whole[0])


def test_a_copy_and_a_folder_are_set_aside_and_told_at_once(whole, tmp_path):
    """Also where the run then ends in an error."""
    copy = copied(whole[0], tmp_path)
    first = min((copy / "records").glob("*.json"))
    twin, folder = (first.with_name(name) for name in ("other-name.json", "x.json"))
    twin.write_text(first.read_text())
    folder.mkdir()
    heard = []
    with pytest.raises(ZeroDivisionError), opened(copy, heard.append) as records:
        1 / ("other-name" in {record.name for record in records.all()})
    assert heard == [
        f"bench: {twin} was set aside as {twin.name}.aside: {OTHERWISE}.",
        f"bench: {folder} was set aside as {folder.name}.aside: it is a folder.",
    ]
    assert twin.with_name("other-name.json.aside").read_text() == first.read_text()
    main(copy)
    assert compared(copy) == compared(whole[0])


def test_a_record_that_cannot_be_read(whole, tmp_path, monkeypatch):
    copy = copied(whole[0], tmp_path)

    def locked(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("r2et.bench.record.parse", locked)
    sentence = r"bench: records must be files that can be read, got .*json \(Permission denied\)\."
    with pytest.raises(InputError, match=sentence):
        main(copy)


def test_fewer_rows_make_no_other_record_of_what_takes_all(whole, tmp_path):
    """Accuracy is that of all test rows, whatever is attacked."""
    copy = copied(whole[0], tmp_path)
    before = {n for n in times(copy) if "-vanilla-clean-" in n}
    main(copy, grid=replace(bench_run.GRID, rows=4, recipes=("vanilla",)))
    assert {n for n in times(copy) if "-vanilla-clean-" in n} == before
    assert "rows" not in compared(copy)[min(before)]["config"]


def test_a_record_says_on_which_cpu_it_was_made(whole):
    for path in (whole[0] / "records").glob("*.json"):
        made = json.loads(path.read_text())["made"]
        assert made["cpu"].endswith(torch.backends.cpu.get_cpu_capability())
    claim = load_claims(whole[0] / "claims", "table9")[0]
    assert claim.made["cpu"] == made["cpu"]


def test_a_claim_counts_all_that_it_took(whole):
    """Its trainings, candidates and choice; Vanilla's trainings are in Vanilla's own row."""
    folder, _ = whole
    seconds = {p.stem: json.loads(p.read_text())["made"]["seconds"] for p in records_of(folder)}
    claims = {c.recipe: c for c in load_claims(folder / "claims", "table9")}
    for recipe, claim in claims.items():
        own = sum(s for name, s in seconds.items() if name.startswith(f"adult-{recipe}-"))
        other = sum(s for n, s in seconds.items() if n.startswith("adult-vanilla-validation"))
        own -= other if recipe == "vanilla" else 0
        assert claim.made["seconds"] == pytest.approx(own, abs=0.11)
    assert set(claims["wd"].candidates) == {"scratch"}
    assert len(claims["wd"].candidates["scratch"]) == 3
    assert all((folder / "records" / f"{n}.json").exists() for n in claims["wd"].choices)
    assert len(claims["wd"].trained) == 4


def records_of(folder):
    return list((folder / "records").glob("*.json"))


def test_a_broken_network_is_trained_again(whole, tmp_path):
    copy = copied(whole[0], tmp_path)
    for path in (copy / "records").glob("*vanilla-clean*"):
        path.unlink()  # or nobody would ask for the network
    name = next(p.stem for p in (copy / "records").glob("*vanilla-train*"))
    weights = copy / "models" / f"{name}.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1])
    assert "its network is not the one that it names" in main(copy).notes[0]
    assert weights.read_bytes() == content
    assert compared(copy) == compared(whole[0])


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("r2et.bench.record.write", full)
    grid = Grid(("adult",), ("vanilla",), seeds=1, epochs=1, rows=8, steps=5)
    with pytest.raises(InputError, match=r"bench: out must be .* to write in, got .*No space"):
        main(tmp_path, grid=grid)


def test_one_run_at_a_time_in_a_folder(tmp_path):
    with reserved(tmp_path / ".running"), pytest.raises(InputError, match="another run is writing"):
        main(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="bench: out must be a folder, got"):
        main(tmp_path / "file")


def test_a_run_that_is_refused_touches_nothing(tmp_path):
    """What the other run is writing at the moment stays."""
    written = [tmp_path / "records" / ".a.json.1.part", tmp_path / "claims" / ".b.json.2.part"]
    for part in written:
        part.parent.mkdir()
        part.write_text("half")
    with reserved(tmp_path / ".running"), pytest.raises(InputError, match="another run is writing"):
        main(tmp_path)
    assert all(part.exists() for part in written)
    main(tmp_path, grid=Grid(("adult",), ("vanilla",), seeds=1, epochs=1, rows=8, steps=5))
    assert not any(part.exists() for part in written)


def test_folders_that_cannot_be_used(tmp_path):
    (tmp_path / ".running").mkdir()
    with pytest.raises(
        InputError, match=r"bench: out must be a folder to write in, got .*directory"
    ):
        main(tmp_path)
    with pytest.raises(InputError, match="bench: out must be a folder, got"):
        main("a\0b")
    with pytest.raises(InputError, match="bench: out must be a folder, got nothing"):
        main("")


def test_half_a_row_replaces_no_whole_one(whole, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(whole[0], copy)
    before = {p.name: p.read_text() for p in (copy / "claims" / "table9").iterdir()}
    for path in (copy / "records").glob("*-faithfulness-*"):
        path.unlink()
    outcome = run_table("table9", bench_run.GRID, Runner(copy, "here", budget=-1.0))
    assert {p.name: p.read_text() for p in (copy / "claims" / "table9").iterdir()} == before
    table = (copy / "table9.md").read_text()
    assert table == (whole[0] / "table9.md").read_text()  # shown as they were
    sentence = "bench: 2 of 2 rows of table9 are not whole: the time was up, or a worker died; "
    assert outcome.notes == [f"{sentence}the same command goes on with them."]
    fewer = tmp_path / "fewer"
    shutil.copytree(whole[0], fewer)
    run_table("table9", replace(bench_run.GRID, seeds=1), Runner(fewer, "here"))
    assert {p.name: p.read_text() for p in (fewer / "claims" / "table9").iterdir()} == before


def test_a_cell_that_cannot_be_computed_says_why(tmp_path):
    grid = Grid(("adult",), ("vanilla", "at"), seeds=1, epochs=1, rows=8, steps=5)
    outcome = main(tmp_path, grid=grid, name="table8")
    at = outcome.tables[0].rows[1]
    assert at.numbers[0].text
    text = (tmp_path / "table8.md").read_text()
    assert re.search(r"\| `at` \|", text)
    lost = main(
        tmp_path, grid=Grid(("adult",), ("sp",), seeds=1, epochs=1, rows=8, steps=5), name="table8"
    )
    number = lost.tables[0].rows[0].numbers[1]
    assert number.why == "softplus changes the network, so nothing is retrained"
    assert (
        f"sp retrained, sp cAUC, retrained: {number.why}." in (tmp_path / "table8.md").read_text()
    )
