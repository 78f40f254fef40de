"""Everything above, brought together about one model. The module itself can be called: audit()."""

import sys
from functools import wraps
from types import ModuleType
from typing import Any

from r2et.audit.bracket import Bracket, bracket
from r2et.audit.comparison import Comparison, compare
from r2et.audit.gates import Gate, GateReport
from r2et.audit.measures import AuditedRows, Measure, register
from r2et.audit.model_audit import Audit
from r2et.audit.onnx_model import from_onnx
from r2et.audit.pack import Pack, open_pack
from r2et.audit.run import audit
from r2et.audit.statistics import Mean, Median, Share
from r2et.audit.verification import Verification
from r2et.results import Figure

__all__ = [
    "Audit",
    "AuditedRows",
    "Bracket",
    "Comparison",
    "Figure",
    "Gate",
    "GateReport",
    "Mean",
    "Measure",
    "Median",
    "Pack",
    "Share",
    "Verification",
    "audit",
    "bracket",
    "compare",
    "from_onnx",
    "open_pack",
    "register",
]


class _Callable(ModuleType):
    """`from r2et import audit` finds this module, once it is imported, and must give a function."""

    @wraps(audit)
    def __call__(self, *args: Any, **kwargs: Any) -> Audit:
        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
