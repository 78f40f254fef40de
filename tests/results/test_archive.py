"""Packs as files: what is written is read, and every other byte is refused by a sentence."""

import io
import json
import os
import stat
import subprocess
import zipfile

import pytest

from r2et.errors import InputError
from r2et.results.archive import archive_bytes, digest, read_archive, write_archive

MEMBERS = {"audit.json": b'{"a": 1}\n', "rows.csv": b"a,b\n1,2\n", "model/weights.bin": b"\0" * 40}


@pytest.fixture
def read(tmp_path):
    def of(blob):
        path = tmp_path / "pack.zip"
        path.write_bytes(blob)
        return read_archive("verify", path)

    return of


def rebuilt(blob, change=None, **entries):
    """The same archive with other contents, or entries of other kinds."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(blob)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            content = content if change is None else change(info.filename, content)
            if content is not None:
                new.writestr(info.filename, content)
        for name, content in entries.items():
            new.writestr(name, content)
    return buffer.getvalue()


def test_members_come_back_and_the_same_are_the_same_bytes(read, tmp_path):
    blob = archive_bytes(MEMBERS)
    assert read(blob) == MEMBERS
    assert archive_bytes(dict(reversed(MEMBERS.items()))) == blob
    with zipfile.ZipFile(io.BytesIO(blob)) as file:
        file.extractall(tmp_path / "out")
        listed = json.loads(file.read("manifest.json"))["members"]
    assert {name: own["sha256"] for name, own in listed.items()} == {
        name: digest(content) for name, content in MEMBERS.items()
    }
    sums = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(sums, cwd=tmp_path / "out", capture_output=True).returncode == 0


def test_a_changed_byte_of_any_member_is_named(read):
    blob = archive_bytes(MEMBERS)
    with zipfile.ZipFile(io.BytesIO(blob)) as file:
        names = file.namelist()
    assert len(names) == 5
    for name in names:
        for place in (0, 5, -1):

            def change(own, content, name=name, place=place):
                if own != name:
                    return content
                changed = bytearray(content)
                changed[place] ^= 1
                return bytes(changed)

            with pytest.raises(InputError, match=r"^verify: ") as refused:
                read(rebuilt(blob, change))
            assert name in str(refused.value), (name, place, str(refused.value))
            assert str(refused.value).count("\n") == 0
    # In place, so that the archive's own sum is wrong before any manifest is asked.
    place = blob.index(MEMBERS["rows.csv"])
    changed = bytearray(blob)
    changed[place] ^= 1
    with pytest.raises(
        InputError, match=r"^verify: rows\.csv must be as it was written, got other"
    ):
        read(bytes(changed))


def test_every_flipped_byte_of_the_file_is_refused(read):
    """Dates in the file's own tables and bytes around the members included."""
    blob = archive_bytes({"a.txt": b"hello\n"})
    for place in range(len(blob)):
        changed = bytearray(blob)
        changed[place] ^= 0x55
        with pytest.raises(InputError, match=r"^verify: "):
            read(bytes(changed))
    for end in (0, 1, 50, len(blob) - 1):
        with pytest.raises(InputError, match=r"^verify: PACK must be a pack that"):
            read(blob[:end])
    for other in (b"MZ" + blob, blob + b"more"):
        with pytest.raises(InputError, match="its members and nothing else, got other bytes arou"):
            read(other)


def test_a_name_that_was_changed_in_the_manifest_is_the_manifests(read):
    blob = archive_bytes(MEMBERS)
    renamed = rebuilt(blob, lambda _, content: content.replace(b"rows.csv", b"rowz.csv"))
    with pytest.raises(InputError, match=r"^verify: PACK must be whole, got no rowz\.csv"):
        read(renamed)  # the sums agree: it is the member that is not there

    def change(name, content):
        return content.replace(b"rows.csv", b"rowz.csv") if name == "manifest.json" else content

    with pytest.raises(InputError, match=r"^verify: manifest\.json must be as it was written"):
        read(rebuilt(blob, change))


