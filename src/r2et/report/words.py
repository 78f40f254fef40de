"""What the page says: the verdict, and what to keep in mind about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from r2et.report.shares import Shares
from r2et.results import AuditResult, training_sentence
from r2et.wording import below_logistic, finite, fixed, percent, percents, rows_of, significant

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
# The same of changes that a row of a table could really have.
MOVES_PROVED = (
    "No change of at most {moves} that keeps the decision alters {the_reasons} of {proved}: that is"
    " proved; {found}; {unknown}."
)
MOVES_BROKEN = (
    "A change of at most {moves} that keeps the decision was found to alter {the_reasons} of"
    " {broken}; {nothing} proved: {unknown}."
)
MOVES_OPEN = (
    "No change of at most {moves} that keeps the decision was found to alter {the_reasons} of any"
    " row; {nothing} proved: {unknown}."
)


def within(summary: Mapping[str, Any]) -> str:
    """Which changes are meant."""
    radius = finite(summary.get("radius"))
    if radius is None:
        return "within the changes that were allowed"
    return f"within a change of {significant(radius)}"


def verdict(summary: Mapping[str, Any], shares: Shares, moves: str | None = None) -> str:
    """The one sentence that a reader takes away.

    moves: how far rows could be changed, in words, where that is no ball.
    """
    k, many = summary["k"], summary["k"] != 1
    proved, unknown, broken = percents((shares.proved, shares.unknown, shares.broken))
    place = within(summary)
    the_reasons = f"the {k} reasons" if many else "the strongest reason"
    if moves is not None and (shares.proof or shares.attack):
        return _moves_verdict(shares, moves, the_reasons)
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


def _moves_verdict(shares: Shares, moves: str, the_reasons: str) -> str:
    proved, unknown, broken = percents((shares.proved, shares.unknown, shares.broken))
    attacked = _rows(
        shares.broken, f"for {broken} one was found that does", "", "none was found that does"
    )
    form = MOVES_PROVED
    if not shares.proved:
        form = MOVES_BROKEN if shares.broken else MOVES_OPEN
    return form.format(
        moves=moves,
        the_reasons=the_reasons,
        proved=_rows(shares.proved, f"{proved} of rows", "all rows", "no row"),
        found=attacked if shares.attack else "no attack was run",
        broken=_rows(shares.broken, f"{broken} of rows", "all rows", "no row"),
        nothing="no row is" if shares.proof else "nothing was",
        unknown=_rows(
            shares.unknown,
            f"for {unknown} nobody knows",
            "nobody knows about any of the rows",
            "no row is left open",
        ),
    )


def sets(summary: Mapping[str, Any], shares: Shares) -> str:
    """What stays: the set of reasons, not their order; of one reason there is no difference."""
    if summary["k"] == 1 or not (shares.proof or shares.attack):
        return ""
    verb = "proved" if shares.proof else "attacked"
    return f"What is {verb} is the set of reasons: within it they may change places."


def _rows(share: float, some: str, every: str, none: str) -> str:
    return {0.0: none, 1.0: every}.get(share, some)


SAME_FOR_ALL = 0.9  # share of the commonest top-k set from which on there is hardly any other
AS_ACCURATE = 0.005  # of AUC
FEW_ROWS = 20


def loud(audit: AuditResult) -> list[str]:
    """What comes before the verdict: rows that are the training's own, and a better baseline."""
    summary, training = audit["summary"], training_sentence(audit)
    below = below_logistic(summary.get("auc_clean"), summary.get("auc_logistic"))
    below = "" if audit["settings"].get("only") else below  # of rows that the model chose itself
    return [sentence[0].upper() + sentence[1:] for sentence in (training, below) if sentence]


def cautions(summary: Mapping[str, Any], shares: Shares, classes: int = 2) -> list[str]:
    """What a reader must know beside the verdict, where it applies. classes: of the model."""

    def value(name: str) -> float:
        number = finite(summary.get(name))
        return float("nan") if number is None else number

    largest, auc, linear = (value(n) for n in ("largest_top_k_share", "auc_clean", "auc_logistic"))
    sentences = (
        (
            shares.conflicts > 0,
            f"Proved and yet changed by an attack: {rows_of(shares.conflicts)}. A proof excludes"
            " that: do not rely on this audit, and report it as a bug of r2et.",
        ),
        (
            value("rows") < FEW_ROWS,
            f"Only {rows_of(summary.get('rows'))}: what holds for so few says little about others.",
        ),
        (
            largest >= SAME_FOR_ALL and value("rows") != 1,
            f"{percent(largest)} of rows get the same reasons. Reasons that are the same for"
            " everybody are stable, and say little about anybody.",
        ),
        (
            linear >= auc - AS_ACCURATE and not below_logistic(auc, linear),
            f"A logistic regression is as accurate here (AUC {fixed(linear)} against {fixed(auc)})"
            # With more classes the gradient of its log-odds depends on the row.
            f"{', and its reasons never move' if classes == 2 else ''}: consider using it.",
        ),
        (
            shares.attack and not shares.proof,
            "Nothing was proved: rows that no attack changed may still be changed by a better one.",
        ),
        (
            shares.proof and not shares.attack,
            "No attack was run: rows that are not proved may be stable or not.",
        ),
    )
    return [sentence for applies, sentence in sentences if applies]


def gate(verdict: Mapping[str, Any]) -> str:
    """A gate in words: what was asked, what there is, and how sure that is."""
    if verdict["reason"] is not None:
        return str(verdict["reason"]).removeprefix("audit: ").rstrip(".")
    end = finite(verdict.get("end"))
    side = "lower" if str(verdict["sign"]).startswith(">") else "upper"
    sure = "" if end is None else f" ({side} end of its interval {significant(end, 4)})"
    return f"{verdict['name']} {verdict['sign']} {verdict['bound']:g}, got {verdict['text']}{sure}"


def listed(names: list[str], limit: int = 6) -> str:
    """Names in a sentence, the first few of them."""
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")
