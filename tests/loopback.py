"""A server on loopback that can misbehave in every way the download tests name."""

import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Request:
    path: str
    range: str
    if_range: str


@dataclass
class Server:
    """Serves `contents`; `script` holds what to do at the first, second, ... request instead."""

    port: int = 0
    contents: dict[str, bytes] = field(default_factory=dict)
    etag: str = '"one"'
    ranges: bool = True
    script: list[Callable] = field(default_factory=list)
    seen: list[Request] = field(default_factory=list)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/{path}"


def serve(handler: BaseHTTPRequestHandler, server: Server, stop: int | None = None) -> None:
    """Answer as a well-made server would, but hang up after `stop` bytes of the body."""
    body = server.contents.get(handler.path.lstrip("/"))
    if body is None:
        handler.send_error(404)
        return
    start = 0
    wanted = handler.headers.get("Range", "")
    if wanted and server.ranges and handler.headers.get("If-Range") in {None, server.etag}:
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if start >= len(body):
            handler.send_error(416)
            return
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    else:
        handler.send_response(200)
    if server.etag:
        handler.send_header("ETag", server.etag)
    handler.send_header("Content-Length", str(len(body) - start))
    handler.end_headers()
    handler.wfile.write(body[start:stop])


def cut(after: int) -> Callable:
    """Hang up in the middle."""
    return lambda handler, server: serve(handler, server, stop=after)


def status(code: int) -> Callable:
    return lambda handler, _: handler.send_error(code)


def hang(seconds: float) -> Callable:
    return lambda *_: time.sleep(seconds)


def redirect(url: str) -> Callable:
    def answer(handler: BaseHTTPRequestHandler, _: Server) -> None:
        handler.send_response(302)
        handler.send_header("Location", url)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def drip(seconds: float, pause: float = 0.05) -> Callable:
    """One byte at a time: never silent, never done."""

    def answer(handler: BaseHTTPRequestHandler, server: Server) -> None:
        body = server.contents[handler.path.lstrip("/")]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("ETag", server.etag)
        handler.end_headers()
        end = time.monotonic() + seconds
        for i in range(len(body)):
            handler.wfile.write(body[i : i + 1])
            handler.wfile.flush()
            time.sleep(pause)
            if time.monotonic() > end:
                return

    return answer


@contextmanager
def running():
    """A server that answers until the block ends."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            headers = self.headers
            state.seen.append(
                Request(self.path, headers.get("Range", ""), headers.get("If-Range", ""))
            )
            act = state.script.pop(0) if state.script else serve
            with suppress(BrokenPipeError, ConnectionResetError):  # the client may give up
                act(self, state)
            self.close_connection = True

        def log_message(self, *args):
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    state.port = listener.server_address[1]
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield state
    listener.shutdown()
    listener.server_close()
