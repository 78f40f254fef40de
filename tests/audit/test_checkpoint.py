"""What a stopped audit leaves: whole lines, of one audit at a time."""

import json
import resource
import signal

import pytest
import torch

from r2et.audit.checkpoint import AuditCheckpoint
from r2et.audit.measures import MeasuredChunk
from r2et.errors import InputError

ONE, TWO = {"weights": "ab", "settings": {"k": 3}}, {"weights": "ab", "settings": {"k": 4}}


def part(number):
    values = torch.rand(5, 3, generator=torch.Generator().manual_seed(number))
    return MeasuredChunk(
        number, f"rows {number}", {"top": values}, {}, {"strong": "why"}, {"clean": 1.0}
    )


def filled(path, count):
    kept = AuditCheckpoint(path, ONE)
    for number in range(count):
        kept.add(part(number))
    kept.close()


def test_there_and_back_to_the_bit(tmp_path):
    filled(tmp_path / "a" / "b.partial", 3)
    again = AuditCheckpoint(tmp_path / "a" / "b.partial", ONE)
    assert sorted(again.done) == [0, 1, 2]
    for number, found in again.done.items():
        assert torch.equal(found.columns["top"], part(number).columns["top"])
        assert (found.fingerprint, found.skipped) == (f"rows {number}", {"strong": "why"})
    again.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda line: {**line, "columns": {"top": {**line["columns"]["top"], "shape": [7, 7]}}},
        lambda line: {**line, "columns": {"top": {**line["columns"]["top"], "dtype": "load"}}},
        lambda line: {**line, "columns": {"top": {**line["columns"]["top"], "data": "AAA="}}},
        lambda line: {**line, "columns": 3},
        lambda line: [line],
    ],
)
def test_a_line_that_is_not_one_is_measured_again_with_what_follows(tmp_path, change):
    path = tmp_path / "audit.partial"
    filled(path, 3)
    lines = path.read_bytes().splitlines()
    lines[2] = json.dumps(change(json.loads(lines[2]))).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    again = AuditCheckpoint(path, ONE)
    assert sorted(again.done) == [0]
    again.add(part(1))
    again.close()
    assert len(path.read_bytes().splitlines()) == 3


def test_two_audits_do_not_write_one_file(tmp_path):
    path = tmp_path / "audit.partial"
    kept = AuditCheckpoint(path, ONE)
    kept.add(part(0))
    with pytest.raises(InputError, match="partial must be a file that no other audit is writing"):
        AuditCheckpoint(path, ONE)
    kept.add(part(1))
    kept.close()
    again = AuditCheckpoint(path, ONE)
    assert sorted(again.done) == [0, 1]
    again.close()


def test_another_audits_file_is_left_as_it_is(tmp_path):
    path = tmp_path / "audit.partial"
    filled(path, 2)
    before = path.read_bytes()
    for _ in range(2):  # and is not locked by who was refused
        with pytest.raises(InputError, match=r"\(settings.k was 3, is 4\)"):
            AuditCheckpoint(path, TWO)
    assert path.read_bytes() == before
    for text in ("my thesis", '{"format": "r2et-audit/1", "name": "MLP"}'):
        path.write_text(text)
        with pytest.raises(InputError, match="partial must be a file that an audit of the same"):
            AuditCheckpoint(path, ONE)
        assert path.read_text() == text
    path.write_text('{"format": "r2et-audit-part/1", "audit": "0123456789abcdef"}\n')
    with pytest.raises(InputError, match="of another version of r2et"):
        AuditCheckpoint(path, ONE)
    path.write_bytes(before[:20])  # stopped in the middle of its first line
    AuditCheckpoint(path, ONE).close()
    assert path.read_bytes() == before.splitlines(keepends=True)[0]
    with pytest.raises(InputError, match=r"partial must be a file, got .*, which is none"):
        AuditCheckpoint(tmp_path, ONE)


def test_the_commands_own_file_of_something_else_is_started_anew(tmp_path):
    path = tmp_path / ".r2et-audit-0123456789ab.partial"
    filled(path, 2)
    AuditCheckpoint(path, TWO).close()
    again = AuditCheckpoint(path, TWO)
    assert again.done == {}
    again.close()
    assert len(path.read_bytes().splitlines()) == 1
    path.write_text("my thesis\n")  # whose name is a coincidence
    with pytest.raises(InputError, match="partial must be a file that an audit of the same"):
        AuditCheckpoint(path, ONE)
    assert path.read_text() == "my thesis\n"


def test_a_line_without_its_end_is_no_line(tmp_path):
    """Cut just before its newline: what comes next would stand on the same line."""
    path = tmp_path / "audit.partial"
    filled(path, 2)
    path.write_bytes(path.read_bytes()[:-1])
    again = AuditCheckpoint(path, ONE)
    assert sorted(again.done) == [0]
    again.add(part(1))
    again.add(part(2))
    again.close()
    last = AuditCheckpoint(path, ONE)
    assert sorted(last.done) == [0, 1, 2]
    last.close()


def test_a_full_disk_costs_the_line_that_did_not_fit(tmp_path):
    path = tmp_path / "audit.partial"
    kept = AuditCheckpoint(path, ONE)
    kept.add(part(0))
    full, hard = path.stat().st_size + 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (full, hard))
        with pytest.raises(
            InputError, match=r"partial must be .* written, got .* \(File too large"
        ):
            kept.add(part(1))
        kept.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        signal.signal(signal.SIGXFSZ, before)
    again = AuditCheckpoint(path, ONE)
    assert sorted(again.done) == [0]
    again.close()
