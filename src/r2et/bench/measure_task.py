"""The task of measuring something of one trained network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from r2et.bench.method import title_of
from r2et.bench.papers import reported_values, where_reported
from r2et.bench.record import OF_NETWORK
from r2et.bench.table_measurements import MEASUREMENTS
from r2et.bench.task import BenchTask, TaskInput, TaskResult, task_config
from r2et.bench.train_task import TrainTask

Options = tuple[tuple[str, Any], ...]


@final
@dataclass(frozen=True)
class MeasureTask(BenchTask):
    """Something measured of a trained network: one of MEASUREMENTS, with its options."""

    of: TrainTask
    kind: str
    options: Options = ()

    @property
    def needs(self) -> tuple[BenchTask, ...]:
        return (self.of,)

    @property
    def title(self) -> str:
        return f"{self.of.data}-{title_of(self.of.recipe)}-{self.kind}"

    def config(self) -> dict[str, Any]:
        measurement = MEASUREMENTS[self.kind]
        settings = measurement.settings(self.of.benchmark, **dict(self.options))
        return task_config(self.kind, measurement.version, of=self.of.config(), **settings)

    def reported(self) -> dict[str, Any] | None:
        benchmark, options = self.of.benchmark, dict(self.options)
        place = where_reported(self.kind, options, self.of.retrain, benchmark.k, benchmark.ks)
        return None if place is None else reported_values(benchmark.paper, self.of.recipe, *place)

    def do(self, inputs: tuple[TaskInput, ...]) -> TaskResult:
        benchmark, trained = self.of.benchmark, inputs[0]
        measure, model = MEASUREMENTS[self.kind], self.of.rebuild(trained)
        measured = measure(benchmark, model, benchmark.load(), **dict(self.options))
        measured[OF_NETWORK] = trained.record.measured["network_sha256"]
        return TaskResult(measured, (*trained.record.unreliable, *doubts(measured)))


def doubts(measured: dict[str, Any]) -> tuple[str, ...]:
    """What a measurement says against itself."""
    ties, rows = measured.get("tied_rows", 0), measured.get("rows", 0)
    if not ties:
        return ()
    return (f"{ties} of {rows} rows have equal scores at the border, ranked by feature number",)
