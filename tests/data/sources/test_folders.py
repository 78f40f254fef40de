"""Folders and switches of the environment."""

from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix
from platformdirs.windows import Windows

from r2et.data.sources import cache_dir, data_dir, offline
from r2et.data.sources.folders import timeout
from r2et.errors import InputError


def test_cache_of_each_platform(monkeypatch):
    monkeypatch.delenv("R2ET_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(platformdirs, "PlatformDirs", Unix)
    assert cache_dir() == Path("/home/me/.cache/r2et")
    monkeypatch.setenv("XDG_CACHE_HOME", "/fast")
    assert cache_dir() == Path("/fast/r2et")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(platformdirs, "PlatformDirs", MacOS)
    assert cache_dir() == Path("/home/me/Library/Caches/r2et")
    monkeypatch.setattr(platformdirs, "PlatformDirs", Windows)
    monkeypatch.setattr("platformdirs.windows.get_win_folder", lambda _: "/local")
    assert cache_dir() == Path("/local/r2et")
    monkeypatch.setenv("R2ET_CACHE", "/mine")
    assert cache_dir() == Path("/mine")


def test_a_data_folder_that_is_none(monkeypatch, tmp_path):
    assert data_dir() is None
    monkeypatch.setenv("R2ET_DATA", str(tmp_path / "gone"))
    with pytest.raises(InputError, match="R2ET_DATA: the variable must be the path of a folder"):
        data_dir()


@pytest.mark.parametrize(("value", "means"), [("", 0), ("0", 0), ("no", 0), ("1", 1), ("yes", 1)])
def test_offline(monkeypatch, value, means):
    monkeypatch.setenv("R2ET_OFFLINE", value)
    assert offline() == bool(means)


@pytest.mark.parametrize("value", ["0", "-1", "soon", "nan"])
def test_a_timeout_that_is_none(monkeypatch, value):
    monkeypatch.setenv("R2ET_TIMEOUT", value)
    with pytest.raises(InputError, match="R2ET_TIMEOUT: the variable must be a positive number"):
        timeout()
