"""People in words: their decision, their reasons, and what is known of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from r2et.explain import Explainer
from r2et.reason.alternatives import Alternative, alternatives
from r2et.reason.baseline import Baseline
from r2et.reason.codes import ReasonCode
from r2et.reason.columns import ranks
from r2et.reason.decided_rows import DecidedRows
from r2et.reason.proof import RowProofs
from r2et.reason.result import PersonReasons, Reason
from r2et.reason.search import Broken, change_words


@dataclass(frozen=True, eq=False)
class Description:
    """What reasons are told by.

    method: the signed explanation.
    baseline: whom rows are compared with.
    codes: of the columns that may be named.
    allowed: (C,) bool, which these are.
    k: how many reasons at most.
    """

    method: Explainer
    baseline: Baseline
    codes: Mapping[str, ReasonCode]
    allowed: Tensor
    k: int

    def people(
        self, rows: DecidedRows, proof: RowProofs | None, broken: Broken | None
    ) -> list[PersonReasons]:
        """One entry per row, with what was proved and what was broken."""
        scores = self.method(rows.decided, rows.x, rows.target).double().cpu()
        order, there = ranks(scores, self.allowed, self.k)
        unrestricted, strong = ranks(scores, torch.ones_like(self.allowed), self.k)
        others = self._alternatives(rows, order, there)
        changes = self._changes(rows, broken)
        people = []
        for i in range(len(rows)):
            own, change = order[i][there[i]].tolist(), changes[i]
            hidden = [c for c in unrestricted[i][strong[i]].tolist() if not self.allowed[c]]
            people.append(
                PersonReasons(
                    row=rows.ids[i],
                    decision=rows.class_name(int(rows.decision[i])),
                    probability=float(rows.probability[i]),
                    toward=rows.class_name(int(rows.target[i])),
                    reasons=tuple(
                        self._reason(rows, i, c, rank, float(scores[i, c]), proof, change, others)
                        for rank, c in enumerate(own, 1)
                    ),
                    proved=None if proof is None else bool(proof.whole[i]),
                    broken_by=None if change is None else change.words,
                    replaced_by=()
                    if change is None
                    else tuple(rows.columns[c].name for c in change.reasons if c not in own),
                    excluded=tuple(rows.columns[c].name for c in hidden),
                )
            )
        return people

    def _reason(
        self,
        rows: DecidedRows,
        i: int,
        c: int,
        rank: int,
        contribution: float,
        proof: RowProofs | None,
        change: Change | None,
        others: Mapping[tuple[int, int], Alternative],
    ) -> Reason:
        column = rows.columns[c]
        words = {
            "column": column.name,
            "value": rows.value(i, column),
            "reference": column.reference(self.baseline.row, rows.x[i]),
        }
        code = self.codes[column.name]
        return Reason(
            rank=rank,
            contribution=contribution,
            proved=None if proof is None else bool(proof.stays[i, c]),
            radius=None if proof is None else float(proof.radius[i, c]),
            broken_by=None if change is None else change.against(c),
            alternative=others[i, c].value if (i, c) in others else None,
            values_tried=others[i, c].tried if (i, c) in others else 0,
            code=code.code,
            sentence=code.told(**words),
            **words,
        )

    def _alternatives(
        self, rows: DecidedRows, order: Tensor, there: Tensor
    ) -> dict[tuple[int, int], Alternative]:
        """By row and column: what would change a decision that the reasons are for."""
        asked = there & (rows.decision == rows.target.cpu())[:, None]
        texts = {}
        for c in sorted(set(order[asked].tolist())):
            wanted = (asked & (order == c)).any(1).nonzero().flatten()
            some = rows.some(wanted)
            found = alternatives(some.decided, some.x, some.decision, rows.columns[c])
            texts.update({(i, c): t for i, t in zip(wanted.tolist(), found, strict=True)})
        return texts

    def _changes(self, rows: DecidedRows, broken: Broken | None) -> list[Change | None]:
        """Of each row, a change that gives it other reasons."""
        if broken is None or not bool(broken.found.any()):
            return [None] * len(rows)
        scores = self.method(rows.decided, broken.x_adv, rows.target).double().cpu()
        order, there = ranks(scores, self.allowed, self.k)
        changes: list[Change | None] = []
        for i in range(len(rows)):
            if not broken.found[i]:
                changes.append(None)
                continue
            x = rows.x[i].cpu()
            words = change_words(rows.schema, rows.columns, x, broken.x_adv[i].cpu())
            single = {
                c: change_words(rows.schema, rows.columns, x, point.cpu())
                for (row, c), point in broken.single.items()
                if row == i
            }
            changes.append(Change(words, tuple(order[i][there[i]].tolist()), single))
        return changes


@dataclass(frozen=True)
class Change:
    """A change that gives other reasons.

    words: what is changed.
    reasons: the places of the columns that are the reasons then.
    single: by column, what takes this reason away, where the change itself does not.
    """

    words: str
    reasons: tuple[int, ...]
    single: Mapping[int, str]

    def against(self, c: int) -> str | None:
        """What takes a reason away, where something is known to."""
        return self.single.get(c) if c in self.reasons else self.words
