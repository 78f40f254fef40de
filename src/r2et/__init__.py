"""Neural networks whose top-k explanations hold still, and how still, by attack and by proof."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from r2et.version import __version__

if TYPE_CHECKING:
    from r2et.audit import audit
    from r2et.estimator import R2ETClassifier
    from r2et.reason import reasons

__all__ = ["R2ETClassifier", "__version__", "audit", "reasons"]

# Imported when they are asked for: `import r2et` should not wait for torch.
NAMES = {"R2ETClassifier": "r2et.estimator", "reasons": "r2et.reason"}
PACKAGES = (
    "attack",
    "audit",
    "certify",
    "data",
    "engine",
    "explain",
    "metrics",
    "models",
    "penalty",
    "rank",
    "reason",
    "region",
    "train",
)


def __getattr__(name: str) -> Any:
    if name in PACKAGES:
        return importlib.import_module(f"r2et.{name}")
    if name in NAMES:
        return getattr(importlib.import_module(NAMES[name]), name)
    raise AttributeError(f"module 'r2et' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES, *PACKAGES})
