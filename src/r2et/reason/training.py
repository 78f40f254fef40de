"""Training for reasons from the outside: its changes, its class, and what came of them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from r2et.audit.moves import feasible_moves
from r2et.data import Data
from r2et.defaults import REASONS
from r2et.errors import require
from r2et.penalty import CertifiedRanking
from r2et.reason.principal_reasons import reasons
from r2et.region import Feasible, Region
from r2et.train import Recipe, load_trained, recipe
from r2et.train.defaults import column_groups

WHERE = "train"
ROWS = 100  # test rows whose reasons are proved or broken after a training


@dataclass(frozen=True)
class TrainedReasons:
    """How still the reasons of test rows hold, for the changes that a network was trained for.

    rows: how many of the first test rows.
    k: reasons at most.
    toward: the class that they are of; None for the one each row is decided for.
    changes: which, in words.
    proved, unknown, broken: shares of the rows.
    sets: different sets of columns that people are given.
    """

    rows: int
    k: int
    toward: str | None
    changes: str
    proved: float
    unknown: float
    broken: float
    sets: int


def trained_for(
    data: Data,
    chosen: Recipe,
    *,
    moves: str | None = None,
    switches: int | None = None,
    frozen: str | None = None,
    toward: str | None = None,
    compared: bool = False,
) -> tuple[Recipe, Feasible | None]:
    """The recipe and the region of `--toward bad --moves age=2 --switches 1`.

    Of a recipe that is not of reasons none of these can be asked, but for `toward` where reasons
    are `compared` afterwards.
    """
    asked = {"moves": moves, "switches": switches, "frozen": frozen, "toward": toward}
    given = {name: value for name, value in asked.items() if value is not None}
    if compared and not of_reasons(chosen) and list(given) == ["toward"]:
        class_index(data, str(toward))
        given = {}
    if not given:
        return chosen, None
    name, value = next(iter(given.items()))
    expected = f"left out for {chosen.name} (r2et-reasons and certified-reasons train for it)"
    require(of_reasons(chosen), WHERE, name, expected, value)
    if toward is not None:
        chosen = recipe(chosen, toward=class_index(data, toward))
    if moves is None and switches is None:
        require(frozen is None, WHERE, "frozen", "given with --moves", frozen)
        return chosen, None
    known = data.schema is not None
    require(known, WHERE, name, "given for a table whose columns are known", data.name)
    assert data.schema is not None
    if isinstance(chosen.penalty, CertifiedRanking):
        expected = f"left out for {chosen.name}, whose proof is of numbers (take r2et-reasons)"
        require(not switches, WHERE, "switches", expected, switches)
    region = feasible_moves(data.schema, moves, switches, frozen, where=WHERE)
    if isinstance(chosen.penalty, CertifiedRanking):
        expected = f"of numbers alone for {chosen.name} (for categories take r2et-reasons)"
        require(not region.switches, WHERE, "moves", expected, moves)
    return chosen, region


def of_reasons(chosen: Recipe) -> bool:
    """Whether a recipe trains for the reasons that people are given."""
    return chosen.penalty is not None and chosen.penalty.of_reasons


def class_index(data: Data, toward: str) -> int:
    """A class by its label, or by its number where no label reads so."""
    labels = tuple(data.classes)
    if toward in labels:
        return labels.index(toward)
    inside = toward.isdecimal() and int(toward) < max(2, len(labels))
    known = ", ".join(labels) if labels else "0, 1"
    require(inside, WHERE, "toward", f"a class of the data ({known})", toward)
    return int(toward)


def trained_reasons(
    folder: str | os.PathLike[str],
    data: Data,
    region: Region | None,
    *,
    k: int | None = None,
    toward: str | None = None,
    rows: int = ROWS,
    progress: bool = False,
) -> TrainedReasons | None:
    """The reasons of test rows for a region, by default what a table's rows are usually off by.

    None where nothing is known of the table's columns.
    """
    if region is None:
        if data.schema is None:
            return None
        region = Feasible(data.schema, moves=data.schema.usual_moves(data.train.x))
    k = most_reasons(data) if k is None else k
    result = reasons(
        load_trained(folder),
        data.test.x[:rows],
        k=k,
        toward=None if toward is None else class_index(data, toward),
        region=region,
        progress=progress,
    )
    shares = {name: float(share or 0.0) for name, share in result.shares().items()}
    sets = len({frozenset(person.columns) for person in result})
    return TrainedReasons(len(result), k, toward, str(result.changes), **shares, sets=sets)


def most_reasons(data: Data) -> int:
    """How many a person is given: four, or one less than there are columns."""
    return max(1, min(REASONS, len(column_groups(data)) - 1))
