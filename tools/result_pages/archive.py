"""Records, claims and panels of a run that are kept with the pages: one compressed file per run.

docs/records/RUN.jsonl.xz has a line of JSON for each; `kind` says which of the three it is.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from r2et.bench.claim import Claim
from r2et.bench.figure_plans import FIGURES
from r2et.bench.panel import Panel
from r2et.bench.record import Record, parse
from r2et.bench.schedule import Plan
from r2et.bench.task import BenchTask
from r2et.config import config_key
from r2et.files import write

END = ".jsonl.xz"


@dataclass
class Archive:
    """What is kept of one run: records, claims and panels, each by its name."""

    records: dict[str, Record] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    panels: dict[str, Panel] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Archive:
        """The archive in a file; an empty one where there is no file."""
        archive = cls()
        if not path.exists():
            return archive
        text = lzma.decompress(path.read_bytes()).decode()
        for line in filter(None, text.split("\n")):  # a text within may hold other line ends
            stored = json.loads(line)
            kind = stored.pop("kind")
            if kind == "record":
                record = Record.from_dict(stored, stored.pop("name"))
                archive.records[record.name] = record
            elif kind == "claim":
                claim = Claim.from_dict(stored)
                archive.claims[claim.name] = claim
            else:
                panel = Panel.from_dict(stored)
                archive.panels[panel.name] = panel
        return archive

    def write(self, path: Path) -> None:
        """The same content gives the same bytes."""
        lines = [
            {"kind": "record", "name": record.name, **record.to_dict()}
            for record in sorted(self.records.values(), key=_alike_together)
        ]
        for kind, items in (("claim", self.claims), ("panel", self.panels)):
            lines += [{"kind": kind, **items[name].to_dict()} for name in sorted(items)]
        content = "".join(map(_line, lines)).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))

    def add_run(self, folder: Path) -> None:
        """Take over what `r2et bench --out FOLDER` left; what has the same name is replaced.

        Networks stay behind, and so does the name of the machine.
        """
        for path in sorted((folder / "records").glob("*.json")):
            record = parse(path)
            made = {key: value for key, value in record.made.items() if key != "host"}
            self.records[record.name] = replace(record, made=made)
        for path in sorted((folder / "claims").glob("*/*.json")):
            text, source = path.read_text(encoding="utf-8"), str(path)
            if path.parent.name not in FIGURES:
                claim = Claim.from_json(text, source)
                self.claims[claim.name] = claim
            else:
                panel = Panel.from_json(text, source)
                self.panels[panel.name] = panel

    def claims_of(self, table: str) -> list[Claim]:
        """The claims of one table, in the order of their names."""
        return [self.claims[name] for name in sorted(self.claims) if name.startswith(f"{table}/")]

    def panels_of(self, figure: str) -> list[Panel]:
        """The panels of one figure, in the order of their names."""
        return [self.panels[name] for name in sorted(self.panels) if name.startswith(f"{figure}/")]

    def find(self, task: BenchTask) -> Record:
        """A task's record, or that of the newest version before; KeyError where there is none."""
        config = task.config()
        for version in range(config["version"], 0, -1):
            name = f"{task.title}-{config_key({**config, 'version': version})}"
            if name in self.records:
                return self.records[name]
        raise KeyError(task.name)

    def replay(self, plan: Plan) -> Any:
        """What a plan makes of the records that are there."""
        try:
            wanted = next(plan)
            while True:
                wanted = plan.send([self.find(task) for task in wanted])
        except StopIteration as end:
            return end.value


def archives(folder: Path) -> dict[str, Archive]:
    """Every archive of a folder, by the name of its run."""
    paths = sorted(folder.glob(f"*{END}"))
    return {path.name.removesuffix(END): Archive.read(path) for path in paths}


def merged(every: Iterable[Archive]) -> tuple[dict[str, Claim], dict[str, Panel]]:
    """Claims and panels of all runs together."""
    claims: dict[str, Claim] = {}
    panels: dict[str, Panel] = {}
    for archive in every:
        claims |= archive.claims
        panels |= archive.panels
    return claims, panels


def _alike_together(record: Record) -> tuple[str, str]:
    """Records of one measurement side by side: they compress best so."""
    return str(record.config.get("name")), record.name


def _line(data: dict[str, Any]) -> str:
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text + "\n"
