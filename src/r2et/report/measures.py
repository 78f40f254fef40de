"""The figures of an audit's summary: how each is called, written and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from r2et.report.findings import endless, search_limit
from r2et.report.numbers import ENDLESS, count, finite, fixed, percent, proved_percent, significant
from r2et.wording import proved_radius


@dataclass(frozen=True)
class Measure:
    """One figure of the summary: how it is called, written and read. better: "" for neither."""

    name: str
    label: str
    write: Callable[[Any], str]
    better: str
    meaning: str


H, L = "higher", "lower"
GROUPS: dict[str, tuple[Measure, ...]] = {
    "Stability": (
        Measure("certified_share", "Rows proved", proved_percent, H,
                "Rows whose whole top k provably stays, whatever the change within the radius."),
        Measure("certified_precision", "Proved precision", proved_percent, H,
                "Share of the top k that provably stays, on average over rows."),
        Measure("precision_strong", "Kept under attack", percent, H,
                "Share of the top k that the strongest attack had to leave in place (P@k)."),
        Measure("precision_er", "Kept under the papers' attack", percent, H,
                "The same under ERAttack, a weaker attack: for comparison with the R2ET papers."),
        Measure("precision_noise", "Kept under noise", percent, H,
                "The same under random changes of the same size: the noise floor."),
        Measure("radius_certified_median", "Proved radius, median", significant, H,
                "For half of the rows no change up to this size can alter the top k."),
        Measure("radius_attacked_median", "Attacked radius, median", significant, H,
                "For half of the rows a change of this size or less was found that alters it."),
        Measure("thickness", "Thickness", significant, H,
                "Average lead of the top k over the other features near the row, in score units."),
        Measure("thickness_probability", "Pairs in order", percent, H,
                "Share of (top k, other) pairs that keep their order near the row."),
    ),
    "Accuracy": (
        Measure("auc_clean", "AUC", fixed, H,
                "Chance that the model ranks a row of the class above another one."),
        Measure("auc_attacked", "AUC under attack", fixed, H,
                "The same on the attacked rows."),
        Measure("auc_linear", "AUC of a linear model", fixed, "",
                "A logistic regression fitted on these rows alone, on parts of them and judged on"
                " the rest (folds): the baseline. With two classes its reasons never move."),
        Measure("sensitivity", "Predictions changed", percent, L,
                "Share of rows whose predicted class the attack on the reasons also changed."),
    ),
    "Faithfulness": (
        Measure("dffot", "Features to flip", percent, L,
                "Smallest share of features, strongest first, whose removal changes the decision."),
        Measure("comprehensiveness", "Comprehensiveness", fixed, H,
                "How far the probability falls when the top features are removed."),
        Measure("sufficiency", "Sufficiency", fixed, L,
                "How far the probability falls when only the top features are kept."),
    ),
    "Individuality": (
        Measure("distinct_top_k", "Different sets of reasons", count, "",
                "How many different top-k sets the rows have; more is better at equal stability."),
        Measure("largest_top_k_share", "Largest set", percent, "",
                "Share of rows that have the commonest set; less is better at equal stability."),
    ),
}  # fmt: skip
FOLDS = ("auc_linear",)  # whose ends are the least and the greatest fold, no interval
MEASURES = {measure.name: measure for group in GROUPS.values() for measure in group}
COMPARED = (
    "certified_share",
    "certified_precision",
    "precision_strong",
    "precision_noise",
    "radius_certified_median",
    "radius_attacked_median",
    "auc_clean",
    "auc_attacked",
    "auc_linear",
    "comprehensiveness",
    "sufficiency",
    "distinct_top_k",
    "largest_top_k_share",
)

# Beside stability always: a title, a figure with its words, another figure with its words.
CARDS = (
    ("Accuracy", "auc_clean", "AUC", "auc_linear", "a linear model: {}"),
    ("Kept under attack", "precision_strong", "of the reasons", "certified_precision",
     "proved: {}"),
    ("Noise floor", "precision_noise", "kept under random changes of that size", "", ""),
    ("Faithfulness", "comprehensiveness", "comprehensiveness", "sufficiency", "sufficiency: {}"),
    ("Individuality", "distinct_top_k", "different sets of reasons", "largest_top_k_share",
     "the commonest: {} of rows"),
)  # fmt: skip


def written(audit: Mapping[str, Any], measure: Measure, end: str = "") -> str:
    """A figure of the summary, or an end of its interval; a bound is written as one."""
    name = f"{measure.name}{end}"
    if not end and endless(audit, name):
        return ENDLESS
    value = finite(audit["summary"].get(name))
    text = measure.write(value)
    bound = measure.name == "radius_certified_median" and value is not None
    return proved_radius(text, value, search_limit(audit)) if bound and value is not None else text


def span(audit: Mapping[str, Any], measure: Measure) -> str:
    """The interval of a figure in words; empty where there is none, or both ends are one bound."""
    figures = (audit["summary"].get(f"{measure.name}{end}") for end in ("", "_low", "_high"))
    if any(finite(figure) is None for figure in figures):
        return ""
    least, most = (written(audit, measure, end) for end in ("_low", "_high"))
    if least == most == written(audit, measure) and least.startswith("at least"):
        return ""
    return f"{'folds: ' if measure.name in FOLDS else ''}{least} to {most}"


def cards(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    """The figures that stand beside the verdict; what was not measured says so."""
    found = []
    for title, name, text, other, also in CARDS:
        more = [text] if finite(summary.get(name)) is not None else []
        if finite(summary.get(other)) is not None:
            more.append(also.format(MEASURES[other].write(summary[other])))
        figure = MEASURES[name].write(summary.get(name))
        found.append({"title": title, "figure": figure, "text": "; ".join(more)})
    return found
