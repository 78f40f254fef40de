"""Whether the reasons are what the model uses."""

from __future__ import annotations

from r2et.audit.decision import AtCutoff
from r2et.audit.measures.base import AuditedRows, Measure
from r2et.audit.statistics import Columns, Mean
from r2et.metrics import faithfulness as faithfulness_of
from r2et.results import FIGURES


def faithfulness(rows: AuditedRows) -> Columns:
    """DFFOT, comprehensiveness and sufficiency (B.1.4)."""
    s = rows.settings
    measured = faithfulness_of(rows.model, s.explainer, rows.x, baseline=s.baseline)
    if not isinstance(rows.model, AtCutoff):
        return dict(measured._asdict())
    # Whether the decision flips is at the cut-off; probabilities are the model's own.
    target = rows.target.to(rows.x.device)
    own = faithfulness_of(rows.model.model, s.explainer, rows.x, baseline=s.baseline, target=target)
    return {**own._asdict(), "dffot": measured.dffot}


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
