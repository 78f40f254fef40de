"""A server and a cache of one's own for every test of the sources."""

import pytest

from loopback import running
from r2et.data.sources import download


@pytest.fixture
def server():
    with running() as state:
        yield state


@pytest.fixture(autouse=True)
def own_places(monkeypatch, tmp_path):
    """No test sees the machine's own data, cache or proxy."""
    for name in ("R2ET_DATA", "R2ET_OFFLINE", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("R2ET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("R2ET_TIMEOUT", "5")
    monkeypatch.setattr(download, "PAUSE", 0.01)
    return tmp_path / "cache"
