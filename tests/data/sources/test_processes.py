"""Real processes: two that want the same file at once, and one that is interrupted."""

import hashlib
import os
import signal
import subprocess
import sys
import time

import pytest

from ctrl_c import hearing_ctrl_c
from loopback import drip, serve
from r2et.data.sources import Address, File, cache_dir, read

BODY = os.urandom(300_000)
CODE = """
import sys
from r2et.data.sources import Address, File, read
url, sha256, size = sys.argv[1:]
print(len(read("set", [File("set/file", sha256, int(size), (Address(url=url),))])[0]))
"""


def start(server):
    digest = hashlib.sha256(BODY).hexdigest()
    command = [sys.executable, "-c", CODE, server.url("f"), digest, str(len(BODY))]
    pipe = subprocess.PIPE
    return subprocess.Popen(hearing_ctrl_c(command), stdout=pipe, stderr=pipe, text=True)


def slowly(handler, server):
    time.sleep(1.5)  # long enough for the second process to arrive
    serve(handler, server)


@pytest.mark.slow
def test_two_processes_fetch_once_and_both_succeed(server):
    server.contents["f"] = BODY
    server.script = [slowly]
    both = [start(server), start(server)]
    for process in both:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out.strip()) == (0, str(len(BODY))), err
    assert len(server.seen) == 1
    assert [p.name for p in (cache_dir() / "files").rglob("*") if p.is_file()] == ["file"]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_ends_leaves_no_file_and_no_lock(server, end):
    server.contents["f"] = BODY
    server.script = [drip(30, pause=0.001)]
    process = start(server)
    deadline = time.monotonic() + 30
    while not server.seen and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(end)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert not [p for p in (cache_dir() / "files").rglob("*") if p.is_file()]
    file = File(
        "set/file", hashlib.sha256(BODY).hexdigest(), len(BODY), (Address(url=server.url("f")),)
    )
    assert read("set", [file]) == [BODY]
    assert not [p for p in (cache_dir() / "downloads").rglob("*") if p.is_file()]
