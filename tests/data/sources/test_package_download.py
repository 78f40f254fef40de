"""The package client is asked by name, and nothing it brings is run."""

import subprocess
import sys

import pytest

from r2et.data.sources import Package, package_download
from r2et.data.sources.entry import PlaceError


@pytest.fixture
def client(monkeypatch):
    """Stands in for pip and npm: writes what `makes` names, and returns `code`."""
    state = {"makes": ["pkg-1.0-py3-none-any.whl"], "code": 0, "stderr": "", "commands": []}

    def run(command, cwd, **_):
        state["commands"].append(command)
        for name in state["makes"]:
            with open(f"{cwd}/{name}", "wb") as out:
                out.write(b"archive")
        return subprocess.CompletedProcess(command, state["code"], "", state["stderr"])

    monkeypatch.setattr(package_download.subprocess, "run", run)
    monkeypatch.setattr(package_download.shutil, "which", lambda name: f"/bin/{name}")
    return state


PIP = Package(("f",), client="pip", name="pkg", version="1.0")
NPM = Package(("f",), client="npm", name="pkg", version="1.0")


def test_pip_is_asked_by_name_for_a_wheel(client, tmp_path):
    package_download.obtain(PIP, tmp_path / "a" / "pkg.whl")
    assert (tmp_path / "a" / "pkg.whl").read_bytes() == b"archive"
    [command] = client["commands"]
    assert command[:5] == [sys.executable, "-m", "pip", "download", "pkg==1.0"]
    assert {"--no-deps", "--only-binary"} <= set(command)
    assert not any("//" in word for word in command)


def test_npm_is_asked_by_name_without_scripts(client, tmp_path):
    client["makes"] = ["pkg-1.0.tgz"]
    package_download.obtain(NPM, tmp_path / "pkg.tgz")
    [command] = client["commands"]
    assert command[:3] == ["/bin/npm", "pack", "pkg@1.0"]
    assert "--ignore-scripts" in command


def test_a_client_that_fails_says_why(client, tmp_path):
    client.update(makes=[], code=1, stderr="notice: x\nERROR: No matching distribution\n")
    with pytest.raises(PlaceError, match="pip said 'No matching distribution'"):
        package_download.obtain(PIP, tmp_path / "pkg.whl")
    assert list(tmp_path.iterdir()) == []


def test_two_archives_are_one_too_many(client, tmp_path):
    client["makes"] = ["a.whl", "b.whl"]
    with pytest.raises(PlaceError, match="pip said 'nothing'"):
        package_download.obtain(PIP, tmp_path / "pkg.whl")


def test_no_client(monkeypatch, tmp_path):
    monkeypatch.setattr(package_download.shutil, "which", lambda _: None)
    monkeypatch.setattr(package_download.importlib.util, "find_spec", lambda _: None)
    for package, name in ((PIP, "pip"), (NPM, "npm")):
        with pytest.raises(PlaceError, match=f"{name} is not installed"):
            package_download.obtain(package, tmp_path / "pkg")


def test_pip_on_the_path_where_the_environment_has_none(client, monkeypatch, tmp_path):
    monkeypatch.setattr(package_download.importlib.util, "find_spec", lambda _: None)
    package_download.obtain(PIP, tmp_path / "pkg.whl")
    assert client["commands"][0][:2] == ["/bin/pip", "download"]
