"""One member of an archive, and the archives that are refused."""

import gzip
import io
import os
import tarfile
import zipfile

import pytest

from r2et.data.sources.archive import take
from r2et.data.sources.entry import PlaceError


def zipped(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(members, kind=tarfile.REGTYPE, mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.type = kind
            info.size = len(data) if kind == tarfile.REGTYPE else 0
            info.linkname = "/etc/hostname"
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def put(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "pack"), [("a.zip", zipped), ("a.whl", zipped), ("a.tar.gz", tarred), ("a", tarred)]
)
def test_a_member(tmp_path, name, pack):
    archive = put(tmp_path / name, pack({"b/other": b"no", "b/file": b"yes"}))
    assert take(archive, "b/file") == b"yes"


def test_an_archive_in_an_archive(tmp_path):
    inner = zipped({"deep/file": b"yes"})
    archive = put(tmp_path / "outer.zip", zipped({"inner.zip": inner}))
    assert take(archive, "inner.zip!/deep/file") == b"yes"
    assert take(tmp_path, "outer.zip!/inner.zip!/deep/file") == b"yes"


def test_gzip_is_unpacked_wherever_it_is(tmp_path):
    data = gzip.compress(b"yes")
    put(tmp_path / "file.gz", data)
    archive = put(tmp_path / "a.zip", zipped({"file.gz": data}))
    assert take(tmp_path, "file.gz") == take(tmp_path / "file.gz", "") == b"yes"
    assert take(archive, "file.gz") == b"yes"


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", "..\\out", "C:/out"])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_whose_member_leaves_its_folder(tmp_path, name, pack):
    archive = put(tmp_path / "a.bin", pack({"file": b"yes", name: b"evil"}))
    with pytest.raises(PlaceError, match=r"a\.bin holds a member that leaves its folder"):
        take(archive, "file")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_is_no_file(tmp_path, kind):
    archive = put(tmp_path / "a.tar.gz", tarred({"file": b""}, kind))
    with pytest.raises(PlaceError, match="has no member 'file'"):
        take(archive, "file")


def test_a_part_cannot_leave_the_folder(tmp_path):
    with pytest.raises(PlaceError, match="leaves its folder"):
        take(tmp_path, "../secret")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_missing_member(tmp_path, pack):
    archive = put(tmp_path / "a.bin", pack({"other": b"no"}))
    with pytest.raises(PlaceError, match=r"a\.bin has no member 'file'"):
        take(archive, "file")


def test_what_unpacks_to_more_than_expected_is_refused(tmp_path):
    bomb = bytes(10_000_000)
    put(tmp_path / "bomb.gz", gzip.compress(bomb))
    put(tmp_path / "a.zip", zipped({"file": bomb}))
    for path, part in (("bomb.gz", ""), ("a.zip", "file")):
        with pytest.raises(PlaceError, match="larger than the 1000 bytes expected"):
            take(tmp_path / path, part, limit=1000)


def test_a_gzip_member_may_be_larger_than_what_it_holds(tmp_path):
    data = os.urandom(1000)
    packed = gzip.compress(data)
    assert len(packed) > len(data)
    archive = put(tmp_path / "a.zip", zipped({"file.gz": packed}))
    assert take(archive, "file.gz", limit=1000) == data
    with pytest.raises(PlaceError, match=r"file\.gz is larger than the 999 bytes expected"):
        take(archive, "file.gz", limit=999)


def damaged_lzma():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("file", os.urandom(2000))
    data = out.getvalue()
    return data[:60] + bytes(200) + data[260:]


def bad_pax():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("file")
        info.pax_headers = {"GNU.sparse.map": "no numbers"}
        archive.addfile(info)
    return out.getvalue()


@pytest.mark.parametrize("contents", [damaged_lzma(), bad_pax(), b"not any archive" * 99])
def test_whatever_a_reader_raises_is_one_line(tmp_path, contents):
    archive = put(tmp_path / "a.bin", contents)
    with pytest.raises(PlaceError, match=r"^a\.bin is damaged \([^\n]*[^:\n]\)$"):
        take(archive, "file")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.gz"])
def test_a_damaged_archive(tmp_path, name):
    whole = {"a.zip": zipped, "a.tar.gz": tarred}.get(name, lambda _: gzip.compress(b"x" * 9999))
    archive = put(tmp_path / name, whole({"file": b"x" * 9999})[:-30])
    with pytest.raises(PlaceError, match=f"{name} is damaged"):
        take(archive, "" if name == "a.gz" else "file")
