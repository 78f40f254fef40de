"""An audit as evidence: everything about it in one file that can be checked and repeated."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import torch

from r2et.audit.model_audit import Audit
from r2et.audit.pack_claims import (
    AUDIT,
    CARD,
    FACTORY,
    MODEL,
    NEEDED,
    NOT_PRINTED,
    PAGE,
    PDF,
    REPEAT,
    ROWS,
    check_claims,
    unchecked,
)
from r2et.audit.verification import TOLERANCE, Verification, compare_results
from r2et.errors import InputError, first_line, require
from r2et.machine import machine
from r2et.report.model_card import model_card, plain_name
from r2et.report.page import html
from r2et.report.pdf import Printed, printed
from r2et.results import AuditResult, check_audit
from r2et.results.archive import read_archive, write_archive
from r2et.results.rows_csv import rows_csv
from r2et.version import __version__

READ, READ_PART = (PAGE, ROWS, CARD), "page, rows and card"  # made of AUDIT, for people
# Another browser, other fonts, or another hand.
OTHER_PRINT = "the browser here prints other bytes: read page.html, or print it again"
# Whose versions can change a figure.
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "captum", "clarabel")


@dataclass(frozen=True, eq=False)
class Pack:
    """A pack whose members are all as they were written.

    path: of the file.
    audit: what it is evidence of.
    repeat: how it was made: command, settings, model, data, versions and machine.
    members: all by name.
    """

    path: str
    audit: Audit
    repeat: Mapping[str, Any]
    members: Mapping[str, bytes]

    @property
    def model_files(self) -> dict[str, bytes]:
        """The files of the model's folder."""
        return {
            name.removeprefix(MODEL): content
            for name, content in self.members.items()
            if name.startswith(MODEL)
        }

    def compare(self, again: Audit, *, tolerance: float = TOLERANCE) -> Verification:
        """What another audit has equal to the bit, within tolerance, and different.

        The page, the card and the rows, which people read, must be those of audit.json: whoever
        writes a manifest anew could have changed them. Another version of r2et words them
        otherwise; then they are not compared, and are listed as that. So is a PDF, unless the
        browser here prints the very same one.
        """
        require(isinstance(again, Audit), "compare", "again", "an Audit", type(again).__name__)
        result = self.audit.result
        comparison = compare_results(result, again.result, tolerance)
        of_factory = self.repeat["model"].get("kind") == FACTORY
        comparison = comparison.of_sources(result, again.result, resaved=of_factory)
        comparison = replace(
            comparison, unchecked={**comparison.unchecked, **unchecked(result, self.repeat)}
        )
        then = self.repeat["environment"]
        comparison = comparison.made(then, environment())
        wrote = then.get("r2et")
        if wrote != __version__:
            names = [name for name in (*READ, PDF) if name in self.members]
            return comparison.uncompared(dict.fromkeys(names, f"of r2et {wrote}"))
        pages = _pages(result, self._name)
        parts = {n: self.members[n] == pages[n] for n in READ}
        comparison = comparison.compared(READ_PART, parts)
        reason = self._other_print(pages[PAGE].decode())
        return comparison if reason is None else comparison.uncompared({PDF: reason})

    def _other_print(self, page: str) -> str | None:
        """Why nothing is known of the PDF; None where it is the page's print, or there is none."""
        if PDF not in self.members:
            return None
        paper = printed(page)
        if paper.content is None:
            return f"not printed again: {paper.reason}; page.html is what was checked"
        same = paper.content == self.members[PDF]
        return None if same else OTHER_PRINT

    @property
    def _name(self) -> str:
        """Of the file when it was written, which its card says."""
        return str(self.repeat["verify"]).rpartition(" ")[2]


def environment() -> dict[str, str]:
    """Versions and machine, by which figures may differ in their last digits."""
    installed = {name: _version(name) for name in PACKAGES}
    versions = {"r2et": __version__, "python": platform.python_version()}
    versions |= {name: own for name, own in installed.items() if own is not None}
    versions["torch"] = torch.__version__
    return {**versions, **machine(), "threads": str(torch.get_num_threads())}


def write_pack(
    where: str,
    path: str | os.PathLike[str],
    audit: Audit,
    *,
    model: Mapping[str, bytes],
    repeat: Mapping[str, Any],
) -> str | None:
    """Write the pack where there is no file yet; gives why there is no PDF in it, if so.

    model: the files of the model's folder. repeat: what a repetition has to know.
    """
    name, inputs = plain_name(Path(path).name), audit.result.get("inputs")
    check_audit(where, audit.result)
    pages = _pages(audit.result, name)
    paper: Printed = printed(pages[PAGE].decode())
    again = {
        "command": inputs["command"] if inputs else None,
        "verify": f"r2et verify {name}",
        **repeat,
        "settings": audit.result["settings"],
        "config": audit.result.get("config"),
        "inputs": inputs,
        "environment": environment(),
        "pdf": PDF if paper.content is not None else f"{NOT_PRINTED}{paper.reason}",
    }
    members = {
        AUDIT: _json_line(audit.result),
        **pages,
        REPEAT: _json_lines(again),
        **{f"{MODEL}{name}": content for name, content in model.items()},
    }
    if paper.content is not None:
        members[PDF] = paper.content
    check_claims(where, audit.result, json.loads(members[REPEAT]), members)
    write_archive(where, path, members)
    return paper.reason


def open_pack(path: str | os.PathLike[str], *, where: str = "open_pack") -> Pack:
    """The pack of a file, every member checked against its manifest; nothing is run or written."""
    is_path = isinstance(path, str | os.PathLike)
    require(is_path, where, "PACK", "a path", path)
    members = read_archive(where, path)
    for name in NEEDED:
        require(name in members, where, "PACK", f"one that holds {name}", "none")
    for name in members:
        is_known = name in (*NEEDED, PDF) or name.startswith(MODEL)
        require(is_known, where, "PACK", "of members that r2et writes", name)
    result = _parsed(where, AUDIT, members[AUDIT], _json_line)
    check_audit(f"{where}: {AUDIT}", result)
    repeat = _parsed(where, REPEAT, members[REPEAT], _json_lines)
    check_claims(where, cast(AuditResult, result), repeat, members)
    return Pack(os.fspath(path), Audit(cast(AuditResult, result)), repeat, members)


def _pages(result: AuditResult, name: str) -> dict[str, bytes]:
    """What people read of a result, in a pack of that name."""
    texts = {PAGE: html([result]), ROWS: rows_csv(result), CARD: model_card(result, name)}
    return {member: text.encode(errors="replace") for member, text in texts.items()}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _parsed(where: str, name: str, content: bytes, write: Callable[[Any], bytes]) -> Any:
    """What a member holds, which is written in one way: no entry is there twice, say."""

    def refused(number: str) -> None:
        raise ValueError(f"{number} is no number of JSON")

    try:
        value = json.loads(content, parse_constant=refused)
        same = write(value) == content
    except (ValueError, RecursionError) as error:
        sentence = f"{where}: {name} must be JSON, got an error: {first_line(error)}."
        raise InputError(sentence) from error
    require(same, where, name, "as r2et writes what it holds", "other bytes")
    return value


def _json_line(value: Any) -> bytes:
    return (json.dumps(value, allow_nan=False) + "\n").encode()


def _json_lines(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
