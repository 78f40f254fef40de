"""Carry out plans: tasks when what they need is done, each once, on any engine."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypeAlias

import torch

from r2et.bench.record import Record, Records
from r2et.bench.task import BenchTask, TaskInput, TaskResult
from r2et.engine import LATER, Engine, Lost
from r2et.errors import first_line
from r2et.machine import machine
from r2et.version import __version__

# Asks for tasks, gets their records, asks for more; returns what it makes of them.
Plan: TypeAlias = Generator[list[BenchTask], list[Record], Any]
Watch: TypeAlias = Callable[[str, int, int], None]
TOO_LATE = "not begun within the budget"
PASSING = (TOO_LATE, "its worker ended")  # reasons that another run may not have


@dataclass(frozen=True)
class Work:
    """What a worker does: the task, timed; an error is a result as well."""

    def __call__(
        self, item: tuple[BenchTask, tuple[TaskInput, ...]]
    ) -> tuple[TaskResult | str, dict[str, Any]]:
        task, inputs = item
        began, busy = time.perf_counter(), time.process_time()
        result: TaskResult | str
        try:
            result = task.do(inputs)
        except (Exception, SystemExit) as error:  # one cell of a table; the others go on
            result = f"{type(error).__name__}: {first_line(error)}"
        made = {
            "seconds": round(time.perf_counter() - began, 3),
            "processor_seconds": round(
                time.process_time() - busy, 3
            ),  # of a machine that is shared
            "r2et": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            **machine(),
            "host": platform.node(),
            "date": datetime.now(timezone.utc).date().isoformat(),
        }
        return result, made


class Schedule:
    """All tasks of some plans: known, waiting for others, ready, under way, done."""

    def __init__(self, records: Records, until: float | None = None) -> None:
        self.records, self.until = records, until
        self.done: dict[BenchTask, Record] = {}
        self.blocks: dict[BenchTask, list[BenchTask]] = {}  # those that wait for it
        self.missing: dict[BenchTask, int] = {}  # how many needs are open
        self.ready: deque[BenchTask] = deque()
        self.sent: list[BenchTask] = []
        self.results: dict[int, Any] = {}
        self.ran = 0
        self._plans: dict[int, tuple[Plan, list[BenchTask]]] = {}

    def add(self, number: int, plan: Plan) -> None:
        """Take in a plan, as far as it goes without new results."""
        self._advance(number, plan, None)

    def items(self) -> Iterator[Any]:
        """Tasks for an engine, with what they need; LATER while all that is left waits."""
        while self.open:
            if not self.ready:
                yield LATER
                continue
            task = self.ready.popleft()
            if self.until is not None and time.monotonic() > self.until:
                self.finish(task, Record(task.config(), failed=TOO_LATE))
            elif task.here:
                self.take(task, *Work()((task, self._inputs(task))))
            else:
                self.sent.append(task)
                yield task, self._inputs(task)

    @property
    def open(self) -> int:
        """How many tasks are not done."""
        return len(self.missing)

    def take(self, task: BenchTask, result: TaskResult | str, made: dict[str, Any]) -> None:
        """A result: keep it in a file, and go on with what waited for it."""
        asked: dict[str, Any] = {
            "config": task.config(),
            "name": task.name,
            "reported": task.reported(),
        }
        network = None
        if not isinstance(result, str) and not _finite(result.measured):
            result = "a number in its result is not finite"
        if isinstance(result, str):
            record = Record(**asked, failed=result, made=made)
        else:
            measured, network = result.measured, result.network
            if network is not None:
                measured = {**measured, "network_sha256": _sha256(network)}
            record = Record(**asked, measured=measured, unreliable=result.unreliable, made=made)
        self.ran += 1
        self.finish(task, self.records.save(record, network))

    def lose(self, task: BenchTask, reason: str) -> None:
        """A task whose workers died: not kept, so that the next run tries again."""
        self.finish(task, Record(task.config(), failed=reason, name=task.name))

    def finish(self, task: BenchTask, record: Record) -> None:
        """Note the record, wake what waited."""
        self.missing.pop(task, None)
        self.done[task] = record
        for other in self.blocks.pop(task, []):
            if record.failed is not None and other in self.missing:
                why = f"{task.title}: {record.failed}"
                self.finish(other, Record(other.config(), failed=why, name=other.name))
            elif other in self.missing:
                self.missing[other] -= 1
                if self.missing[other] == 0:
                    self.ready.append(other)
        self._wake()

    def _inputs(self, task: BenchTask) -> tuple[TaskInput, ...]:
        inputs = []
        for need in task.needs:
            record = self.done[need]
            has = "network_sha256" in record.measured
            inputs.append(TaskInput(record, self.records.model(record.name) if has else None))
        return tuple(inputs)

    def _want(self, task: BenchTask) -> None:
        """Find the record of a task, or put the task and what it needs on the list."""
        if task in self.done or task in self.missing:
            return
        record = self.records.find(task.name, [need.name for need in task.needs])
        if record is not None and record.failed is None:
            self.done[task] = record
            return
        for need in task.needs:
            self._want(need)
        failed = [n for n in task.needs if n in self.done and self.done[n].failed is not None]
        if failed:
            why = f"{failed[0].title}: {self.done[failed[0]].failed}"
            self.done[task] = Record(task.config(), failed=why, name=task.name)
            return
        open_needs = [need for need in task.needs if need in self.missing]
        self.missing[task] = len(open_needs)
        for need in open_needs:
            self.blocks.setdefault(need, []).append(task)
        if not open_needs:
            self.ready.append(task)

    def _wake(self) -> None:
        """Go on with plans whose tasks are all done."""
        for number, (plan, wanted) in list(self._plans.items()):
            if number in self._plans and all(task in self.done for task in wanted):
                del self._plans[number]
                self._advance(number, plan, [self.done[task] for task in wanted])

    def _advance(self, number: int, plan: Plan, records: list[Record] | None) -> None:
        while True:
            try:
                wanted = next(plan) if records is None else plan.send(records)
            except StopIteration as end:
                self.results[number] = end.value
                return
            for task in wanted:
                self._want(task)
            if not all(task in self.done for task in wanted):
                self._plans[number] = (plan, wanted)
                return
            records = [self.done[task] for task in wanted]


def carry_out(
    plans: Iterable[Plan],
    records: Records,
    run: Engine,
    *,
    until: float | None = None,
    watch: Watch | None = None,
) -> list[Any]:
    """Carry out all plans together and give what each returns.

    until: of time.monotonic(); no task is begun after it.
    watch: hears of each finished task: its title, how many are done, and how many are left.
    """
    schedule = Schedule(records, until)
    count = 0
    for count, plan in enumerate(plans, 1):
        schedule.add(count - 1, plan)
    for index, result in run(Work(), schedule.items()):
        task = schedule.sent[index]
        if isinstance(result, Lost):
            schedule.lose(task, result.reason)
        else:
            outcome, made = result
            schedule.take(task, outcome, {**made, "engine": type(run).__name__.lower()})
        if watch is not None:
            watch(task.title, schedule.ran, schedule.open)
    return [schedule.results[number] for number in range(count)]


def _finite(measured: dict[str, Any]) -> bool:
    """Whether JSON can hold it."""
    try:
        json.dumps(measured, allow_nan=False)
    except ValueError:
        return False
    return True


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
