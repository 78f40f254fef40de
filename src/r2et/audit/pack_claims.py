"""What a pack says of itself: held against its own members, and what of it nobody can check."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from r2et.audit.inputs import DESCRIPTION, TEST_PART
from r2et.errors import require
from r2et.report.model_card import PACK_NAME
from r2et.results import AuditResult
from r2et.results.archive import digest

AUDIT, PAGE, PDF, ROWS = "audit.json", "page.html", "page.pdf", "rows.csv"
CARD, REPEAT, MODEL = "model-card.md", "repeat.json", "model/"
NEEDED = (AUDIT, PAGE, ROWS, CARD, REPEAT)
FOLDER, FACTORY, MODULE = "folder", "factory", "module"  # kinds of models
TEST, NAMED, FILE, MEMORY = "test part", "data set", "file", "memory"  # kinds of data
WEIGHTS, TEXT = "weights.safetensors", "model.txt"
FOLDER_FILE = re.compile(r"model\.json|(weights|rows)-[0-9a-f]{16}\.safetensors", re.ASCII)
ENTRIES = ("command", "verify", "model", "data", "request", "run")  # of repeat.json
COPIED = ("settings", "config", "inputs")  # there, and in audit.json
ENVIRONMENT, PRINTED, NOT_PRINTED = "environment", "pdf", "not printed: "
DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
OF_THE_RUN: tuple[str, ...] = ("date", "seconds", "durations", "versions")
BASELINES = ("auc_logistic", "auc_boosting")  # of models that a folder keeps


def module_text(spec: Any) -> str:
    """The member that holds the text of a factory's module, where there is one."""
    return f"{str(spec).partition(':')[0].rpartition('.')[2]}.py.txt"


def check_claims(
    where: str, result: AuditResult, repeat: Any, members: Mapping[str, bytes]
) -> None:
    """repeat.json says what audit.json says, and both what the members are."""
    require(isinstance(repeat, Mapping), where, REPEAT, "an object", type(repeat).__name__)
    expected = {*ENTRIES, *COPIED, ENVIRONMENT, PRINTED}
    strange = sorted(expected.symmetric_difference(repeat))
    require(not strange, where, REPEAT, "of the entries that r2et writes", ", ".join(strange))
    for name in COPIED:
        same = _text(repeat[name]) == _text(result.get(name))
        require(same, where, f"{REPEAT}: {name}", f"that of {AUDIT}", "another")
    inputs: Mapping[str, Any] = result.get("inputs") or {}
    same = repeat["command"] == inputs.get("command")
    require(same, where, f"{REPEAT}: command", f"that of {AUDIT}", repeat["command"])
    words = str(repeat["verify"]).split(" ")
    is_valid = words[:2] == ["r2et", "verify"] and len(words) == 3
    is_valid = is_valid and PACK_NAME.fullmatch(words[2]) is not None
    wanted = "r2et verify and a plain name"
    require(is_valid, where, f"{REPEAT}: verify", wanted, repeat["verify"])
    paper = str(repeat[PRINTED])
    is_valid = paper == PDF if PDF in members else paper.startswith(NOT_PRINTED)
    require(is_valid, where, f"{REPEAT}: {PRINTED}", "what is in the pack", repeat[PRINTED])
    versions = repeat[ENVIRONMENT]
    is_valid = isinstance(versions, Mapping) and _texts(versions)
    require(is_valid, where, f"{REPEAT}: {ENVIRONMENT}", "an object of texts", versions)
    for part in ("model", "data"):
        is_valid = isinstance(repeat[part], Mapping)
        require(is_valid, where, f"{REPEAT}: {part}", "an object", repeat[part])
    request = repeat["request"]
    called = request.get("name") if isinstance(request, Mapping) else None
    same = called is None or called == result["name"]
    require(same, where, f"{AUDIT}: name", f"that of {REPEAT}", result["name"])
    _check_run(where, result, versions, made_here=repeat["data"].get("kind") != MEMORY)
    for part in ("data", "weights"):
        source = inputs.get(part) or {}
        for own in (source.get("sha256"), source.get("tensors")):
            is_valid = own is None or DIGEST.fullmatch(str(own)) is not None
            require(is_valid, where, f"{AUDIT}: inputs.{part}", "told apart by a SHA-256", own)
    _check_model(where, repeat["model"], inputs, members)
    _check_data(where, repeat["data"], inputs.get("data") or {})


