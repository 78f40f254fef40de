"""How a server is spoken to: which redirects are followed, and how long its answer may take.

Redirects: at most five, never from https to http, and to another host only from https to https.
"""

from __future__ import annotations

import http.client
import socket
import threading
import urllib.request
from contextlib import suppress
from typing import IO, Any
from urllib.parse import urlsplit

from r2et.data.sources.entry import PlaceError


def redirect_allowed(old: str, new: str) -> bool:
    """Whether a redirect may be followed: the same host without losing TLS, or https to https."""
    a, b = urlsplit(old), urlsplit(new)
    if b.scheme == "https":
        return a.scheme == "https" or a.hostname == b.hostname
    return b.scheme == "http" and a.scheme == "http" and a.netloc == b.netloc


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not redirect_allowed(req.full_url, newurl):
            fp.close()
            raise PlaceError(f"it redirects to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Plain(http.client.HTTPConnection):
    """A connection whose answer, up to the end of its headers, comes within the timeout.

    The socket's own timeout is for each read: a byte now and then would hold us for hours.
    """

    def getresponse(self) -> http.client.HTTPResponse:
        seconds = self.timeout if isinstance(self.timeout, int | float) else None
        if seconds is None or self.sock is None:
            return super().getresponse()
        late = threading.Event()

        def hang_up(sock: socket.socket = self.sock) -> None:
            late.set()
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

        watch = threading.Timer(seconds, hang_up)
        watch.daemon = True
        watch.start()
        try:
            return super().getresponse()
        except Exception as error:
            if late.is_set():
                raise TimeoutError("headers too slow") from error
            raise
        finally:
            watch.cancel()


class _Secure(http.client.HTTPSConnection, _Plain):
    """The same over TLS."""


class _HTTP(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Plain, req)


class _HTTPS(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Secure, req)


def opener() -> urllib.request.OpenerDirector:
    """What opens addresses in this way, with the proxies that the environment names now."""
    return urllib.request.build_opener(_Redirects, _HTTP, _HTTPS)
