"""The changes a row of a table could really have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, final

import torch
from torch import Tensor

from r2et.checks import check_input, check_same_shape
from r2et.errors import require
from r2et.region.base import Region
from r2et.region.label_switches import LabelSwitches, drawn, patterns, ways
from r2et.region.number_moves import NumberMoves
from r2et.region.parsing import as_number
from r2et.region.table_layout import (
    MEASURED,
    NumberColumn,
    TableLayout,
    TableSchema,
    as_columns,
    as_pairs,
    check_rows,
    check_schema,
    layout,
    schema_config,
)

BLOCK = 2**18  # numbers of points held at once while they are listed


@final
@dataclass(frozen=True)
class Feasible(Region):
    """Rows that differ from x by small moves of numbers and at most `switches` other labels.

    Integers stay integers, dates move by whole days, other numbers take any value or whole steps of
    `grid` from x. Nothing leaves the range 0..1 of the schema. A value flagged as missing stays,
    and so does every flag.

    Args:
        schema: of the table, such as load_table(...).schema.
        moves: how far each number may move, by column name, or one number for all; in raw units, or
            in `units`.
        switches: how many columns of labels may change at once.
        frozen: columns that stay, by name or by the index of one of their features.
        units: of `moves`, raw units by column name (schema.deviations(x) for standard deviations).
        grid: steps of numbers, raw units by column name.
    """

    schema: TableSchema
    _: KW_ONLY
    moves: Any = ()
    switches: int = 0
    frozen: Any = ()
    units: Any = None
    grid: Any = ()

    def __post_init__(self) -> None:
        where, schema = type(self).__name__, self.schema
        check_schema(where, schema)
        frozen = as_columns(where, self.frozen, schema)
        object.__setattr__(self, "frozen", frozen)
        one = isinstance(self.moves, int | float)
        moves = as_number(where, "moves", self.moves) if one else None
        if moves is not None:
            require(moves >= 0, where, "moves", "0 or more", self.moves)
            object.__setattr__(self, "moves", moves)
        else:
            object.__setattr__(self, "moves", as_pairs(where, "moves", self.moves, schema))
            both = [name for name, _ in self.moves if name in frozen]
            require(not both, where, "frozen", "columns without moves of their own", both)
        object.__setattr__(self, "grid", as_pairs(where, "grid", self.grid, schema))
        if self.units is not None:
            object.__setattr__(self, "units", as_pairs(where, "units", self.units, schema))
            lacking = [name for name, _ in self._moves() if name not in dict(self.units)]
            require(not lacking, where, "units", "given for every column that moves", lacking)
        whole = isinstance(self.switches, int) and not isinstance(self.switches, bool)
        whole = whole and self.switches >= 0
        require(whole, where, "switches", "a whole number, 0 or more", self.switches)
        free = bool(self._layout.numbers) or (self.switches > 0 and bool(self._layout.choices))
        expected = "such that at least one column may change"
        require(free, where, "moves, switches and frozen", expected, "nothing that can change")

    def config_value(self, name: str) -> Any:
        # Of a schema, what this region reads of it.
        return schema_config(self.schema) if name == "schema" else super().config_value(name)

    def project(self, x_adv: Tensor, x: Tensor) -> Tensor:
        """The feasible point with the smallest `distance` to x_adv (B, n); x where all tie."""
        self.check(x)
        self._check_moved(x_adv, x)
        numbers, choices = self._rows(x)
        values = numbers.nearest(x_adv[:, numbers.features])
        return self._place(x[None], numbers, values, choices, choices.nearest(x_adv)[None])[0]

    def sample(
        self,
        x: Tensor,
        count: int = 1,
        *,
        generator: torch.Generator | None = None,
        antithetic: bool = False,
        shared: bool = False,
    ) -> Tensor:
        """(count, B, n) points: each feasible point of a row equally likely, x itself included.

        Numbers that take any value are uniform between their limits, whatever is switched.
        antithetic: the second half comes from 1 - u where the first came from uniform u. shared:
        one u for all rows. generator: by default one seeded with 0.
        """
        self.check(x)
        whole = isinstance(count, int) and not isinstance(count, bool) and count > 0
        require(whole, type(self).__name__, "count", "a positive whole number", count)
        numbers, choices = self._rows(x)
        split = len(numbers.features)
        # Drawn on the CPU in float64: the same points on every device and in every precision.
        half = (count + 1) // 2 if antithetic else count
        shape = (half, 1 if shared else len(x), split + len(choices.sizes))
        generator = generator or torch.Generator().manual_seed(0)
        share = torch.rand(shape, generator=generator, dtype=torch.float64)
        share = share.expand(-1, len(x), -1)
        if antithetic:
            share = torch.cat([share, 1 - 2.0**-53 - share])[:count]
        offsets = drawn(choices.sizes, choices.most, share[..., split:])
        values = numbers.drawn(share[..., :split].to(x.device))
        return self._place(x.expand(count, -1, -1), numbers, values, choices, offsets)

    def extreme(self, x: Tensor, noise: Tensor) -> Tensor:
        """A point far out in the set around each row: (B, n).

        Every number is moved as far as it may, down or up; each way to switch labels is equally
        likely.
        """
        self.check(x)
        check_same_shape(type(self).__name__, noise, x, "noise", "x")
        numbers, choices = self._rows(x)
        beyond = x[:, numbers.features] + 2 * noise[:, numbers.features].sign().to(x)
        firsts = [span[0] for span in choices.spans]
        share = torch.special.ndtr(noise[:, firsts].detach().cpu().double())
        offsets = drawn(choices.sizes, choices.most, share.clamp(max=1 - 2.0**-53))
        values = numbers.nearest(beyond)
        return self._place(x[None], numbers, values, choices, offsets[None])[0]

    def scaled(self, times: float) -> Feasible:
        """Moves so many times as far, and as many switches."""
        if isinstance(self.moves, float):
            return replace(self, moves=times * self.moves)
        return replace(self, moves={name: times * far for name, far in self.moves})

    def distance(self, x_adv: Tensor, x: Tensor) -> Tensor:
        """(B,) sum over columns: a number's move over the longest allowed, and 1 for a switch.

        A metric for all inputs, sum of |x_adv - x| / weight: the weight is a number's longest move,
        2 for a one-hot feature (a switch changes two), and 1 for all others.
        """
        self._check_moved(x_adv, x)
        width = len(self._weights)
        require(x.shape[1:] == (width,), type(self).__name__, "x", f"of shape (B, {width})", x)
        return ((x_adv.double() - x.double()).abs() / self._weights.to(x.device)).sum(1)

    def contains(self, x_adv: Tensor, x: Tensor) -> Tensor:
        """(B,) bool: exactly one of the points that project, sample and enumerate give."""
        return (self.project(x_adv, x) == x_adv).all(1)

    def _check_moved(self, x_adv: Tensor, x: Tensor) -> None:
        where = type(self).__name__
        check_input(where, x)
        check_input(where, x_adv, "x_adv")
        check_same_shape(where, x_adv, x, "x_adv", "x")
        require(x_adv.dtype == x.dtype, where, "x_adv", f"{x.dtype} as x is", x_adv)

    def check(self, x: Tensor) -> None:
        """Refuse rows that the schema could not have encoded."""
        check_rows(type(self).__name__, self._layout, x)

    def count(self, x: Tensor) -> Tensor:
        """(B,) float64: how many feasible points each row has, itself included; may be infinite."""
        self.check(x)
        return self._rows(x)[0].count.prod(1) * float(self._ways)

    @cached_property
    def most(self) -> float:
        """The largest `count` that any row can have."""
        return math.prod(self.sizes) * float(self._ways)

    def nth(self, x: Tensor, index: Tensor) -> Tensor:
        """The points numbered index (m, B), each below its row's count: (m, B, n); 0 is x."""
        self.check(x)
        numbers, choices = self._rows(x)
        listed = self._patterns.to(x.device)
        values = numbers.nth(index // len(listed))
        offsets = listed[index % len(listed)]
        return self._place(x.expand(len(index), -1, -1), numbers, values, choices, offsets)

    def enumerate(self, x: Tensor, limit: int = 10_000) -> Iterator[tuple[Tensor, Tensor]]:
        """Every feasible point of every row once: (rows (A,), points (A, n)) at a time, x first.

        A: the rows of x that have so many points. A row with more than `limit` is refused.
        """
        count = self.count(x)
        row = int(count.argmax())
        expected = f"rows of at most {limit} feasible points (the limit)"
        value = f"x[{row}] with {float(count[row]):g}"
        require(float(count[row]) <= limit, type(self).__name__, "x", expected, value)
        together = max(1, BLOCK // x.numel())
        for first in range(0, int(count.max()), together):
            index = torch.arange(first, first + together, device=x.device)[:, None]
            points = self.nth(x, index % count.long())
            for i, here in enumerate(index < count):
                if here.any():
                    rows = here.nonzero().flatten()
                    yield rows, points[i, rows]

    @property
    def reaches(self) -> tuple[tuple[str, float], ...]:
        """How far each number of `columns` may move, in raw units."""
        return tuple((number.name, number.reach) for number in self._numbers)

    @property
    def ways(self) -> int:
        """In how many ways labels may be switched, none of them included.

        nth(x, index) with an index below switches labels alone, in the way of that number.
        """
        return self._ways

    def box(self, x: Tensor) -> Tensor:
        """(B, n) float64: how far each feature may be moved as a number, to either side at most."""
        self.check(x)
        numbers, _ = self._rows(x)
        reach = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
        reach[:, numbers.features] = numbers.reach()
        return reach

    def limits(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, n) each: the lowest and the highest value of every feature, labels as they are.

        Of rows with labels switched alone the numbers have these same limits.
        """
        self.check(x)
        numbers, _ = self._rows(x)
        low, high = x.clone(), x.clone()
        low[:, numbers.features], high[:, numbers.features] = numbers.ends()
        return torch.minimum(low, x), torch.maximum(high, x)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that may change: numbers, then labels."""
        free = self._layout.choices if self.switches else ()
        return (*(number.name for number in self._numbers), *(choice.name for choice in free))

    @cached_property
    def sizes(self) -> tuple[float, ...]:
        """How many values each number of `columns` can take at most; infinity for any value."""
        numbers = self._numbers
        return tuple(1 + 2 * round(n.reach / n.step) if n.step else math.inf for n in numbers)

    def vary(
        self, x: Tensor, at: Tensor, column: int, most: int = 16, share: float = 1.0
    ) -> Iterator[Tensor]:
        """Feasible points (m, B, n) that differ from `at` (B, n) in columns[column] alone.

        A number takes at most `most` values, evenly spread over `share` of its whole range around
        `at`. A label takes every value; where no switch is left, another one is taken back, each
        in turn.
        """
        numbers, choices = self._rows(x)
        if column < len(numbers.features):
            feature, size = numbers.features[column], int(min(most, self.sizes[column]))
            points = at.repeat(size, 1, 1)
            points[..., feature] = numbers.spread(column, at[:, feature], size, share)
            yield points
            return
        g = column - len(numbers.features)
        for slot in range(choices.most):
            offsets = choices.swaps(at, g, slot)
            yield choices.write(at.repeat(len(offsets), 1, 1), offsets)

    def _place(
        self,
        x: Tensor,
        numbers: NumberMoves,
        values: Tensor,
        choices: LabelSwitches,
        offsets: Tensor,
    ) -> Tensor:
        """x (m, B, n) with its numbers set to values (m, B, M) and its labels switched."""
        out = x.clone()
        out[..., numbers.features] = values
        return choices.write(out, offsets)

    def _rows(self, x: Tensor) -> tuple[NumberMoves, LabelSwitches]:
        choices = self._layout.choices if self.switches else ()
        return NumberMoves(self._numbers, x), LabelSwitches(choices, self.switches, x)

    def _moves(self) -> tuple[tuple[str, float], ...]:
        """How far each free number moves, in units."""
        if not isinstance(self.moves, float):
            return tuple(self.moves)
        free = (c for c in self.schema.columns if c.kind in MEASURED and c.name not in self.frozen)
        return tuple((column.name, self.moves) for column in free)

    @cached_property
    def _layout(self) -> TableLayout:
        units = dict(self.units or ())
        reach = {name: far * units.get(name, 1.0) for name, far in self._moves()}
        return layout(type(self).__name__, self.schema, reach, self.grid, self.frozen)

    @property
    def _numbers(self) -> tuple[NumberColumn, ...]:
        return self._layout.numbers

    @cached_property
    def _ways(self) -> int:
        sizes = [choice.size for choice in self._layout.choices]
        return ways(sizes, min(self.switches, len(sizes)))[0][-1]

    @cached_property
    def _patterns(self) -> Tensor:
        """Every way to switch labels, (ways, G); asked for only where there are few."""
        sizes = [choice.size for choice in self._layout.choices] if self.switches else []
        return patterns(sizes, min(self.switches, len(sizes)))

    @cached_property
    def _weights(self) -> Tensor:
        weights = torch.ones(len(self._layout.names), dtype=torch.float64)
        for choice in self._layout.labels:
            weights[list(choice.features)] = 1.0 if len(choice.features) == 1 else 2.0
        for number in self._numbers:
            weights[number.feature] = number.reach / (number.high - number.low)
        return weights
