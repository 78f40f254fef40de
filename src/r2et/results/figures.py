"""The figures of an audit's summary: how each is called, written and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from r2et.errors import require
from r2et.results.audit_schema import AuditResult
from r2et.wording import (
    count,
    fixed,
    floored_percent,
    lowered,
    percent,
    proved_percent,
    proved_significant,
    significant,
)


class Unit(NamedTuple):
    """How a figure is written: on the page (what is no number, too), and on a terminal."""

    page: Callable[[Any], str]
    terminal: Callable[[float], str]


UNITS: dict[str, Unit] = {
    "share": Unit(percent, "{:.1%}".format),
    "proved share": Unit(proved_percent, floored_percent),
    "fraction": Unit(percent, "{:.3f}".format),
    "number": Unit(fixed, "{:.3f}".format),
    "score": Unit(significant, "{:.4g}".format),
    "radius": Unit(significant, "{:.4g}".format),
    "proved radius": Unit(proved_significant, lambda radius: f"{lowered(radius, 4):.4g}"),
    "count": Unit(count, "{}".format),
}
HIGHER, LOWER, NEITHER = "higher", "lower", ""


@dataclass(frozen=True)
class Figure:
    """A figure of the summary.

    name: its key in the summary.
    label: its title on the page.
    unit: one of UNITS.
    better: "higher", "lower", or "" where neither is as such.
    meaning: a sentence for the reader.
    group: the heading it stands under on the page.
    line: its title on a terminal, where "{k}" is filled in; by default the label.
    ends: what its ends are called where they are no confidence interval.
    """

    name: str
    label: str
    unit: str = "number"
    better: str = NEITHER
    meaning: str = ""
    group: str = "Further measures"
    line: str = ""
    ends: str = ""

    def __post_init__(self) -> None:
        where = "Figure"
        for name, value in asdict(self).items():
            require(isinstance(value, str), where, name, "a text", value)
        require(self.name.isidentifier(), where, "name", "a name as in code", self.name)
        require(self.unit in UNITS, where, "unit", f"one of {', '.join(UNITS)}", self.unit)
        ways = (HIGHER, LOWER, NEITHER)
        require(self.better in ways, where, "better", "higher, lower or empty", self.better)

    @property
    def proved_radius(self) -> bool:
        """Whether it is a radius that a proof gave, of which the limit looked at is a bound."""
        return self.unit == "proved radius"


def _group(group: str, *figures: Figure) -> tuple[Figure, ...]:
    return tuple(Figure(**{**asdict(figure), "group": group}) for figure in figures)


# In the order of the page.
BUILT_IN = (
    *_group(
        "Stability",
        Figure(
            "certified_share", "Rows proved", "proved share", HIGHER,
            "Rows whose whole top k provably stays, whatever change is made of those allowed: the"
            " set of reasons, not their order within it.",
            line="rows whose top {k} is proved, as a set",
        ),
        Figure(
            "certified_precision", "Proved precision", "proved share", HIGHER,
            "Share of the top k that provably stays among the top k, on average over rows.",
            line="P@{k}, proved at least",
        ),
        Figure(
            "precision_strong", "Kept under attack", "share", HIGHER,
            "Share of the top k that the strongest attack had to leave in place (P@k).",
            line="P@{k}, attacked at most",
        ),
        Figure(
            "changed_share", "Rows changed", "share", LOWER,
            "Rows of which some attack changed at least one of the top k by a change of those"
            " allowed: the strongest, the papers', or the search for the smallest change.",
            line="rows whose top {k} an attack changed",
        ),
        Figure(
            "precision_er", "Kept under the papers' attack", "share", HIGHER,
            "The same under ERAttack, a weaker attack: for comparison with the R2ET papers.",
            line="P@{k} under the papers' attack",
        ),
        Figure(
            "precision_noise", "Kept under noise", "share", HIGHER,
            "The same under random changes of the same size: the noise floor.",
            line="P@{k} under random noise",
        ),
        Figure(
            "radius_certified_median", "Proved radius, median", "proved radius", HIGHER,
            "For half of the rows no change up to this size can alter the set of the top k.",
            line="median radius proved",
        ),
        Figure(
            "radius_attacked_median", "Attacked radius, median", "radius", HIGHER,
            "For half of the rows a change of this size or less was found that alters it.",
            line="median radius attacked",
        ),
        Figure(
            "ties", "Ties at the border", "count", LOWER,
            "Rows whose scores of rank k and k + 1 are equal or differ by rounding alone: the order"
            " of features decides between them, and the smallest change breaks the row.",
            line="rows tied at the border of the top {k}",
        ),
        Figure(
            "thickness", "Thickness", "score", HIGHER,
            "Average lead of the top k over the other features near the row, in score units.",
        ),
        Figure(
            "thickness_probability", "Pairs in order", "fraction", HIGHER,
            "Share of (top k, other) pairs that keep their order near the row.",
            line="thickness (share of pairs in order)",
        ),
    ),
    *_group(
        "Accuracy",
        Figure(
            "auc_clean", "AUC", "number", HIGHER,
            "Chance that the model ranks a row of the class above another one.",
            line="AUC",
        ),
        Figure(
            "auc_logistic", "AUC of logistic regression", "number", NEITHER,
            "A logistic regression fitted on the model's training rows: the baseline. With two"
            " classes its reasons never move.",
            line="  of logistic regression",
        ),
        Figure(
            "auc_boosting", "AUC of boosting", "number", NEITHER,
            "Gradient boosting fitted on the model's training rows: on these rows where it has an"
            " interval, else on the test part of its data.",
            line="  of boosting, on the training's test part",
        ),
        Figure(
            "auc_attacked", "AUC under attack", "number", HIGHER,
            "The same on the attacked rows.",
            line="  under attack",
        ),
        Figure(
            "auc_linear", "AUC of a linear model", "number", NEITHER,
            "A logistic regression fitted on these rows alone, on parts of them and judged on"
            " the rest (folds). The model may have had more rows to learn from: no verdict is"
            " built on it.",
            line="  of a linear model fitted on these rows", ends="folds",
        ),
        Figure(
            "calibration_error", "Calibration error", "fraction", LOWER,
            "How far probabilities lie from the share of rows for which they came true, on"
            " average over rows in ten ranges of probability.",
            line="calibration error, lower is better",
        ),
        Figure(
            "sensitivity", "Predictions changed", "share", LOWER,
            "Share of rows whose predicted class the attack on the reasons also changed.",
            line="predictions the papers' attack changed",
        ),
    ),
    *_group(
        "Faithfulness",
        Figure(
            "dffot", "Features to flip", "fraction", LOWER,
            "Smallest share of features, strongest first, whose removal changes the decision.",
            line="DFFOT, lower is better",
        ),
        Figure(
            "comprehensiveness", "Comprehensiveness", "number", HIGHER,
            "How far the probability falls when the top features are removed.",
            line="comprehensiveness, higher is better",
        ),
        Figure(
            "sufficiency", "Sufficiency", "number", LOWER,
            "How far the probability falls when only the top features are kept.",
            line="sufficiency, lower is better",
        ),
    ),
    *_group(
        "Individuality",
        Figure(
            "distinct_top_k", "Different sets of reasons", "count", NEITHER,
            "How many different top-k sets the rows have; more is better at equal stability.",
            line="different top-{k} sets",
        ),
        Figure(
            "largest_top_k_share", "Largest set", "share", NEITHER,
            "Share of rows that have the commonest set; less is better at equal stability.",
            line="share of the commonest set",
        ),
    ),
)  # fmt: skip
FIGURES: dict[str, Figure] = {figure.name: figure for figure in BUILT_IN}


# One audit has some of these: what stands for another kind of baseline is not missing.
BASELINES = ("auc_logistic", "auc_boosting", "auc_linear")


def figures_of(audit: AuditResult) -> dict[str, Figure]:
    """By name, how to read the figures of an audit: those known here, and its own."""
    own = (Figure(**described) for described in audit.get("figures") or ())
    return {**FIGURES, **{figure.name: figure for figure in own if figure.name not in FIGURES}}
