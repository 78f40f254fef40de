"""What the page says: the measures, the verdict, and what to keep in mind about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from r2et.report.findings import Shares
from r2et.report.numbers import count, finite, fixed, percent, percents, significant


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
        Measure("certified_share", "Rows proved", percent, H,
                "Rows whose whole top k provably stays, whatever the change within the radius."),
        Measure("certified_precision", "Proved precision", percent, H,
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
                "A logistic regression on the same rows, whose reasons never move: the baseline."),
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

NORMS = {
    "l2": "Euclidean length over all features",
    "linf": "largest change of a single feature",
}
# By whether there was a proof, and an attack.
VERDICTS = {
    (True, True): (
        "{Within}, {reasons} proved to stay the same for {proved};"
        " an attack changed {them} for {broken}; {unknown}."
    ),
    (False, True): (
        "{Within}, an attack changed {the_reasons} for {broken}; nothing was proved: {unknown}."
    ),
    (True, False): (
        "{Within}, {reasons} proved to stay the same for {proved}; no attack was run: {unknown}."
    ),
    (False, False): (
        "Neither a proof nor an attack was run: nobody knows whether {the_reasons}"
        " {stay} the same {within}."
    ),
}


def within(summary: Mapping[str, Any]) -> str:
    """Which changes are meant."""
    radius = finite(summary.get("radius"))
    if radius is None:
        return "within the changes that were allowed"
    return f"within a change of {significant(radius)}"


def verdict(summary: Mapping[str, Any], shares: Shares) -> str:
    """The one sentence that a reader takes away."""
    k, many = summary["k"], summary["k"] != 1
    proved, unknown, broken = percents((shares.proved, shares.unknown, shares.broken))
    place = within(summary)
    the_reasons = f"the {k} reasons" if many else "the strongest reason"
    return VERDICTS[shares.proof, shares.attack].format(
        Within=place[0].upper() + place[1:],
        within=place,
        the_reasons=the_reasons,
        reasons=f"{the_reasons} {'are' if many else 'is'}",
        them="them" if many else "it",
        stay="stay" if many else "stays",
        proved=_rows(shares.proved, f"{proved} of rows", "all rows", "no row"),
        broken=_rows(shares.broken, broken if shares.proof else f"{broken} of rows", "all", "none"),
        unknown=_rows(
            shares.unknown,
            f"for {unknown} nobody knows",
            "nobody knows about any of the rows",
            "no row is left open",
        ),
    )


def _rows(share: float, some: str, every: str, none: str) -> str:
    return {0.0: none, 1.0: every}.get(share, some)


SAME_FOR_ALL = 0.9  # share of the commonest top-k set from which on there is hardly any other
AS_ACCURATE = 0.005  # of AUC


def cautions(summary: Mapping[str, Any], shares: Shares) -> list[str]:
    """What a reader must know beside the verdict, where it applies."""

    def value(name: str) -> float:
        found = finite(summary.get(name))
        return float("nan") if found is None else found

    largest, auc, linear = (value(n) for n in ("largest_top_k_share", "auc_clean", "auc_linear"))
    said = (
        (
            shares.conflicts > 0,
            f"{count(shares.conflicts)} rows are proved and yet were changed by an attack. A proof"
            " cannot be both: do not rely on this audit, and report it as a bug of r2et.",
        ),
        (
            largest >= SAME_FOR_ALL,
            f"{percent(largest)} of rows get the same reasons. Reasons that are the same for"
            " everybody are stable, and say little about anybody.",
        ),
        (
            linear >= auc - AS_ACCURATE,
            f"A linear model is as accurate here (AUC {fixed(linear)} against {fixed(auc)}), and"
            " its reasons never move: consider using it.",
        ),
        (
            not shares.proof,
            "Nothing was proved: rows that no attack changed may still be changed by a better one.",
        ),
        (
            shares.proof and not shares.attack,
            "No attack was run: rows that are not proved may be stable or not.",
        ),
    )
    return [sentence for applies, sentence in said if applies]


def listed(names: list[str], limit: int = 6) -> str:
    """Names in a sentence, the first few of them."""
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")
