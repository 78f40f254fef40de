"""Everything an audit measures about rows: one small function each, in one registry.

Registered in the order of their worth: where time runs out, the last are left out first.
"""

from r2et.audit.measures.attacks import PAPERS, SMALLEST, STRONG, attacked_radius
from r2et.audit.measures.base import LATE, MEASURES, AuditedRows, Measure, check_labels, register
from r2et.audit.measures.chunk import (
    MeasureChunk,
    MeasuredChunk,
    worst_first,
)
from r2et.audit.measures.faithful import FAITHFULNESS
from r2et.audit.measures.neighbourhood import CURVATURE, NOISE_FLOOR, THICKNESS
from r2et.audit.measures.predictions import CLEAN
from r2et.audit.measures.proofs import CERTIFIED

for _measure in (
    CLEAN,
    CERTIFIED,
    STRONG,
    SMALLEST,
    NOISE_FLOOR,
    THICKNESS,
    FAITHFULNESS,
    PAPERS,
    CURVATURE,
):
    register(_measure)

__all__ = [
    "LATE",
    "MEASURES",
    "AuditedRows",
    "Measure",
    "MeasureChunk",
    "MeasuredChunk",
    "attacked_radius",
    "check_labels",
    "register",
    "worst_first",
]
