"""What the code of pages prints: `python perf/pages.py [PAGE ...]`, for tools/measured.py.

Of every page with a `<!-- printed -->` mark the blocks of Python and of `r2et` commands are run in
their order, in an empty folder with MNIST's files in it where R2ET_DATA has them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import recording

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.M | re.S)


def run(kind: str, code: str, space: dict[str, Any]) -> str:
    """Standard output of a block."""
    if kind == "python":
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, "page", "exec"), space)
        return said.getvalue()
    lines = [line for line in code.splitlines() if line.startswith("r2et ")]
    done = [
        subprocess.run(
            [sys.executable, "-m", *line.split()], capture_output=True, text=True, check=True
        )
        for line in lines
    ]
    return "".join(one.stdout for one in done)


def page(path: Path) -> list[dict[str, Any]]:
    """Every block of a page: its code, what it printed, and how long it took."""
    found = []
    space: dict[str, Any] = {}
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        digits = Path(os.environ.get("R2ET_DATA", "nowhere"), "mnist")
        if digits.is_dir():
            os.symlink(digits.resolve(), "mnist")
        try:
            for kind, code in BLOCK.findall(path.read_text()):
                began = time.time()
                text = run(kind, code, space)
                seconds = round(time.time() - began, 1)
                print(f"{path.name}: {seconds} s", file=sys.stderr, flush=True)
                where = str(path.relative_to(ROOT))
                found.append({"page": where, "code": code, "printed": text, "seconds": seconds})
        finally:
            os.chdir(before)
    return found


def main() -> None:
    """Run the pages given, or all that show what they print; other pages' records stay."""
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    if not pages:
        every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        pages = [path for path in every if "<!-- printed -->" in path.read_text()]
    done = {str(path.relative_to(ROOT)) for path in pages}
    old: list[dict[str, Any]] = []
    with contextlib.suppress(FileNotFoundError):
        old = [b for b in recording.load_record("pages")["blocks"] if b["page"] not in done]
    blocks = [*old, *(block for path in pages for block in page(path))]
    recording.save("pages", {"blocks": sorted(blocks, key=lambda b: json.dumps(b["page"]))})


if __name__ == "__main__":
    main()
