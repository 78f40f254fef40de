"""Settings as a reader understands them, in place of how Python writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from r2et.report.shares import moves_of
from r2et.report.words import listed
from r2et.results import AuditResult
from r2et.wording import finite, significant

EXPLAINERS = {
    "Gradient": "gradient",
    "GradientTimesInput": "gradient times input",
    "SmoothGrad": "SmoothGrad",
    "IntegratedGradients": "integrated gradients",
    "Concept": "concepts",
}
REDUCED = {"abs": "absolute values", "abs_sum": "absolute values, summed over channels"}
BALLS = {"L2": "Euclidean length", "Linf": "change of each feature"}


def region(audit: AuditResult) -> str:
    """Which changes are allowed."""
    config, moves = _config(audit, "region"), moves_of(audit)
    if moves is not None:
        return f"at most {moves}"
    if config.get("name") not in BALLS:
        return _described(config) or str(audit["settings"].get("region"))
    parts = [f"{BALLS[config['name']]} of at most {significant(config.get('radius'))}"]
    bounds = config.get("bounds")
    if isinstance(bounds, Sequence) and len(bounds) == 2:
        low, high = (significant(b) if finite(b) is not None else "its own bound" for b in bounds)
        parts.append(f"every feature from {low} to {high}")
    frozen = config.get("frozen")
    if isinstance(frozen, Sequence) and frozen:
        names = audit.get("names")
        parts.append(f"fixed: {listed([_name(names, i) for i in frozen])}")
    if config.get("scale") is not None:
        parts.append("each feature in units of its own")
    return "; ".join(parts)


def explainer(audit: AuditResult) -> str:
    """What makes the scores."""
    config = _config(audit, "explainer")
    kind = EXPLAINERS.get(str(config.get("name")))
    if kind is None:
        return _described(config) or str(audit["settings"].get("explainer"))
    of = {"log_odds": "log-odds", "probability": "probability"}.get(str(config.get("of")))
    parts = [f"{kind} of the {of}" if of else kind]
    reduce = config.get("reduce")
    if reduce is not None:
        parts.append(REDUCED.get(str(reduce), str(reduce).replace("_", " ")))
    shown = {"samples", "sigma", "points", "seed", "rule"}
    parts += [f"{n} {_value(v)}" for n, v in config.items() if n in shown]
    return ", ".join(parts)


def _config(audit: AuditResult, name: str) -> Mapping[str, Any]:
    """What identifies a part of the settings; empty in older files."""
    part = (audit.get("config") or {}).get(name)
    return part if isinstance(part, Mapping) else {}


def _described(config: Mapping[str, Any]) -> str:
    """A part of the settings that has no words of its own: its name, and what is not usual."""
    usual = {"name", "version", "defaults", *(config.get("defaults") or ())}
    changed = [f"{n.replace('_', ' ')} {_value(v)}" for n, v in config.items() if n not in usual]
    return ", ".join([str(config["name"]), *changed]) if "name" in config else ""


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return _described(value) or f"of {len(value)} entries"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return listed([_value(v) for v in value])
    return str(value) if finite(value) is None else significant(value)


def _name(names: Sequence[str] | None, place: Any) -> str:
    known = names is not None and isinstance(place, int) and 0 <= place < len(names)
    return str(names[place]) if known and names is not None else f"feature {place}"
