"""A panel: what one picture shows of one recipe on one data set, and the records behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from r2et.bench.claim import made_with
from r2et.bench.grid import Grid, chosen
from r2et.bench.method import title_of
from r2et.bench.record import Record
from r2et.bench.task import Measure, Options, Task
from r2et.errors import InputError

FORMAT = "r2et-panel/1"


@dataclass(frozen=True)
class Panel:
    """values: what is drawn, as JSON holds it. failed: why there is nothing to draw.

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
            lists = {name: tuple(told.get(name, ())) for name in ("records", "unreliable")}
            return cls(**{**told, **lists})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            said = f"{source} ({type(error).__name__}: {error})"
            raise InputError(f"bench: a panel must be a file of r2et bench, got {said}.") from error


def load_panels(folder: Path, figure: str) -> list[Panel]:
    """The panels of one figure, in the order of their names."""
    found = sorted((folder / figure).glob("*.json"))
    return [Panel.from_json(path.read_text(encoding="utf-8"), str(path)) for path in found]


PanelPlan = Generator[list[Task], list[Record], Panel]


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
        found = values()
    except KeyError as error:
        return Panel(figure, data, recipe, failed=f"its record has no {error}")
    return Panel(figure, data, recipe, found, names, None, made_with(records), tuple(below))


def measured(
    grid: Grid, figure: str, data: str, recipe: str, kind: str, options: Options, *names: str
) -> PanelPlan:
    """One measurement of the chosen training with the first seed: `names` of what it finds."""
    found = yield from chosen(grid, data, recipe)
    if found.failed is not None:
        return Panel(figure, data, recipe, failed=found.failed)
    records = yield [Measure(found.trains[0], kind, options)]

    def values() -> dict[str, Any]:
        return {name: records[0].measured[name] for name in names}

    return panel(figure, data, recipe, records, values, found.unreliable)
