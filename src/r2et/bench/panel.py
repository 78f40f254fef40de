"""A panel: what one picture shows of one recipe on one dataset, and the records behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from r2et.bench.claim import UNREADABLE, made_with, no_file_of_ours
from r2et.bench.grid import Grid, select_trainings
from r2et.bench.measure_task import MeasureTask, Options
from r2et.bench.method import title_of
from r2et.bench.record import Record
from r2et.bench.task import BenchTask

FORMAT = "r2et-panel/1"


@dataclass(frozen=True)
class Panel:
    """What one picture shows of one recipe on one dataset.

    values: what is drawn, as JSON holds it.
    records: names of the records behind it.
    failed: why there is nothing to draw.
    made: versions, machine, date and seconds of its records together.
    unreliable: why its model does not count, as an accuracy below the threshold.
    """

    figure: str
    data: str
    recipe: str
    values: Mapping[str, Any] = field(default_factory=dict)
    records: tuple[str, ...] = ()
    failed: str | None = None
    made: Mapping[str, Any] = field(default_factory=dict)
    unreliable: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of its file, below the folder of claims."""
        return f"{self.figure}/{self.data}-{title_of(self.recipe)}.json"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"format": FORMAT, **asdict(self)}

    def to_json(self) -> str:
        """The file's text."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str) -> Panel:
        """A stored panel; a file that is none is refused in a sentence."""
        try:
            return cls.from_dict(json.loads(text))
        except UNREADABLE as error:
            raise no_file_of_ours("panel", source, error) from error

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Panel:
        """From the data of its file."""
        if stored["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        lists = {name: tuple(stored.get(name, ())) for name in ("records", "unreliable")}
        return cls(**{**{n: v for n, v in stored.items() if n != "format"}, **lists})


PanelPlan = Generator[list[BenchTask], list[Record], Panel]


def panel(
    figure: str,
    data: str,
    recipe: str,
    records: Sequence[Record],
    values: Callable[[], Mapping[str, Any]],
    below: Iterable[str] = (),
) -> Panel:
    """What records give, or why they do not. below: what speaks against the choice of a model."""
    failed = next((r.failed for r in records if r.failed is not None), None)
    if failed is not None:
        return Panel(figure, data, recipe, failed=failed)
    names = tuple(r.name for r in records)
    try:
        drawn = values()
    except KeyError as error:
        return Panel(figure, data, recipe, failed=f"its record has no {error}")
    return Panel(figure, data, recipe, drawn, names, None, made_with(records), tuple(below))


def measured(
    grid: Grid, figure: str, data: str, recipe: str, kind: str, options: Options, *names: str
) -> PanelPlan:
    """One measurement of the selected training with the first seed: `names` of its values."""
    selected = yield from select_trainings(grid, data, recipe)
    if selected.failed is not None:
        return Panel(figure, data, recipe, failed=selected.failed)
    records = yield [MeasureTask(selected.trains[0], kind, options)]

    def values() -> dict[str, Any]:
        return {name: records[0].measured[name] for name in names}

    return panel(figure, data, recipe, records, values, selected.unreliable)
