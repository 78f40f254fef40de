"""What an audit writes and a report reads: typed, plain data, below both."""

from r2et.results.audit_schema import (
    FORMAT,
    AuditResult,
    ColumnChange,
    CurvePoint,
    ExampleRow,
    ExampleStep,
    GateVerdict,
    Skipped,
)
from r2et.results.figures import FIGURES, UNITS, Figure, figures_of
from r2et.results.reading import check_audit, read_audit
from r2et.results.row_tables import CalibrationBin, GroupedBy, Inputs, Source, Subgroup

__all__ = [
    "FIGURES",
    "FORMAT",
    "UNITS",
    "AuditResult",
    "CalibrationBin",
    "ColumnChange",
    "CurvePoint",
    "ExampleRow",
    "ExampleStep",
    "Figure",
    "GateVerdict",
    "GroupedBy",
    "Inputs",
    "Skipped",
    "Source",
    "Subgroup",
    "check_audit",
    "figures_of",
    "read_audit",
]