def test_members_that_lack_or_are_too_many(read):
    blob = archive_bytes(MEMBERS)
    gone = rebuilt(blob, lambda name, content: None if name == "rows.csv" else content)
    with pytest.raises(InputError, match=r"PACK must be whole, got no rows\.csv, which the manif"):
        read(gone)
    with pytest.raises(InputError, match=r"of members that the manifest names, got other\.txt"):
        read(rebuilt(blob, **{"other.txt": b"x"}))
    for name in ("manifest.json", "SHA256SUMS"):
        gone = rebuilt(blob, lambda own, content, name=name: None if own == name else content)
        with pytest.raises(InputError, match=f"PACK must be one that holds {name}, got none"):
            read(gone)


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/evil", "a/../../evil", "C:\\evil", "..\\evil", "a/b/c", ".hidden"]
)
def test_nothing_leaves_its_folder(read, name, tmp_path):
    with pytest.raises(InputError, match=r"^verify: PACK must be of members that stay in its fold"):
        read(rebuilt(archive_bytes(MEMBERS), **{name: b"x"}))
    assert os.listdir(tmp_path) == ["pack.zip"]
    with pytest.raises(InputError, match="a member's name must be plain"):
        archive_bytes({name: b"x"})


def entry(name="link", kind=stat.S_IFREG, compress=zipfile.ZIP_STORED, content=b"/etc/passwd"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        info = zipfile.ZipInfo(name)
        info.create_system, info.external_attr = 3, (kind | 0o777) << 16
        info.compress_type = compress
        file.writestr(info, content)
    return buffer.getvalue()


def test_links_bombs_and_what_is_no_zip(read, tmp_path):
    with pytest.raises(InputError, match="of files alone, got link, which is a link or a folder"):
        read(entry(kind=stat.S_IFLNK))
    bomb = entry("bomb", compress=zipfile.ZIP_DEFLATED, content=b"\0" * 10**7)
    assert len(bomb) < 20_000
    with pytest.raises(InputError, match="stored as they are, got bomb, which is compressed"):
        read(bomb)
    # Many names for the same bytes.
    blob = bytearray(entry("a", content=b"\0" * 5000))
    start, end = blob.index(b"PK\x01\x02"), blob.index(b"PK\x05\x06")
    table = b"".join(bytes(blob[start:end]).replace(b"a", bytes([c])) for c in b"abcdefgh")
    tail = bytearray(blob[end:])
    tail[8:12], tail[12:16] = b"\x08\0\x08\0", len(table).to_bytes(4, "little")
    with pytest.raises(InputError, match=r"^verify: PACK must be"):
        read(bytes(blob[:start]) + table + bytes(tail))
    with pytest.raises(InputError, match=r"a pack that `r2et audit --pack` wrote, got .*not a zip"):
        read(b"no zip at all")
    with pytest.raises(InputError, match=r"a file that can be read, got .*No such file"):
        read_archive("verify", tmp_path / "nowhere.zip")
    newer = json.dumps({"format": "r2et-pack/2"}).encode()
    later = rebuilt(archive_bytes({}), lambda n, c: newer if n == "manifest.json" else c)
    with pytest.raises(InputError, match=r"format must be 'r2et-pack/1' \(a newer r2et wrote"):
        read(later)


def test_what_might_never_end_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(InputError, match=r"a file that can be read, got .*a device or a pipe"):
            read_archive("verify", path)


def test_a_file_that_is_there_stays(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "pack.zip"
    write_archive("audit", path, MEMBERS)
    before = path.read_bytes()
    with pytest.raises(InputError, match="audit: path must be a file that is not there yet, got "):
        write_archive("audit", path, {})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["pack.zip"]

    def unlinkable(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", unlinkable)
    with pytest.raises(InputError, match="a file that is not there yet"):
        write_archive("audit", path, {})
    write_archive("audit", path.with_name("other.zip"), MEMBERS)
    assert sorted(os.listdir(path.parent)) == ["other.zip", "pack.zip"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="audit: path must be a file that can be written, got"):
        write_archive("audit", tmp_path / "file" / "pack.zip", MEMBERS)
