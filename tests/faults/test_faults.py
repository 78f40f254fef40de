"""What goes wrong around us: no room, no permission, no memory, a clock that jumps.

Kills, two processes in one folder and broken files are tested where they belong: see docs/trust.md.
"""

import os
import resource
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

import engine_work
from audits import tabular
from nets import make, mlp, randn
from r2et import audit
from r2et.audit.checkpoint import AuditCheckpoint
from r2et.bench.claim import Claim, save_claims
from r2et.bench.record import Records
from r2et.engine import engine
from r2et.errors import InputError
from r2et.models import load_model
from r2et.region import L2
from r2et.report import page
from r2et.train import fit
from training_data import small

# A folder in which the system lets nobody make a file, not even root.
NOBODYS = Path("/sys/kernel")
CLAIM = Claim("open", "adult", "mine", {}, (), {}, {"by": "x" * 9000})


@contextmanager
def room_for(size):
    """Files may not grow beyond this many bytes: a disk that is full, to whoever writes."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        signal.signal(signal.SIGXFSZ, before)


WRITERS = {
    "training": lambda place: fit(None, small(), "vanilla", out=place, epochs=1, progress=False),
    "audit": lambda place: audited(partial=place / "audit.partial"),
    "result": lambda place: audited().to_json(place / "audit.json"),
    "page": lambda place: page([tabular()], place / "page.html"),
    "claim": lambda place: save_claims([CLAIM], place),
    "records": lambda place: Records(place),
}


def audited(**settings):
    x = randn(4, 6)
    return audit(make(mlp), x, k=2, region=L2(0.1), budget="fast", rows=4, **settings)


@pytest.mark.usefixtures("short_attacks")
@pytest.mark.parametrize("name", [n for n in WRITERS if n != "records"])
def test_a_full_disk_is_one_sentence_and_leaves_no_part(name, tmp_path):
    with room_for(200), pytest.raises(InputError, match=r"must be .*, got .*File too large"):
        WRITERS[name](tmp_path)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]
    assert [path.name for path in left if path.name.endswith(".part")] == []
    WRITERS[name](tmp_path)  # with room it goes on


@pytest.mark.parametrize("size", [2000, 5000, 20000])
def test_a_training_that_runs_out_of_room_at_any_file(size, tmp_path):
    """Its checkpoint, its rows or its network is the first that does not fit."""
    with room_for(size), pytest.raises(InputError, match="File too large"):
        WRITERS["training"](tmp_path)
    assert not (tmp_path / "model.json").exists()
    WRITERS["training"](tmp_path)
    load_model(tmp_path)


@pytest.mark.usefixtures("short_attacks")
@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_nobody_may_write_is_one_sentence(name):
    with pytest.raises(OSError, match=r"Permission|permitted|Read-only"):
        os.mkdir(NOBODYS / "r2et")
    with pytest.raises(InputError, match=r"must be .*, got .*(ermi|Read-only)"):
        WRITERS[name](NOBODYS / "r2et")


def test_a_device_is_no_file():
    """/dev/full takes nothing, and gives zeros for ever."""
    with pytest.raises(InputError, match="partial must be a file, got /dev/full, which is none"):
        AuditCheckpoint("/dev/full", {"weights": "ab"})


@pytest.mark.usefixtures("short_attacks")
@pytest.mark.parametrize("jump", [-86400.0, 86400.0])
def test_a_clock_that_jumps_changes_no_figure(jump, tmp_path, monkeypatch):
    plain = audited()
    trained = fit(None, small(), "r2et", epochs=2, progress=False).model.state_dict()
    now, calls = time.time(), [0]

    def jumping():
        calls[0] += 1
        return now + jump * calls[0]

    monkeypatch.setattr(time, "time", jumping)
    moved = audited(partial=tmp_path / "a.partial")
    again = fit(None, small(), "r2et", out=tmp_path / "m", epochs=2, progress=False)
    assert calls[0] > 0
    assert moved.summary() == plain.summary()
    assert moved.result["seconds"] >= 0
    assert again.record["seconds"] >= 0
    for name, value in again.model.state_dict().items():
        assert torch.equal(value, trained[name])


def test_a_worker_without_memory_says_so_and_the_rest_goes_on():
    """An allocation that is refused is an error with its name; the worker stays alive."""
    with engine("processes", workers=1) as run:
        with pytest.raises(MemoryError):
            list(run(engine_work.hungry, [1]))
        assert dict(run(engine_work.square, range(3))) == {0: 0, 1: 1, 2: 4}
