"""What an audit found about one model, and what can be done with it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from r2et.audit.gates import Gate, GateReport, check
from r2et.files import write_result
from r2et.report import page
from r2et.report.notebook import audit_html
from r2et.report.shares import search_limit
from r2et.results import (
    FIGURES,
    INCLUDED,
    UNITS,
    AuditResult,
    Figure,
    GroupedBy,
    Skipped,
    figures_of,
    read_audit,
)
from r2et.results.training_rows import chance_sentence, is_held_out, is_included, training_sentence
from r2et.wording import ENDLESS, below_logistic, measure_words, proved_radius, rows_text

# The order on a terminal; what only this audit knows of follows.
LINES = (
    "auc_clean",
    "auc_logistic",
    "auc_boosting",
    "auc_linear",
    "auc_attacked",
    "calibration_error",
    "certified_precision",
    "precision_strong",
    "precision_er",
    "precision_noise",
    "certified_share",
    "changed_share",
    "radius_certified_median",
    "radius_attacked_median",
    "ties",
    "thickness_probability",
    "distinct_top_k",
    "largest_top_k_share",
    "dffot",
    "comprehensiveness",
    "sufficiency",
    "sensitivity",
)
WORST = 3  # rows that a terminal shows


@dataclass(frozen=True, eq=False)
class Audit:
    """One model's audit. result: plain data, as `to_json` writes it."""

    result: AuditResult

    @property
    def name(self) -> str:
        return str(self.result["name"])

    @property
    def skipped(self) -> list[Skipped]:
        """What was not measured, and why."""
        return list(self.result.get("skipped") or ())

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per audited row; what was not measured is None."""
        columns = {k: v for k, v in self.result["rows"].items() if v is not None}
        lacking = dict.fromkeys(k for k, v in self.result["rows"].items() if v is None)
        return [
            {**lacking, **dict(zip(columns, values, strict=True))}
            for values in zip(*columns.values(), strict=True)
        ]

    def summary(self) -> dict[str, Any]:
        """Flat: each mean with _low and _high, the ends of its interval; None was skipped."""
        return dict(self.result["summary"])

    def check(self, gates: Iterable[str | Gate]) -> GateReport:
        """What becomes of gates such as ["certified_share>=0.9", "distinct_top_k>=2"].

        The report is true where all passed; a figure that was not measured passes nothing.
        """
        return check(self.result, gates)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return cast(dict[str, Any], dict(self.result))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything, whole or not at all."""
        write_result("to_json", path, json.dumps(self.result, allow_nan=False) + "\n")

    @staticmethod
    def from_json(path: str | os.PathLike[str]) -> Audit:
        """What `to_json` or `r2et audit --json` wrote."""
        return Audit(read_audit(path))

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """One page for people, in one file."""
        page([self.result], path)

    def to_pack(self, path: str | os.PathLike[str], model: Any = None) -> str | None:
        """All evidence in one .zip file that is not there yet: see `r2et.audit.open_pack`.

        model: what was audited, whose weights are then part of it. Gives why there is no PDF in
        it, where no browser could print one.
        """
        from r2et.audit.packing import pack_audit  # which stands on audits

        return pack_audit(path, self, model)

    def log_mlflow(self, *, prefix: str = "r2et.", run_id: str | None = None) -> str:
        """Figures, settings, digests, page and JSON to MLflow's active run, or that of run_id.

        Without either a run is begun and ended. prefix: of all names. Gives the run's id.
        """
        from r2et.audit.mlflow_log import log_mlflow  # brings mlflow, an extra

        return log_mlflow(self, prefix=prefix, run_id=run_id)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return audit_html(self.result)

    def __str__(self) -> str:
        """The summary as lines of text."""
        summary = self.result["summary"]
        known = figures_of(self.result)
        names = [*LINES, *(name for name in known if name not in FIGURES)]
        head = f"{self.name}: {rows_text(summary['rows'])}, {self._changes_allowed()}"
        training = training_sentence(self.result)
        first = [f"{self.name}: {training}"] if training else []
        loud = below_logistic(summary.get("auc_clean"), summary.get("auc_logistic"))
        loud = "" if self._only else loud  # of rows that the model chose itself
        top = [*first, head, *([loud] if loud else [])]
        lines = [
            self._line(known[name])
            for name in names
            if summary.get(name) is not None or self._is_endless(name)
        ]
        groups = [line for by in self.result.get("grouped_by") or () for line in _group_lines(by)]
        chance = chance_sentence(self.result)
        observed = [*(self.result.get("notes") or ()), *([chance] if chance else [])]
        notes = [f"  note: {note}" for note in observed]
        skipped = (
            f"  {s['why']}" if s["why"].startswith("not proved: ") else _not_measured(s)
            for s in self.skipped
        )
        figures = [*lines, *groups, *self._proof()]
        return "\n".join([*top, *figures, *notes, *skipped, *self._worst()])

    def _changes_allowed(self) -> str:
        """How far rows were moved: a radius, or what may change of a table."""
        radius = self.result["summary"].get("radius")
        settings = self.result["settings"]
        moved = str(settings.get("region")) if radius is None else f"radius {radius:g}"
        moved = f"{moved}, decided {self._only}" if self._only else moved
        cutoff = settings.get("cutoff")
        return moved if cutoff is None else f"{moved}, decided at {cutoff:g}"

    @property
    def _only(self) -> str:
        """The class that all rows are decided for, where only such were asked for."""
        return str(self.result["settings"].get("only") or "")

    def _proof(self) -> list[str]:
        """How rows were proved, where that is no radius."""
        proof = self.result.get("proof")
        return [f"  proof: {proof[0].lower()}{proof[1:]}"] if proof else []

    def _worst(self) -> list[str]:
        """The rows that fared worst under changes that they could really have, and by which."""
        if self.result["summary"].get("radius") is not None:
            return []
        lines = []
        for row in self.result["shown"]:
            step = row["steps"][-1] if row["steps"] else None
            changes = [] if step is None else step.get("changes") or []
            if step is None or row["kind"] != "worst" or not changes:
                continue
            k, kept = self.result["summary"]["k"], step.get("precision") or 0.0
            moved = ", ".join(f"{c['column']}: {c['before']} -> {c['after']}" for c in changes)
            who = f"row {row['index']}{self._id(row['index'])}"
            lines.append(f"  {who} keeps {round(kept * k)} of {k}: {moved}")
        return lines[:WORST]

    def _id(self, index: int) -> str:
        """What a row is called by the column that says who it is, where one was given."""
        rows = self.result["rows"]
        ids, places = rows.get("id"), rows.get("index")
        return f", id {ids[places.index(index)]}" if ids and places and index in places else ""

    def _is_endless(self, name: str) -> bool:
        """A radius that no attack found for most rows: no number, but larger than any."""
        behind = (self.result.get("counts") or {}).get(name)
        return name == "radius_attacked_median" and bool(behind)

    def _line(self, figure: Figure) -> str:
        """A figure with its title and, where it has them, the ends of its interval."""
        summary = self.result["summary"]
        value, limit = summary.get(figure.name), search_limit(self.result)
        if value is None:
            beyond = ENDLESS if limit is None else f"above {limit:g}, the largest looked for"
            return f"  {figure.line:42} {beyond}"
        text = self._written(figure, value)
        low, high = summary.get(f"{figure.name}_low"), summary.get(f"{figure.name}_high")
        if low is not None and high is not None:
            least, most = self._written(figure, low), self._written(figure, high)
            one_bound = least == most == text and text.startswith("at least")
            ends = f"{figure.ends} {least} to {most}" if figure.ends else f"[{least}, {most}]"
            text += "" if one_bound else f"  {ends}"
        title = (figure.line or figure.label).replace("{k}", str(summary["k"]))
        if figure.name == "auc_clean" and self._only:
            title = f"AUC, rows decided {self._only}"
        elif figure.name == "auc_clean" and is_held_out(self.result):
            title = "test AUC"
        elif figure.name == "auc_clean" and is_included(self.result):
            title = f"AUC, {INCLUDED}"
        elif figure.name == "auc_boosting" and low is not None:  # measured on these rows
            title = "  of boosting"
        return f"  {title:42} {text}"

    def _written(self, figure: Figure, value: float) -> str:
        """A figure as a text; of what was proved, never more than that."""
        text = UNITS[figure.unit].terminal(value)
        if not figure.proved_radius:
            return text
        return proved_radius(text, value, search_limit(self.result))

    def __repr__(self) -> str:
        summary = self.result["summary"]
        changes = self._changes_allowed().replace("radius ", "radius=")
        settings = f"rows={summary['rows']}, k={summary['k']}, {changes}"
        return f"Audit({self.name!r}, {settings})"


def _group_lines(by: GroupedBy) -> list[str]:
    """The groups of a column, one a line."""
    lines = [f"  by {by['column']}"]
    for group in by["groups"]:
        text = rows_text(group["rows"])
        if group["auc"] is not None:
            text += f", AUC {group['auc']:.3f}"
        if group["auc_low"] is not None and group["auc_high"] is not None:
            text += f" [{group['auc_low']:.3f}, {group['auc_high']:.3f}]"
        if group["predicted"] is not None and group["observed"] is not None:
            text += f", predicted {group['predicted']:.1%}, came true {group['observed']:.1%}"
        lines.append(f"    {group['value']:40} {text}")
    return lines


def _not_measured(skipped: Skipped) -> str:
    return f"  not measured: {measure_words(skipped['what'])}: {skipped['why']}"
