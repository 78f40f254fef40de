"""The page on paper: printed by a browser, where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from r2et.errors import first_line

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
)
SECONDS = 120
# When a browser printed, which is no part of what it printed.
DATED = re.compile(rb"/(CreationDate|ModDate) \(D:[0-9+\-'Z]*\)")

# Parts of the page by numbers that a browser now and then begins elsewhere.
NODE = re.compile(rb"\(node(\d{8})\)")


class Printed(NamedTuple):
    """A page as PDF; or None, and why."""

    content: bytes | None
    reason: str | None = None


def browser() -> str | None:
    """The first browser on the path that can print without a screen."""
    return next((path for name in BROWSERS if (path := shutil.which(name)) is not None), None)


def printed(html: str) -> Printed:
    """The page as PDF, with one date and numbers from 1: the same page is the same bytes."""
    program = browser()
    if program is None:
        return Printed(None, f"no browser here ({', '.join(BROWSERS)})")
    try:
        with tempfile.TemporaryDirectory(prefix="r2et-pdf-", ignore_cleanup_errors=True) as name:
            content = _print(program, html, Path(name))
    except subprocess.TimeoutExpired:
        return Printed(None, f"{Path(program).name} took longer than {SECONDS} seconds")
    except subprocess.CalledProcessError:
        return Printed(None, f"{Path(program).name} did not print it")
    except OSError as error:  # a temporary folder that is full, or none
        reason = error.strerror or first_line(error)
        return Printed(None, f"{Path(program).name} did not print it: {reason}")
    if not content.startswith(b"%PDF-"):
        return Printed(None, f"{Path(program).name} did not print it")
    return Printed(_renumbered(DATED.sub(_undated, content)))


def _print(program: str, html: str, folder: Path) -> bytes:
    page, out = folder / "page.html", folder / "page.pdf"
    page.write_text(html, encoding="utf-8", errors="replace")
    # The page runs its own script alone and loads nothing; root has no sandbox to use.
    sandbox = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    command = [
        program,
        "--headless",
        *sandbox,
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={folder / 'profile'}",
        "--no-pdf-header-footer",
        f"--print-to-pdf={out}",
        page.as_uri(),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    return out.read_bytes() if out.is_file() else b""


def _renumbered(content: bytes) -> bytes:
    """Parts of the page numbered from 1, in the same order and as long: the file stays sorted."""
    places = {old: place for place, old in enumerate(sorted(set(NODE.findall(content))), 1)}
    return NODE.sub(lambda match: b"(node%08d)" % places[match[1]], content)


def _undated(match: re.Match[bytes]) -> bytes:
    """The same entry of the same length, of 1980: places in the file stay as they are."""
    whole, name = match.group(0), match.group(1)
    room = len(whole) - len(name) - len("/ (D:)")
    return b"/" + name + b" (D:" + b"19800101000000Z".ljust(room, b"0")[:room] + b")"
