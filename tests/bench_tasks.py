"""Tasks that cost nothing, in a module that other processes can import."""

import os
import signal
from dataclasses import dataclass

from r2et.bench.task import BenchTask, TaskResult, task_config


@dataclass(frozen=True)
class Sum(BenchTask):
    """The sum of what it needs, and one."""

    label: str
    after: tuple["Sum", ...] = ()
    bad: str = ""

    @property
    def needs(self):
        return self.after

    @property
    def title(self):
        return self.label

    def config(self):
        return task_config("sum", 1, label=self.label, after=[need.name for need in self.after])

    def do(self, inputs):
        if self.bad == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.bad == "exit":
            raise SystemExit(0)
        if self.bad == "nan":
            return TaskResult({"total": float("nan")})
        if self.bad:
            raise ValueError(self.bad)
        total = 1 + sum(each.record.measured["total"] for each in inputs)
        network = b"weights" if self.label == "a" else None
        if self.after and self.after[0].label == "a":
            assert inputs[0].network == b"weights"
        return TaskResult({"total": total}, network=network)
