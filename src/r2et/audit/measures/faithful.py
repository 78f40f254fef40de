"""Whether the reasons are what the model uses."""

from __future__ import annotations

from r2et.audit.measures.base import AuditedRows, Measure
from r2et.audit.statistics import Columns, Mean
from r2et.metrics import faithfulness as faithfulness_of
from r2et.results import FIGURES


def faithfulness(rows: AuditedRows) -> Columns:
    """DFFOT, comprehensiveness and sufficiency (B.1.4)."""
    s = rows.settings
    measured = faithfulness_of(rows.model, s.explainer, rows.x, baseline=s.baseline)
    return dict(measured._asdict())


FAITHFULNESS = Measure(
    "faithfulness",
    faithfulness,
    {
        FIGURES["dffot"]: Mean("dffot", (0.0, 1.0)),
        FIGURES["comprehensiveness"]: Mean("comprehensiveness", (-1.0, 1.0)),
        FIGURES["sufficiency"]: Mean("sufficiency", (-1.0, 1.0)),
    },
    ("dffot", "comprehensiveness", "sufficiency"),
)
