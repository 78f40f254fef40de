"""What this library is about: reasons that change when nothing does, and some that do not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from r2et.attack import FeasibleSearch
from r2et.audit import Comparison, audit, compare
from r2et.data import Data, Schema, load
from r2et.errors import InputError, require
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.progress import bar
from r2et.rank import precision_at_k, thickness, top_k
from r2et.reason import PersonReasons, reasons
from r2et.region import L2, Feasible
from r2et.train import fit

# Two columns of Adult, and by how many years or hours they are moved.
MOVED = {"age": 2, "hours per week": 2}
# What is compared: the honest baseline, nothing done about it, the papers' method, and ours.
RECIPES = ("linear", "vanilla", "r2et", "r2et-ball", "certified", "certified-individual")
RADIUS, EPOCHS, AUDITED = 0.1, 12, 200
SHORT, LOOKED_AT = 5, 60  # epochs, and rows among which the person is


@dataclass(frozen=True)
class ExplainedRow:
    """One explained row: how sure the model is, its k reasons, and how thick they are."""

    row: int
    probability: float  # of earning over 50K
    reasons: tuple[str, ...]
    thickness: float
    thickness_probability: float


@dataclass(frozen=True)
class Change:
    """A row before and after a change that left its prediction alone but not its reasons."""

    row: int
    before: dict[str, Any]
    after: dict[str, Any]
    probability: tuple[float, float]
    reasons: tuple[tuple[str, ...], tuple[str, ...]]
    precision: float


@dataclass(frozen=True)
class ToldPerson:
    """One person and the reasons of a decision, and what another training would have said."""

    person: PersonReasons
    changes: str
    other_seed: tuple[str, ...]


@dataclass(frozen=True)
class Demo:
    """What the demonstration found."""

    auc: float
    k: int
    rows: tuple[ExplainedRow, ...]
    tested: int
    changed_share: float
    worst: Change

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def run(rows: int = 10, seed: int = 0) -> Demo:
    """Train a network on Adult, explain `rows` test rows, and look for reasons that change."""
    data = load("adult")
    most = len(data.test.y)
    require(0 < rows <= most, "demo", "rows", f"in 1..{most}", rows)
    model = train(data, seed)
    with torch.no_grad():
        margin = model(data.test.x).diff(dim=1)[:, 0]
    attacked = FeasibleSearch(feasible(data))(model, Gradient(), data.test.x, k=data.k)
    return Demo(
        auc=float(roc_auc_score(data.test.y.numpy(), margin.numpy())),
        k=data.k,
        rows=explain(model, data, rows),
        tested=most,
        changed_share=float((attacked.precision < 1).float().mean()),
        worst=change(model, data, int(attacked.precision.argmin()), attacked.x_adv),
    )


def told_person(seed: int = 0) -> ToldPerson:
    """Someone who is taken to earn at most 50K: why, what of it is proved, what is not.

    The first of whom both can be shown. The other training differs in its seed alone.
    """
    data = load("adult")
    first, second = (
        fit(None, data, "vanilla", epochs=SHORT, seed=s, progress=False, baselines=False)
        for s in (seed, (seed + 1) % 2**32)
    )
    x, toward = data.test.x[:LOOKED_AT], data.classes[0]
    found = reasons(first, x, toward=toward, only_decided=True, region=feasible(data))
    both = [p for p in found if p.broken_by and any(reason.proved for reason in p.reasons)]
    person = (both or list(found))[0]
    (other,) = reasons(second, x[person.row : person.row + 1], toward=toward)
    return ToldPerson(person, found.changes or "", other.columns)


def compared(rows: int = AUDITED, seed: int = 0, *, progress: bool = False) -> Comparison:
    """Train by each of the recipes on Adult, and audit `rows` test rows of every model."""
    data = load("adult")
    require(0 < rows <= len(data.test.y), "demo", "audited", f"in 1..{len(data.test.y)}", rows)
    audits = []
    with bar("", total=len(RECIPES), show=progress) as advance:
        for name in RECIPES:
            advance(0, f"training and auditing: {name}")
            done = fit(
                None, data, name, k=data.k, radius=RADIUS, epochs=EPOCHS, seed=seed, progress=False
            )
            audits.append(
                audit(
                    done.model,
                    data.test.x,
                    data.test.y,
                    k=data.k,
                    region=L2(RADIUS),
                    budget="fast",
                    rows=rows,
                    seed=seed,
                    names=data.names,
                    classes=data.classes,
                    name=name,
                )
            )
            advance(1)
    return compare(audits)


def train(data: Data, seed: int, epochs: int = 5) -> nn.Module:
    """The papers' network for tables, trained plainly."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = MLP(len(data.names))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = data.train
    for _ in range(epochs):
        shuffled = torch.randperm(len(y), generator=generator)
        for start in range(0, len(y), 256):
            batch = shuffled[start : start + 256]
            optimizer.zero_grad()
            cross_entropy(model(x[batch]), y[batch]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return model.eval()


def explain(model: nn.Module, data: Data, rows: int) -> tuple[ExplainedRow, ...]:
    """The reasons of the first test rows, and their thickness in a ball of radius 0.3."""
    x, region = data.test.x[:rows], L2(0.3, bounds=(0, 1))
    chosen = named(data, top_k(Gradient()(model, x), data.k))
    sure = probability(model, x)
    gaps = thickness(model, x, data.k, region=region)
    shares = thickness(model, x, data.k, region=region, kind="probability")
    return tuple(
        ExplainedRow(i, float(sure[i]), chosen[i], float(gaps[i]), float(shares[i]))
        for i in range(rows)
    )


def feasible(data: Data) -> Feasible:
    """Age and hours moved by whole years and hours, 25 points a row: every one is tried."""
    return Feasible(schema(data), moves=MOVED)


def change(model: nn.Module, data: Data, row: int, moved: Tensor) -> Change:
    """One row before and after its move, in words."""
    pair = torch.stack([data.test.x[row], moved[row]])
    scores = Gradient().at(model, pair)(pair)
    sure = probability(model, pair)
    before, after = named(data, top_k(scores, data.k))
    return Change(
        row=row,
        before=schema(data).decode(pair[0]),
        after=schema(data).decode(pair[1]),
        probability=(float(sure[0]), float(sure[1])),
        reasons=(before, after),
        precision=float(precision_at_k(scores[:1], scores[1:], data.k)),
    )


def schema(data: Data) -> Schema:
    """What the table's features mean."""
    if data.schema is None:
        raise InputError(f"demo: data must be a table with a schema, got {data!r}.")
    return data.schema


def probability(model: nn.Module, x: Tensor) -> Tensor:
    """Of the second class, (B,)."""
    with torch.no_grad():
        shares: Tensor = model(x).softmax(1)[:, 1]
    return shares


def named(data: Data, chosen: Tensor) -> list[tuple[str, ...]]:
    """Feature indices (B, k) as names."""
    return [tuple(data.names[i] for i in row) for row in chosen.tolist()]
