"""Several models side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from r2et.audit.model_audit import Audit
from r2et.config import alike
from r2et.errors import require
from r2et.files import write_result
from r2et.metrics import paired_test, pareto_front
from r2et.report import page

SETTINGS = ("k", "radius", "norm", "region", "explainer")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Audits of several models at the same k and region."""

    audits: tuple[Audit, ...]

    def summary(self) -> dict[str, dict[str, Any]]:
        """Each model's summary, by its name."""
        return {audit.name: audit.summary() for audit in self.audits}

    def front(self, stability: str = "precision_strong") -> list[str]:
        """The models that no other beats in both accuracy and stability (Fig. 7)."""
        points = {
            name: (summary["auc_clean"], summary[stability])
            for name, summary in self.summary().items()
            if summary["auc_clean"] is not None and summary[stability] is not None
        }
        names = list(points)
        return [names[i] for i in sorted(pareto_front(list(points.values())))]

    def difference(self, name: str, other: str, column: str = "precision_strong") -> Any:
        """Paired t-test of a column over the rows that both models were audited on."""
        one, two = self._column(name, column), self._column(other, column)
        shared = sorted(one.keys() & two.keys())
        expected = f"measured on at least 2 rows of both {name} and {other}"
        require(len(shared) > 1, "difference", "column", expected, column)
        return paired_test([one[i] for i in shared], [two[i] for i in shared])

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Every audit whole, in one file."""
        results = [audit.result for audit in self.audits]
        write_result("to_json", path, json.dumps(results, allow_nan=False) + "\n")

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """One page for people, in one file."""
        page([audit.result for audit in self.audits], path)

    def _column(self, name: str, column: str) -> dict[int, float]:
        names = [audit.name for audit in self.audits]
        require(name in names, "difference", "name", f"one of {', '.join(names)}", name)
        rows = self.audits[names.index(name)].result["rows"]
        require(column in rows, "difference", "column", f"one of {', '.join(rows)}", column)
        # None may mean that no attack given one: leaving those rows out would favour the weaker.
        endless = column in ("radius_attacked", "first_flip")
        require(not endless, "difference", "column", "one with a number for every row", column)
        pairs = zip(rows["index"] or [], rows[column] or [], strict=False)
        return {index: value for index, value in pairs if value is not None}


def compare(audits: Iterable[Audit]) -> Comparison:
    """Audits at one k, in one region, of one explanation; each model under a name of its own."""
    given = tuple(audits)
    is_valid = len(given) > 0 and all(isinstance(audit, Audit) for audit in given)
    require(is_valid, "compare", "audits", "at least one Audit", given)
    names = [audit.name for audit in given]
    double = next((name for name in names if names.count(name) > 1), None)
    expected = "of different names (give audit(..., name=...))"
    require(double is None, "compare", "audits", expected, f"{double} twice")
    for name in SETTINGS:
        values = {audit.result["settings"].get(name) for audit in given}
        same = alike((audit.result.get("config") for audit in given), name)
        same = len(values) == 1 if same is None else same
        require(same, "compare", "audits", f"of one {name}", sorted(values))
    return Comparison(given)
