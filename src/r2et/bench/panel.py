"""A panel: what one picture shows of one recipe on one data set, and the records behind it."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from r2et.bench.claim import made_with
from r2et.bench.grid import Grid, chosen
from r2et.bench.method import title_of
from r2et.bench.record import Record
from r2et.bench.task import Measure, Options, Task, Train
from r2et.errors import InputError

FORMAT = "r2et-panel/1"


@dataclass(frozen=True)
class Panel:
    """values: what is drawn, as JSON holds it. failed: why there is nothing to draw."""

    figure: str
    data: str
    recipe: str
    values: Mapping[str, Any] = field(default_factory=dict)
    records: tuple[str, ...] = ()
    failed: str | None = None
    made: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of its file, below the folder of claims."""
        return f"{self.figure}/{self.data}-{title_of(self.recipe)}.json"

    def to_json(self) -> str:
        """The file's text."""
        told = {"format": FORMAT, **asdict(self)}
        return json.dumps(told, allow_nan=False, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str) -> Panel:
        """A stored panel; a file that is none is refused in a sentence."""
        try:
            told = json.loads(text)
            if told.pop("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            return cls(**{**told, "records": tuple(told["records"])})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            said = f"{source} ({type(error).__name__}: {error})"
            raise InputError(f"bench: a panel must be a file of r2et bench, got {said}.") from error


PanelPlan = Generator[list[Task], list[Record], Panel]


def panel(
    figure: str,
    train: Train,
    kind: str,
    options: Options,
    names: Sequence[str],
    seeds: Sequence[Train] = (),
) -> PanelPlan:
    """One measurement of one training, or the same of several; `names` of what it measures."""
    trains = seeds or (train,)
    records = yield [Measure(one, kind, options) for one in trains]
    failed = next((r.failed for r in records if r.failed is not None), None)
    if failed is not None:
        return Panel(figure, train.data, train.recipe, failed=failed)
    values = {name: [r.measured[name] for r in records] for name in names}
    if len(records) == 1:
        values = {name: value[0] for name, value in values.items()}
    told = tuple(r.name for r in records)
    return Panel(figure, train.data, train.recipe, values, told, made=made_with(records))


def first(
    grid: Grid, figure: str, data: str, recipe: str
) -> Generator[list[Task], list[Record], Train | Panel]:
    """The chosen training of a recipe with the first seed, or a panel that says why not."""
    found = yield from chosen(grid, data, recipe)
    if found.failed is not None:
        return Panel(figure, data, recipe, failed=found.failed)
    return found.trains[0]
