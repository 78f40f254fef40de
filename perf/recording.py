"""How measurements are kept: one JSON file each, with what they were made on."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import platform
import tokenize
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

import r2et
from r2et.version import __version__

RECORDS = Path(__file__).parent / "records"
SOURCE = Path(r2et.__file__).parent


def load_record(name: str) -> dict[str, Any]:
    """What an earlier run wrote."""
    found: dict[str, Any] = json.loads((RECORDS / f"{name}.json").read_text())
    return found


def save(name: str, measured: dict[str, Any]) -> None:
    """Write records/name.json: versions, machine, date, and what was measured."""
    made_with = {
        "r2et": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }
    RECORDS.mkdir(exist_ok=True)
    text = json.dumps({**made_with, **measured}, indent=1)
    (RECORDS / f"{name}.json").write_text(text + "\n")


def digest(*packages: str) -> str:
    """Of the code of these packages of r2et, whatever their docstrings and comments say."""
    code = hashlib.sha256()
    for package in packages:
        for path in sorted((SOURCE / package).rglob("*.py")):
            code.update(path.relative_to(SOURCE).as_posix().encode())
            code.update(without_prose(path.read_text()).encode())
    return code.hexdigest()[:12]


def without_prose(source: str) -> str:
    """The source without docstrings, comments and blank lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        first = node.body[0] if node.body else None
        if ast.get_docstring(node, clean=False) is not None and first is not None:
            for row in range(first.lineno, (first.end_lineno or first.lineno) + 1):
                lines[row - 1] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())
