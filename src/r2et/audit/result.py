"""What an audit found about one model."""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import dataclass
from typing import Any

from r2et.files import write_result
from r2et.wording import floored_percent, proved_radius, rows_text

FORMAT = "r2et-audit/1"
LINES = (
    ("test AUC", "auc_clean", "{:.3f}"),
    ("  of a linear model fitted on these rows", "auc_linear", "{:.3f}"),
    ("  under attack", "auc_attacked", "{:.3f}"),
    ("P@{k}, proved at least", "certified_precision", "{:.1%}"),
    ("P@{k}, attacked at most", "precision_strong", "{:.1%}"),
    ("P@{k} under the papers' attack", "precision_er", "{:.1%}"),
    ("P@{k} under random noise", "precision_noise", "{:.1%}"),
    ("rows whose whole top {k} is proved", "certified_share", "{:.1%}"),
    ("median radius proved", "radius_certified_median", "{:.4g}"),
    ("median radius attacked", "radius_attacked_median", "{:.4g}"),
    ("thickness (share of pairs in order)", "thickness_probability", "{:.3f}"),
    ("different top-{k} sets", "distinct_top_k", "{}"),
    ("share of the commonest set", "largest_top_k_share", "{:.1%}"),
    ("DFFOT, lower is better", "dffot", "{:.3f}"),
    ("comprehensiveness, higher is better", "comprehensiveness", "{:.3f}"),
    ("sufficiency, lower is better", "sufficiency", "{:.3f}"),
    ("predictions the papers' attack changed", "sensitivity", "{:.1%}"),
)
PROVED_SHARES = ("certified_precision", "certified_share")
SPANS = {"auc_linear": "  folds {} to {}"}  # which are no interval


@dataclass(frozen=True, eq=False)
class Audit:
    """One model's audit. found: plain data, as `to_json` writes it."""

    found: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.found["name"])

    @property
    def skipped(self) -> list[dict[str, str]]:
        """What was not measured, and why."""
        return list(self.found["skipped"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per audited row; what was not measured is None."""
        columns = {k: v for k, v in self.found["rows"].items() if v is not None}
        lacking = dict.fromkeys(k for k, v in self.found["rows"].items() if v is None)
        return [
            {**lacking, **dict(zip(columns, values, strict=True))}
            for values in zip(*columns.values(), strict=True)
        ]

    def summary(self) -> dict[str, Any]:
        """Flat: each mean with _low and _high, the ends of its interval; None was skipped."""
        return dict(self.found["summary"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return dict(self.found)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything, whole or not at all."""
        write_result("to_json", path, json.dumps(self.found, allow_nan=False) + "\n")

    @staticmethod
    def from_json(path: str | os.PathLike[str]) -> Audit:
        """What `to_json` or `r2et audit --json` wrote."""
        return Audit(importlib.import_module("r2et.report").read_audit(path))

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """One page for people, in one file."""
        # Pages are made below this package, from plain data; only the name is known here.
        importlib.import_module("r2et.report").page([self.found], path)

    def __str__(self) -> str:
        """The summary as lines of text."""
        told = self.found["summary"]
        lines = [f"{self.name}: {rows_text(told['rows'])}, radius {told['radius']:g}"]
        for title, name, form in LINES:
            value = told.get(name)
            if value is not None:
                text = self._written(name, form, value)
                low, high = told.get(f"{name}_low"), told.get(f"{name}_high")
                if low is not None and high is not None:
                    ends = [self._written(name, form, end) for end in (low, high)]
                    both_bounds = ends[0] == ends[1] == text and text.startswith("at least")
                    text += "" if both_bounds else SPANS.get(name, "  [{}, {}]").format(*ends)
                lines.append(f"  {title.format(k=told['k']):42} {text}")
        lines += [f"  not measured: {s['what']}: {s['why']}" for s in self.skipped]
        return "\n".join(lines)

    def _written(self, name: str, form: str, value: float) -> str:
        """A figure as a text; of what was proved, never more than that."""
        if name in PROVED_SHARES:
            return floored_percent(value)
        text = form.format(value)
        if name != "radius_certified_median":
            return text
        return proved_radius(text, value, self.found["settings"].get("limit"))

    def __repr__(self) -> str:
        told = self.found["summary"]
        return f"Audit({self.name!r}, rows={told['rows']}, k={told['k']}, radius={told['radius']})"
