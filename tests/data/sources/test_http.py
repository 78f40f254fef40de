"""Downloads against a server on loopback: the right bytes or one reason, never a half file."""

import socket
import time

import pytest

from loopback import cut, drip, hang, redirect, serve, status
from r2et.data.sources.connection import redirect_allowed
from r2et.data.sources.entry import PlaceError, UnreachableError
from r2et.data.sources.http import ATTEMPTS, download

BODY = bytes(range(256)) * 1000


def fetch(server, to, timeout=5.0):
    server.contents.setdefault("file", BODY)
    download(server.url("file"), to, label="a file", timeout=timeout)
    return to.read_bytes()


@pytest.fixture
def to(tmp_path):
    return tmp_path / "downloads" / "file"


def left_over(to):
    return sorted(path.name for path in to.parent.iterdir())


def test_a_plain_download(server, to):
    assert fetch(server, to) == BODY
    assert left_over(to) == ["file"]
    assert server.seen[0].range == ""


def test_an_interrupted_download_goes_on_where_it_stopped(server, to):
    server.script = [cut(100_000), cut(180_000)]
    assert fetch(server, to) == BODY
    assert [r.range for r in server.seen] == ["", "bytes=100000-", "bytes=180000-"]
    assert [r.if_range for r in server.seen] == ["", '"one"', '"one"']


def test_a_download_goes_on_in_the_next_run(server, to):
    server.script = [cut(100_000)] + [status(503)] * (ATTEMPTS - 1)
    with pytest.raises(PlaceError, match="HTTP 503"):
        fetch(server, to)
    assert not to.exists()
    server.seen.clear()
    assert fetch(server, to) == BODY
    assert server.seen[0].range == "bytes=100000-"


def test_a_server_without_ranges_starts_again(server, to):
    server.ranges = False
    server.script = [cut(100_000)]
    assert fetch(server, to) == BODY
    assert server.seen[1].range == "bytes=100000-"


def test_a_file_that_changed_starts_again(server, to):
    other = BODY[::-1]

    def change(handler, state):
        state.contents["file"], state.etag = other, '"two"'
        serve(handler, state)

    server.script = [cut(100_000), change]
    assert fetch(server, to) == other


def test_a_file_that_shrank_starts_again(server, to):
    server.contents["file"] = BODY
    server.script = [cut(100_000)] + [status(500)] * (ATTEMPTS - 1)
    with pytest.raises(PlaceError):
        fetch(server, to)
    server.contents["file"] = BODY[:50_000]
    assert fetch(server, to) == BODY[:50_000]
    assert [r.range for r in server.seen[-2:]] == ["bytes=100000-", ""]


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_without_a_strong_validator_nothing_is_joined(server, to, etag):
    server.etag = etag
    server.script = [cut(100_000)]
    assert fetch(server, to) == BODY
    assert [r.range for r in server.seen] == ["", ""]


def test_a_server_that_answers_another_range_is_not_believed(server, to):
    def shifted(handler, _):
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes 7-{len(BODY) - 1}/{len(BODY)}")
        handler.end_headers()

    server.script = [cut(100_000), shifted]
    with pytest.raises(PlaceError, match=r"it answered bytes 100000- with bytes 7-"):
        fetch(server, to)


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


def test_a_server_that_drips(server, to):
    server.script = [drip(2)] * ATTEMPTS
    with pytest.raises(PlaceError, match=r"fewer than 512 bytes per second for 0\.2 s"):
        fetch(server, to, timeout=0.2)
    assert not to.exists()


def slow_headers(handler, _):
    """A byte of the headers now and then: never silent, never done."""
    for byte in b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 1000:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        time.sleep(0.05)


def test_headers_that_drip(server, to):
    server.script = [slow_headers] * ATTEMPTS
    start = time.monotonic()
    with pytest.raises(PlaceError, match=r"no answer within 0\.3 s, 4 times"):
        fetch(server, to, timeout=0.3)
    assert time.monotonic() - start < 10


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
    with pytest.raises(
        PlaceError, match="it announces 10000000000000 bytes, more than the 4294967"
    ):
        fetch(server, to)
    server.script = [announced(None, BODY)]
    with pytest.raises(PlaceError, match="it sends more than the 1000 bytes expected"):
        download(server.url("file"), to, label="a file", timeout=5, limit=1000)
    assert not to.exists()
    assert all(path.stat().st_size == 0 for path in to.parent.iterdir())


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
        download("http://a.invalid/file", to, label="a file", timeout=5)
    assert asked == ["a.invalid"]


def test_more_than_announced(server, to):
    def babble(handler, _):
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes 100000-{len(BODY) - 1}/{len(BODY)}")
        handler.end_headers()
        handler.wfile.write(BODY)

    server.script = [cut(100_000), babble]
    with pytest.raises(PlaceError, match="it sends more than the 256000 bytes expected"):
        fetch(server, to)
    assert (to.parent / "file.partial").stat().st_size == 100_000


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
        download("file:///etc/hostname", to, label="a file", timeout=1)