def _check_run(
    where: str, result: AuditResult, environment: Mapping[str, str], *, made_here: bool
) -> None:
    """When, how long and with which versions, in the form in which it is written."""
    date = result.get("date")
    is_valid = date is None or DATE.fullmatch(str(date)) is not None
    require(is_valid, where, f"{AUDIT}: date", "a date such as 2026-01-31", date)
    minutes = result["settings"].get("minutes")
    is_valid = minutes is None or (type(minutes) in (int, float) and 0 < minutes < math.inf)
    require(is_valid, where, f"{AUDIT}: settings.minutes", "null or a positive number", minutes)
    versions = result.get("versions") or {}
    require(_texts(versions), where, f"{AUDIT}: versions", "an object of texts", versions)
    same = not made_here or all(environment.get(n) == own for n, own in versions.items())
    require(same, where, f"{AUDIT}: versions", f"those of {REPEAT}", versions)


def _check_model(
    where: str, model: Mapping[str, Any], inputs: Mapping[str, Any], members: Mapping[str, bytes]
) -> None:
    """The files in model/ are those that such a model has, and those that were audited."""
    kind: Any = model.get("kind")
    known = kind in (FOLDER, FACTORY, MODULE)
    require(known, where, f"{REPEAT}: model", "a folder or a factory", kind)
    files = {n.removeprefix(MODEL): c for n, c in members.items() if n.startswith(MODEL)}
    allowed = {FACTORY: {WEIGHTS, module_text(model.get("name"))}, MODULE: {WEIGHTS, TEXT}}
    for name in files:
        is_known = FOLDER_FILE.fullmatch(name) if kind == FOLDER else name in allowed[kind]
        expected = f"of members that r2et writes of a {kind}"
        require(bool(is_known), where, "PACK", expected, f"{MODEL}{name}")
    if kind != FOLDER:
        return
    recorded = inputs.get("files") or {}
    for name in sorted({*recorded, *files}):
        own = digest(files[name]) if name in files else "none"
        expected = f"the file that was audited (SHA-256 {str(recorded.get(name))[:16]}...)"
        got = own if name not in files else f"one of SHA-256 {own[:16]}..."
        require(recorded.get(name) == own, where, f"{MODEL}{name}", expected, got)


def _check_data(where: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> None:
    """What audit.json says of the rows is of the kind of data that repeat.json names."""
    place, kind = f"{AUDIT}: inputs.data", data.get("kind")
    known = kind in (TEST, NAMED, FILE, MEMORY)
    require(known, where, f"{REPEAT}: data", "a file, a data set or a test part", kind)
    if kind == MEMORY:
        return
    name: Any
    if kind == FILE:
        name, of = PurePath(str(data.get("path"))).name, "file"
    else:
        name, of = TEST_PART if kind == TEST else data.get("name"), "tensors"
    same = source.get("name") == name and source.get("of") == of
    same = same and (of == "file" or source.get("tensors") is None)
    require(same, where, place, f"of the {kind} {name}", source.get("name"))


def unchecked(result: AuditResult, repeat: Mapping[str, Any]) -> dict[str, str]:
    """What a repetition does not tell about, by place, and why."""
    reasons: dict[str, str] = {
        name: "of the run, and no figure" for name in OF_THE_RUN if name in result
    }
    if result["settings"].get("minutes") is not None:
        reasons["settings.minutes"] = "of the run, and no figure"
    if repeat["request"] is not None:
        reasons["name"] = "what the model is called"
    inputs: Mapping[str, Any] = result.get("inputs") or {}
    if inputs.get("command") is not None:
        reasons["inputs.command"] = f"what was typed; what is repeated is in {REPEAT}"
    if repeat["model"].get("kind") == FOLDER:
        why = f"as {MODEL}{DESCRIPTION} has them, not fitted again; --model FOLDER compares it"
        summary = result["summary"]
        names = (f"summary.{name}" for name in BASELINES if summary.get(name) is not None)
        reasons |= dict.fromkeys((*names, "names"), why)
    return reasons


def _texts(values: Any) -> bool:
    return isinstance(values, Mapping) and all(
        isinstance(own, str) and len(own) <= 200 and own.isprintable() for own in values.values()
    )


def _text(value: Any) -> str:
    return json.dumps(value)
