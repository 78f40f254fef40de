"""The rows of an audit as a table for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from r2et.files import characters, csv_text
from r2et.results.audit_schema import AuditResult


def rows_csv(audit: AuditResult) -> str:
    """One line per row, what was not measured left out; reasons by name, the strongest first."""
    import pandas as pd

    names, classes = audit.get("names"), audit.get("classes")
    columns: dict[str, list[Any]] = {}
    for name, values in audit["rows"].items():
        if values is None:
            continue
        if name == "top":
            columns[name] = ["; ".join(_called(place, names) for place in own) for own in values]
        elif name in ("target", "label") and classes:
            columns[name] = ["" if own is None else _called(own, classes) for own in values]
        else:
            columns[name] = [characters(value) for value in values]
    return csv_text(pd.DataFrame({characters(name): own for name, own in columns.items()}))


def _called(place: int, names: Sequence[str] | None) -> str:
    return str(place) if not names else str(characters(names[place]))
