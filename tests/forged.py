"""Packs as somebody leaves them who writes a manifest anew, so that every digest is right."""

import json

from r2et.audit import pack
from r2et.results.archive import digest, write_archive


def forged(path, members, *, audit=None, repeat=None, pages=False):
    """Write a pack of members, some of which the caller has changed.

    audit, repeat: change what the JSON files hold. What stands in both follows, and the digests of
    the files in model/; pages: and the pages.
    """
    result, again = json.loads(members["audit.json"]), json.loads(members["repeat.json"])
    inputs = result.get("inputs") or {}
    if "files" in inputs:
        own = {n.removeprefix("model/"): c for n, c in members.items() if n.startswith("model/")}
        inputs["files"] = {name: digest(content) for name, content in own.items()}
    if audit is not None:
        audit(result)
    for name in ("settings", "config", "inputs"):
        again[name] = result.get(name)
    again["command"] = (result.get("inputs") or {}).get("command")
    if repeat is not None:
        repeat(again)
    new = {"audit.json": pack._json_line(result), "repeat.json": pack._json_lines(again)}
    if pages:
        new |= pack._pages(result, again["verify"].rpartition(" ")[2])
    path.unlink(missing_ok=True)
    write_archive("test", path, {**members, **new})
