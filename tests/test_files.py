"""Files are whole or as they were; a lock is one holder's, and dies with it."""

import os
import signal
import subprocess
import sys

import pytest

from r2et.errors import InputError
from r2et.files import check_new, check_writable, scratch, write, write_new, write_result
from r2et.lock import locked, reserved

HOLD = """
import sys, time
from pathlib import Path
from r2et.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    write(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write(path, b"new")
    with pytest.raises(InputError, match=r"^page: path must be a file that can be written, got .*"):
        write_result("page", path, "new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["result.json"]


def test_the_folder_of_a_result_is_made_and_half_characters_are_replaced(tmp_path):
    path = tmp_path / "deep" / "er" / "a.txt"
    check_writable("audit", "json", path)
    assert list(path.parent.iterdir()) == []
    write_result("audit", path, "a\ud800b")
    assert path.read_text() == "a?b"
    with pytest.raises(InputError, match=r"audit: json must be a file .* \(Is a directory\)"):
        check_writable("audit", "json", tmp_path)


@pytest.mark.parametrize("path", ["", "/", ".", "a\0b", 3, b"a"])
def test_what_is_no_path_of_a_file(path):
    for use in (check_writable, check_new, lambda *of: write_new(*of, b"")):
        with pytest.raises(InputError, match=r"^audit: out must be (the path of a file|a path)"):
            use("audit", "out", path)
    with pytest.raises(InputError, match=r"^page: path must be (the path of a file|a path), got"):
        write_result("page", path, "x")


def test_a_temporary_folder_that_is_full_or_none(tmp_path, monkeypatch):
    with scratch("verify", "r2et-", {"model/a.json": b"{}"}) as folder:
        assert (folder / "model" / "a.json").read_bytes() == b"{}"
    assert not folder.exists()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    expected = r"^verify: the temporary folder \(TMPDIR\) must have room for files, got .*: No"
    with pytest.raises(InputError, match=expected), scratch("verify", "r2et-", {}):
        raise AssertionError
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(InputError, match=expected), scratch("verify", "r2et-", {"a": b""}):
        raise AssertionError
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_held_by_one_and_free_afterwards(tmp_path):
    path = tmp_path / "lock"
    with reserved(path) as first, reserved(path) as second:
        assert (first, second) == (True, False)
    with locked(path), reserved(path) as other:
        assert not other
    with reserved(path) as again:
        assert again
    assert path.exists()


def test_a_lock_dies_with_its_holder(tmp_path):
    path = tmp_path / "made" / "lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with reserved(path) as free:
            assert not free
        holder.send_signal(signal.SIGKILL)
        with locked(path):  # waits for its end, and no longer
            assert holder.wait(10) == -signal.SIGKILL


def test_a_reader_waits_by_a_lock_it_cannot_write(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    path.touch()

    def readable(path, mode):
        if mode != "rb":
            raise PermissionError(13, "Permission denied")
        return open(path, mode)

    monkeypatch.setattr("r2et.lock.open", readable, raising=False)
    with reserved(path) as free, reserved(path) as other:
        assert (free, other) == (True, False)
