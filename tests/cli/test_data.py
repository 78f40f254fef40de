"""r2et data: list, get, info, path."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from ctrl_c import hearing_ctrl_c
from loopback import drip, running
from r2et.cli.data import app
from r2et.data import DATASETS
from r2et.errors import InputError, UnavailableError


@pytest.fixture(autouse=True)
def own_places(monkeypatch, tmp_path):
    monkeypatch.delenv("R2ET_DATA", raising=False)
    monkeypatch.setenv("R2ET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("R2ET_OFFLINE", "1")


def run(*words):
    result = CliRunner().invoke(app, words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.stdout


def test_list():
    found = {entry["name"]: entry["state"] for entry in json.loads(run("list", "--json"))}
    assert set(found) == set(DATASETS)
    assert (found["adult"], found["bank"], found["bp"]) == ("built in", "to fetch", "to supply")
    assert all(name in run("list") for name in ("adult", "cifar10", "octid"))


def test_info():
    found = json.loads(run("info", "bank", "--json"))
    [file] = found["files"]
    assert file["path"] == "bank/bank-additional-full.csv"
    assert len(file["sha256"]) == 64
    assert file["where"] is None
    assert file["places"][-1] == "the pip package aif360==0.2.3"
    text = run("info", "bank")
    assert "from https://archive.ics.uci.edu/" in text
    assert "x (B, 18), k = 8" in text
    assert "licence  CC BY 4.0" in text
    assert "credit   S. Moro, P. Rita and P. Cortez (2014)" in text
    assert "to supply, since the papers' networks are not published" in run("info", "bp")
    assert "built in" in run("info", "adult")


def test_info_of_a_file_that_is_here_still_says_where_it_is_from(monkeypatch, tmp_path):
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "bank-additional-full.csv").write_bytes(b"anything")
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    text = run("info", "bank")
    assert f"here: {tmp_path}" in text
    assert "from https://archive.ics.uci.edu/" in text


def test_info_of_a_supplied_file_does_not_expect_our_copy(monkeypatch, tmp_path):
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain" / "abide_aal116_pearson.npz").write_bytes(b"mine")
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    [file] = json.loads(run("info", "abide", "--json"))["files"]
    assert "sha256" not in file
    assert len(file["measured_on_sha256"]) == 64
    assert "our figures are of a copy with SHA-256 f60a69f1" in run("info", "abide")
    assert "SHA-256" not in run("info", "bp")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("oct-kermany", "the papers' ROCT (OCTID)"),
        ("oct-kermany-64", "the papers' ROCT (OCTID)"),
        ("abide", "the papers' ADHD"),
        ("adhd-frontal", "the papers' BP"),
    ],
)
def test_a_stand_in_is_called_one_everywhere(name, other):
    listed = {entry["name"]: entry["summary"] for entry in json.loads(run("list", "--json"))}
    assert listed[name].endswith(f"; stands in for {other}")
    assert f"stands in for {other}" in run("info", name)
    assert DATASETS[name].source.stands_for == other


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_what_is_said_without_loading_holds(name):
    entry = DATASETS[name]
    assert entry.source.where
    assert entry.k > 0
    assert entry.shape.startswith("(B, ")


def test_get(monkeypatch, tmp_path):
    assert run("get", "adult") == "built in\n"
    assert json.loads(run("get", "adult", "--json")) == {"name": "adult", "files": ["built in"]}
    with pytest.raises(UnavailableError, match=r"^bank: .* R2ET_OFFLINE forbids"):
        run("get", "bank")
    with pytest.raises(UnavailableError, match=r"^bp: "):
        run("get", "bp")
    with pytest.raises(InputError, match=r"^data get: .*\(did you mean 'bank'\?\), got bnak"):
        run("get", "bnak")
    with pytest.raises(InputError, match=r"^data info: name must be one of "):
        run("info", "bnak")
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain" / "bp.npz").write_bytes(b"mine")
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    assert run("get", "bp") == f"{tmp_path / 'brain' / 'bp.npz'}\n"


def test_path(monkeypatch, tmp_path):
    cache = str(tmp_path / "cache")
    assert json.loads(run("path", "--json")) == {"data": None, "cache": cache}
    monkeypatch.setenv("R2ET_DATA", str(tmp_path))
    assert json.loads(run("path", "--json")) == {"data": str(tmp_path), "cache": cache}
    assert cache in run("path")


GET = """
import sys
from r2et.cli.data import app
from r2et.data import DatasetEntry, register_dataset
from r2et.data.sources import Address, File
url, sha256, size = sys.argv[1:]
files = (File("slow", sha256, int(size), (Address(url=url),)),)
register_dataset("slow", DatasetEntry("slow", None, files))
app(["get", "slow"])
"""


def test_ctrl_c_prints_no_traceback(tmp_path):
    body = os.urandom(100_000)
    environment = {**os.environ, "R2ET_OFFLINE": "0", "no_proxy": "127.0.0.1"}
    with running() as server:
        server.contents["slow"] = body
        server.script = [drip(30, pause=0.001)]
        arguments = [server.url("slow"), hashlib.sha256(body).hexdigest(), str(len(body))]
        command = hearing_ctrl_c([sys.executable, "-c", GET, *arguments])
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, env=environment, text=True, **pipes)
        deadline = time.monotonic() + 30
        while not server.seen and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode != 0
    assert "Traceback" not in out + err
    left = (tmp_path / "cache" / "downloads").rglob("*")
    assert not [path for path in left if path.is_file()]
