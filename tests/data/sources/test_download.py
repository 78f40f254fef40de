"""Downloads against a server on loopback: the right bytes or one reason, never a half file."""

import logging
import re
import socket
import time

import pooch
import pytest

from loopback import cut, drip, hang, redirect, serve, status
from r2et.data.sources.download import ATTEMPTS, download, redirect_allowed
from r2et.data.sources.entry import PlaceError, UnreachableError

BODY = bytes(range(256)) * 1000


def fetch(server, to, timeout=5.0, limit=2**20):
    server.contents.setdefault("file", BODY)
    download(server.url("file"), to, label="a file", timeout=timeout, limit=limit)
    return to.read_bytes()


@pytest.fixture
def to(tmp_path):
    return tmp_path / "downloads" / "file"


def left_over(to):
    return sorted(path.name for path in to.parent.iterdir())


def test_a_plain_download(server, to, caplog):
    pooch.get_logger().addHandler(caplog.handler)
    try:
        assert fetch(server, to) == BODY
    finally:
        pooch.get_logger().removeHandler(caplog.handler)
    assert left_over(to) == ["file"]
    assert not caplog.records  # pooch would print a line for every file it fetches
    assert pooch.get_logger().getEffectiveLevel() < logging.WARNING  # as its other users have it


def test_an_interrupted_download_goes_on_and_is_whole(server, to):
    server.script = [cut(100_000), cut(180_000)]
    assert fetch(server, to) == BODY
    assert left_over(to) == ["file"]
    first, *others = server.seen
    assert (first.range, first.if_range) == ("", "")
    starts = [int(re.fullmatch(r"bytes=(\d+)-", r.range)[1]) for r in others]
    assert 0 < starts[0] <= 100_000 < starts[1] <= 180_000
    assert {r.if_range for r in others} == {'"one"'}


def test_the_next_command_goes_on_where_this_one_was_stopped(server, to):
    server.script = [cut(100_000)] + [status(503)] * (ATTEMPTS - 1)
    with pytest.raises(PlaceError, match="HTTP 503"):
        fetch(server, to)
    assert not to.exists()
    assert left_over(to) == [".file.etag", ".file.part"]
    kept = (to.parent / ".file.part").read_bytes()
    assert BODY.startswith(kept)
    assert fetch(server, to) == BODY
    assert server.seen[-1].range == f"bytes={len(kept)}-"
    assert left_over(to) == ["file"]


def test_a_stopped_process_is_gone_on_from(server, to, monkeypatch):
    class StoppedError(BaseException):
        pass

    def stop(*_):
        raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr("r2et.data.sources.download._Transfer.flush", stop)  # after the first block
        with pytest.raises(StoppedError):
            fetch(server, to)
    assert fetch(server, to) == BODY
    assert server.seen[-1].range == f"bytes={2**14}-"


@pytest.mark.parametrize("etag", ["", 'W/"one"'])
def test_what_has_no_strong_etag_begins_again(server, to, etag):
    server.etag = etag
    server.script = [cut(100_000)]
    assert fetch(server, to) == BODY
    assert [r.range for r in server.seen] == ["", ""]
    assert left_over(to) == ["file"]


def test_a_server_that_knows_no_ranges_sends_all(server, to):
    server.ranges = False
    server.script = [cut(100_000)]
    assert fetch(server, to) == BODY


def test_more_than_the_file_has_is_no_beginning_of_it(server, to):
    to.parent.mkdir()
    (to.parent / ".file.part").write_bytes(BODY + b"more")
    (to.parent / ".file.etag").write_text('"one"')
    assert fetch(server, to) == BODY
    assert [r.range for r in server.seen] == [f"bytes={len(BODY) + 4}-", ""]


def test_a_server_that_drips_is_given_up(server, to, monkeypatch):
    monkeypatch.setattr("r2et.data.sources.partial.PATIENCE", 0.3)
    monkeypatch.setattr("r2et.data.sources.partial.SLOWEST", 2**30)
    server.script = [drip(20.0)]
    began = time.monotonic()
    with pytest.raises(PlaceError, match=r"only \d+ bytes came in 0\.3 s, and it was given up"):
        fetch(server, to)
    assert time.monotonic() - began < 5
    assert not to.exists()


def test_a_file_that_changes_between_two_attempts_is_not_joined(server, to):
    other = BODY[::-1]

    def change(handler, state):
        state.contents["file"], state.etag = other, '"two"'
        serve(handler, state)

    server.script = [cut(100_000), change]
    assert fetch(server, to) == other


