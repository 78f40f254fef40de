"""What is proved of changes that a row could really have: all tried, or each switch certified."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from r2et.attack.problem import AttackProblem
from r2et.audit.measures.base import LATE, AuditedRows
from r2et.audit.settings import WHERE, AuditSettings
from r2et.audit.statistics import Columns
from r2et.certify import IntervalCertifier
from r2et.certify.interval import ASSUMPTIONS
from r2et.errors import InputError
from r2et.models.output import CHUNK_NUMBERS, batched_logits, undisturbed
from r2et.region import Feasible
from r2et.results import Skipped
from r2et.wording import rows_text

# By budget: the most points of a row that are all tried, and the most ways to switch labels of
# which each is certified.
ALL_TRIED = {"fast": 2_000, "standard": 10_000, "thorough": 100_000}
ALL_CERTIFIED = {"fast": 32, "standard": 128, "thorough": 512}
# How a row's proof was sought; below 0 there was none to be had.
ENUMERATED, CERTIFIED, TOO_MANY, REFUSED = 1, 2, -1, -2
SLACK = 32  # units in the last place of the largest score: what rounding could undo is not proved
NO_RADIUS = "the changes are in the columns' own units, so that there is no median of a radius"


def certified_moves(rows: AuditedRows, region: Feasible) -> Columns:
    """P@k that no feasible change goes below, and how that was found, row by row."""
    budget = rows.settings.budget
    count = region.count(rows.x)
    proved = torch.zeros(len(rows.x), dtype=torch.float64)
    way = torch.full((len(rows.x),), ENUMERATED)
    with torch.inference_mode(False), undisturbed(rows.model):
        few = (count <= ALL_TRIED[budget]).cpu()
        if bool(few.any()):
            proved[few] = enumerated(rows, region, few).cpu()
        if not bool(few.all()):
            way[~few] = TOO_MANY if region.ways > ALL_CERTIFIED[budget] else CERTIFIED
            if region.ways <= ALL_CERTIFIED[budget]:
                try:
                    proved[~few] = certified_region(rows, region, ~few).cpu()
                except InputError as error:
                    if str(error) == LATE:
                        raise
                    way[~few] = REFUSED
    return {"certified_precision": proved, "feasible_points": count.cpu(), "proof": way}


def enumerated(rows: AuditedRows, region: Feasible, chosen: Tensor) -> Tensor:
    """(A,) the smallest share of the top k that is left over all feasible points of these rows.

    Points that change the decision do not count; those that rounding could bring back do.
    """
    problem = _problem(rows, region, chosen)
    count = region.count(problem.x)
    least = torch.ones(len(problem.x), dtype=torch.float64, device=problem.x.device)
    number = 0  # point 0 is x, whose own top k may hang by a rounding
    while True:
        open_rows = ((count > number) & (least > problem.least)).nonzero().flatten()
        if not len(open_rows):
            return least
        _check_time(rows)
        part = problem.rows(open_rows)
        together = max(1, CHUNK_NUMBERS // part.x.numel())
        together = min(together, int(count[open_rows].max()) - number)
        index = torch.arange(number, number + together, device=part.x.device)[:, None]
        # Rows with fewer points than others meet some of theirs again.
        points = region.nth(part.x, index % count[open_rows].long()).flatten(0, 1)
        share = torch.where(_may_be_kept(part, points), surely_kept(part, points), 1.0)
        lowest = share.view(together, -1).amin(0)
        least[open_rows] = torch.minimum(least[open_rows], lowest)
        number += together


def certified_region(rows: AuditedRows, region: Feasible, chosen: Tensor) -> Tensor:
    """(A,) share of the top k that stays for every way to switch labels and all moves of numbers.

    Holds whatever the decision is there.
    """
    _check_time(rows)
    s, x = rows.settings, rows.x[chosen.to(rows.x.device)]
    certifier = IntervalCertifier(region=region, patterns=ALL_CERTIFIED[s.budget])
    target = rows.target[chosen].to(x.device)
    return certifier(rows.model, s.explainer, x, k=s.k, target=target).precision_at(1)


def surely_kept(problem: AttackProblem, points: Tensor) -> Tensor:
    """(m * B,) float64 share of the clean top k that no rounding takes out of it at the points."""
    scores = problem.explain(points).detach()
    top = problem.top.repeat(len(points) // len(problem.top), 1)
    slack = SLACK * torch.finfo(scores.dtype).eps * scores.abs().amax(1, keepdim=True)
    next_best = scores.topk(problem.k + 1, dim=1).values[:, -1:]
    return (top & (scores - slack > next_best)).sum(1).double() / problem.k


def _may_be_kept(problem: AttackProblem, points: Tensor) -> Tensor:
    """(m * B,) bool: the decision is that at x, or another one by no more than rounding."""
    out = batched_logits(problem.model, points, WHERE).to(points.device)
    out = torch.cat([torch.zeros_like(out), out], 1) if out.shape[1] == 1 else out
    first, second = out.topk(2, dim=1).values.unbind(1)
    slack = SLACK * torch.finfo(out.dtype).eps * out.abs().amax(1)
    return problem.kept(points) | (first - second <= slack)


def _problem(rows: AuditedRows, region: Feasible, chosen: Tensor) -> AttackProblem:
    s, x = rows.settings, rows.x[chosen.to(rows.x.device)]
    target = rows.target[chosen].to(x.device)
    number = rows.chunk.index[chosen].to(x.device)
    return AttackProblem.from_model(WHERE, rows.model, s.explainer, region, x, s.k, target, number)


def _check_time(rows: AuditedRows) -> None:
    if rows.chunk.until is not None and time.time() > rows.chunk.until:
        raise InputError(LATE)


def settle(columns: Columns, settings: AuditSettings) -> tuple[str | None, list[Skipped]]:
    """What was proved and how, in words; and what could not be. Drops a proof that never began."""
    region, way = settings.moves, columns.get("proof")
    if region is None:
        return None, []
    skipped: list[Skipped] = [{"what": "radius", "why": NO_RADIUS}]
    if way is None:
        return None, skipped
    there = ~way.double().isnan()
    total, way = int(there.sum()), way[there]
    points, share = columns["feasible_points"][there], columns["certified_precision"][there]
    parts = []
    tried = way == ENUMERATED
    if bool(tried.any()):
        most = int(points[tried].max())
        parts.append(
            f"for {_some(int(tried.sum()), total)} every change that is allowed was tried, one by"
            f" one (at most {most} each, the row itself included); those that keep the decision"
            " count"
        )
    bounded = way == CERTIFIED
    if bool(bounded.any()):
        proved = int((share[bounded] >= 1).sum())
        ways = f" with its categories switched in each of {region.ways} ways"
        parts.append(
            f"for {_some(int(bounded.sum()), total)} the explanation was bounded over all moves of"
            f" the numbers, around the row{ways if region.ways > 1 else ''}"
            f" (rows proved so: {proved})"
        )
    reasons = {TOO_MANY: _too_many(region, settings.budget), REFUSED: _refused(settings.budget)}
    for code, why in reasons.items():
        lacking = int((way == code).sum())
        if lacking:
            some = "" if lacking == total else f" (for {lacking} of {rows_text(total)})"
            skipped.append({"what": "certified", "why": f"not proved: {why}{some}"})
    if not parts:
        columns.pop("certified_precision")
        return None, skipped
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + ".", skipped


def assumptions_of(columns: Columns) -> str | None:
    """What the proofs rest on: the arithmetic that was tried, or that which was bounded."""
    if "radius_certified" in columns:
        return ASSUMPTIONS
    if "certified_precision" not in columns:
        return None
    bounded = bool((columns["proof"] == CERTIFIED).any())
    tried = "what was tried one by one holds for the arithmetic of this machine"
    return f"{ASSUMPTIONS}; {tried}" if bounded else tried


def _some(rows: int, total: int) -> str:
    return f"all {rows_text(total)}" if rows == total else f"{rows} of {rows_text(total)}"


def _too_many(region: Feasible, budget: str) -> str:
    tried, ways = ALL_TRIED[budget], ALL_CERTIFIED[budget]
    return (
        f"more than {tried} rows are possible, and {region.ways} ways to switch categories are more"
        f" than the {ways} that are certified one by one"
    )


def _refused(budget: str) -> str:
    return (
        f"more than {ALL_TRIED[budget]} rows are possible, and there is no certificate for this"
        " network or this explanation"
    )
