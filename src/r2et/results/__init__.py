"""What an audit writes and a report reads: typed, plain data, below both."""

from r2et.results.audit_schema import (
    FORMAT,
    INCLUDED,
    AuditResult,
    ColumnChange,
    CurvePoint,
    ExampleRow,
    ExampleStep,
    GateVerdict,
    Skipped,
    TrainingRows,
)
from r2et.results.figures import BASELINES, FIGURES, UNITS, Figure, figures_of
from r2et.results.reading import check_audit, read_audit
from r2et.results.row_tables import CalibrationBin, GroupedBy, Inputs, Source, Subgroup
from r2et.results.training_rows import is_included, training_sentence

__all__ = [
    "BASELINES",
    "FIGURES",
    "FORMAT",
    "INCLUDED",
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
    "TrainingRows",
    "check_audit",
    "figures_of",
    "is_included",
    "read_audit",
    "training_sentence",
]