def test_always_truncated(server, to):
    server.script = [cut(0)] * ATTEMPTS
    with pytest.raises(PlaceError, match=f"only 0 of {len(BODY)} bytes came, {ATTEMPTS} times"):
        fetch(server, to)
    assert not to.exists()


def test_an_error_then_success(server, to):
    server.script = [status(500), status(429), status(503)]
    assert fetch(server, to) == BODY


def test_not_found_is_not_asked_again(server, to):
    server.script = [status(404)]
    with pytest.raises(PlaceError, match="HTTP 404 Not Found"):
        fetch(server, to)
    assert len(server.seen) == 1


def test_silence(server, to):
    server.script = [hang(0.4)] * ATTEMPTS
    with pytest.raises(PlaceError, match=r"no answer within 0\.1 s, 4 times"):
        fetch(server, to, timeout=0.1)


def test_a_server_that_hangs_up(server, to):
    server.script = [hang(0)] * ATTEMPTS
    with pytest.raises(PlaceError, match=r"the connection broke \(RemoteDisconnected\), 4 times"):
        fetch(server, to)


def test_a_server_that_falls_silent_in_the_middle(server, to):
    def silent(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(BODY)))
        handler.end_headers()
        handler.wfile.write(BODY[:100_000])
        time.sleep(0.4)

    server.script = [silent] * ATTEMPTS
    with pytest.raises(PlaceError, match=rf"only \d+ of {len(BODY)} bytes came, 4 times"):
        fetch(server, to, timeout=0.1)
    assert left_over(to) == []


def announced(length, body=b"x" * 10):
    def answer(handler, _):
        handler.send_response(200)
        if length:
            handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_more_than_the_limit_is_refused_when_announced_and_when_sent(server, to):
    server.script = [announced(10**13)]
    with pytest.raises(PlaceError, match="it announces 10000000000000 bytes, more than the"):
        fetch(server, to)
    server.script = [announced(None, BODY)]
    with pytest.raises(PlaceError, match="it sends more than the 1000 bytes expected"):
        fetch(server, to, limit=1000)
    assert left_over(to) == []


def test_nobody_listens(server, to):
    server.port = 1
    with pytest.raises(UnreachableError, match="Connection refused, 2 times"):
        fetch(server, to)


def test_an_unknown_host_is_not_asked_for_twice(to, monkeypatch):
    asked = []

    def unknown(host, *_, **__):
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(UnreachableError, match=r"^Name or service not known$"):
        download("http://a.invalid/file", to, label="a file", timeout=5, limit=9)
    assert asked == ["a.invalid"]


def test_a_redirect_on_the_same_host(server, to):
    server.script = [redirect("/elsewhere")]
    server.contents["elsewhere"] = BODY
    assert fetch(server, to) == BODY


def test_a_redirect_to_another_host_without_tls_is_refused(server, to):
    other = server.url("file", host="localhost")
    server.script = [redirect(other)]
    with pytest.raises(PlaceError, match=f"it redirects to {other}, which is not followed"):
        fetch(server, to)
    assert len(server.seen) == 1


@pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1/file"])
def test_a_redirect_to_another_scheme_is_refused(server, to, target):
    server.script = [redirect(target)]
    with pytest.raises(PlaceError):
        fetch(server, to)


def test_a_circle_of_redirects(server, to):
    server.script = [redirect("/file")] * 100
    with pytest.raises(PlaceError, match="HTTP 302"):
        fetch(server, to)


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("https://a.org/x", "https://a.org/y", True),
        ("https://a.org/x", "https://cdn.b.org/y", True),
        ("http://a.org/x", "https://a.org/x", True),
        ("http://a.org/x", "http://a.org/y", True),
        ("https://a.org/x", "http://a.org/x", False),
        ("http://a.org/x", "http://b.org/x", False),
        ("http://a.org/x", "https://b.org/x", False),
        ("http://a.org/x", "http://a.org:81/x", False),
        ("https://a.org/x", "file:///x", False),
    ],
)
def test_which_redirects_are_followed(old, new, allowed):
    assert redirect_allowed(old, new) is allowed


def test_only_http(to):
    with pytest.raises(PlaceError, match="only http and https"):
        download("file:///etc/hostname", to, label="a file", timeout=1, limit=9)
