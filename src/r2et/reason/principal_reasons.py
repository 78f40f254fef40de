"""reasons(): for each row the few columns that pushed it toward a class, in words and proved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from r2et.audit.contributions import enough_points, known_rows
from r2et.audit.moves import words_of
from r2et.errors import require
from r2et.explain import Explainer, IntegratedGradients
from r2et.progress import bar
from r2et.reason.codes import reason_codes
from r2et.reason.columns import WHERE, groups_of, named_columns
from r2et.reason.decided_rows import DecidedRows
from r2et.reason.description import Description
from r2et.reason.result import PersonReasons, Reasons
from r2et.reason.stability import stability
from r2et.reason.table_rows import notes_of
from r2et.region import Feasible
from r2et.region.base import Region

ROWS = 64  # looked at together


def reasons(
    model: Any,
    rows: Any,
    *,
    k: int = 4,
    toward: str | int | None = None,
    baseline: Any = "mean",
    groups: Sequence[Sequence[int]] | None = None,
    region: Region | None = None,
    codes: Any = None,
    exclude: str | Iterable[str] = (),
    names: Sequence[str] = (),
    ids: Sequence[Any] | None = None,
    reference: Any = None,
    cutoff: float | None = None,
    explainer: Explainer | None = None,
    only_decided: bool = False,
    limit: int | None = None,
    proofs: bool = True,
    search: bool = True,
    progress: bool = False,
) -> Reasons:
    """The k principal reasons of each row: one per column, strongest first, in words.

    A column's contribution is the sum over its features i of (x_i - b_i) times the mean of the
    log-odds' derivative by x_i on the way from the baseline b to x: together they are what tells
    the row's log-odds from the baseline's. Only those that push toward the class are reasons; a row
    may have fewer than k.

    model: what `fit`, `load_trained` or an estimator gave; or a module, then `groups` and `names`
    say which features are one column. rows: a DataFrame or a file as in the training, or features
    (B, n). ids: what to call the rows. toward: the class that reasons are of, such as "refused", by
    default the one each row is decided for. only_decided: leave out rows that are decided
    otherwise. cutoff: the probability of class 1 from which on it is decided for.

    baseline: whom rows are compared with: "mean" of the training rows; "accepted", the mean of
    `reference` rows that are decided otherwise than `toward`; "border", of those nearest to the
    decision's edge; a row, or a number. reference: by default the test rows kept with the model.
    exclude: columns that must not be named. codes: a CSV file or a mapping with the code and the
    sentence of each column.

    region: the changes (Feasible, L2 or Linf) for which each reason is proved to stay (`proofs`) or
    seen to go (`search`). explainer: another signed explanation, with one score per column.
    """
    is_valid = type(k) is int and k > 0
    require(is_valid, WHERE, "k", "a positive whole number", k)
    is_valid = region is None or isinstance(region, Region)
    require(is_valid, WHERE, "region", "None, or Feasible, L2 or Linf", region)
    is_valid = limit is None or (type(limit) is int and limit > 0)
    require(is_valid, WHERE, "limit", "None or a positive whole number", limit)
    given = DecidedRows.of(model, rows, groups=groups, names=names, ids=ids, cutoff=cutoff)
    asked, columns = given.asked(toward, only_decided), given.columns
    asked = asked if limit is None else asked.some(torch.arange(min(limit, len(asked))))
    excluded = named_columns(exclude, columns, "exclude")
    allowed = torch.ones(len(columns), dtype=torch.bool)
    allowed[excluded] = False
    require(bool(allowed.any()), WHERE, "exclude", "such that a column is left", "all of them")
    named = [column.name for place, column in enumerate(columns) if allowed[place]]
    base = asked.baseline(baseline, reference)
    method, rough = _method(explainer, given, base.row, asked.toward)
    description = Description(method, base, reason_codes(codes, named), allowed, k)
    people: list[PersonReasons] = []
    notes = [*asked.subject.notes, *notes_of(asked.subject.trained, asked.cells), *rough]
    notes += [] if len(asked) else [f"no row is decided {toward}"]
    with bar("reasons", total=len(asked), show=progress) as advance:
        for start in range(0, len(asked), ROWS):
            part = asked.some(torch.arange(start, min(start + ROWS, len(asked))))
            proof, broken = None, None
            if region is not None:
                proof, broken = stability(
                    part, method, allowed, k, region, proofs=proofs, search=search
                )
                added = () if proof is None else proof.notes
                notes += [note for note in added if note not in notes]
            people += description.people(part, proof, broken)
            advance(len(part))
    return Reasons(
        tuple(people),
        k,
        base.words,
        changes=None if region is None else region_words(region),
        excluded=tuple(columns[i].name for i in excluded),
        explainer=_method_words(explainer, method),
        notes=tuple(notes),
        rule="" if cutoff is None else _rule(given, cutoff),
    )


def _rule(rows: DecidedRows, cutoff: float) -> str:
    return f"{rows.class_name(1)} is decided for from a probability of {100 * cutoff:.6g} % on"


def region_words(region: Region) -> str:
    """The changes of a region, as a sentence goes on."""
    if isinstance(region, Feasible):
        return f"changes of at most {words_of(region)}"
    return f"changes within {region!r}"


def _method(
    given: Explainer | None, rows: DecidedRows, baseline: Tensor, toward: int | None
) -> tuple[Explainer, list[str]]:
    """Signed contributions of the columns, and a note where they do not quite add up."""
    if given is None:
        groups = groups_of(rows.columns)
        own = IntegratedGradients(baseline=baseline.tolist(), groups=groups, reduce="signed")
        known = known_rows(rows.subject, rows.x.shape[1])
        known = None if known is None else known.to(rows.x)
        found, off = enough_points(rows.decided, own, known, toward)
        note = (
            "contributions add up to what tells a row's log-odds from the reference's to within "
            f"{off:.2g} for 95 % of rows, at {found.points} points of the way"
        )
        return found, [note] if off else []
    signed = isinstance(given, Explainer) and given.reduce == "signed"
    require(signed, WHERE, "explainer", "an Explainer with reduce='signed'", given)
    width = given(rows.decided, rows.x[:1], rows.target[:1]).shape[1]
    expected = f"one with a score for each of {len(rows.columns)} columns (groups=)"
    require(width == len(rows.columns), WHERE, "explainer", expected, f"one of {width} scores")
    return given, []


def _method_words(given: Explainer | None, used: Explainer) -> str:
    if isinstance(used, IntegratedGradients) and given is None:
        return f"integrated gradients of the log-odds, {used.points} points from the baseline"
    return repr(given)
