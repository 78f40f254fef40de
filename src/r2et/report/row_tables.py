"""What ties the page to its inputs, whether probabilities came true, and groups of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from r2et.report.svg import Axes, both
from r2et.results import AuditResult, CalibrationBin
from r2et.wording import NONE, count, finite, fixed, percent, rows_of

DOT = 4.5  # radius


def inputs(audit: AuditResult) -> list[tuple[str, str]]:
    """Names, digests and the command, for whoever wants to check what the page is about."""
    known: Mapping[str, Any] = audit.get("inputs") or {}
    pairs = []
    for title, part in (("data", "data"), ("weights", "weights")):
        source = known.get(part) or {}
        if source.get("name"):
            pairs.append((title, str(source["name"])))
        if source.get("sha256"):
            of = "" if source.get("of") == "file" else ", of the numbers in memory"
            pairs.append((f"SHA-256 of the {title}{of}", str(source["sha256"])))
    described = (known.get("files") or {}).get("model.json")
    if described:
        pairs.append(("SHA-256 of model.json", str(described)))
    if finite(known.get("rows")) is not None:
        text = f"{count(known['rows'])}, numbered from 0"
        pairs.append(("rows in the data", text))
    if known.get("command"):
        pairs.append(("command", str(known["command"])))
    return pairs


def outcome(audit: AuditResult) -> str:
    """What comes true, in words: class 1 of two, or else the decision."""
    classes = audit.get("classes") or []
    if (audit.get("class_count") or len(classes) or 2) != 2:
        return "the class decided on"
    return str(classes[1]) if len(classes) == 2 else "class 1"


def calibration(audit: AuditResult, name: str) -> dict[str, Any] | None:
    """The reliability diagram and its table; None without labels."""
    bins = audit.get("calibration")
    if not bins:
        return None
    lines = [
        {
            "range": f"{percent(each['low'])} to {percent(each['high'])}",
            "rows": count(each["rows"]),
            "predicted": percent(each["predicted"]),
            "observed": percent(each["observed"]),
            "span": f"{percent(each['observed_low'])} to {percent(each['observed_high'])}",
            "off": not each["observed_low"] <= each["predicted"] <= each["observed_high"],
        }
        for each in bins
    ]
    rows = sum(each["rows"] for each in bins)
    off = sum(line["off"] is True for line in lines)
    return {
        "svg": _reliability(bins, outcome(audit), name),
        "lines": lines,
        "outcome": outcome(audit),
        "sentence": (
            f"{rows_of(rows)}, by the probability that the model gives to"
            f" “{outcome(audit)}”. "
            + (
                f"In {off} of {len(bins)} ranges it lies outside the interval of what came true."
                if off
                else "In every range it lies within the interval of what came true."
            )
        ),
    }


def _reliability(bins: list[CalibrationBin], words: str, name: str) -> Markup:
    description = "; ".join(
        f"predicted {percent(each['predicted'])}, came true for {percent(each['observed'])} of"
        f" {rows_of(each['rows'])}"
        for each in bins
    )

    def draw(width: int) -> Markup:
        axes = Axes(width, 360 if width > 500 else 300, (0.0, 1.0), top=32, left=54, right=28)
        axes.grid(
            "probability given by the model", "share that came true", percent, write_x=percent
        )
        axes.add('<path class="front" d="{}"/>', axes.path([(0.0, 0.0), (1.0, 1.0)]))
        for each in bins:
            x, y = axes.at(each["predicted"], each["observed"])
            top, bottom = (axes.at(0.0, each[end])[1] for end in ("observed_high", "observed_low"))
            axes.add('<path class="whisker" d="M{} {}V{}"/>', x, top, bottom)
            axes.add('<circle class="best" cx="{}" cy="{}" r="{}"/>', x, y, DOT)
        return axes.svg(f"{name}-{width}", f"How often “{words}” came true", description)

    return both(draw)


def grouped(audit: AuditResult) -> list[dict[str, Any]]:
    """For each chosen column, its groups with what was measured of them."""
    tables = []
    for by in audit.get("grouped_by") or ():
        lines = [
            {
                "value": group["value"],
                "rows": count(group["rows"]),
                "auc": _with_ends(group, "auc", fixed),
                "predicted": percent(group["predicted"]),
                "observed": _with_ends(group, "observed", percent),
                "kept": _with_ends(group, "precision", percent),
            }
            for group in by["groups"]
        ]
        tables.append({"column": by["column"], "lines": lines, "outcome": outcome(audit)})
    return tables


def _with_ends(group: Mapping[str, Any], name: str, write: Any) -> tuple[str, str]:
    """A figure and its interval; a group without one says so."""
    value, low, high = (finite(group.get(f"{name}{end}")) for end in ("", "_low", "_high"))
    if value is None:
        return (NONE, "")
    ends = "" if low is None or high is None else f"{write(low)} to {write(high)}"
    return (write(value), ends)
