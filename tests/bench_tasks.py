"""Tasks that cost nothing, in a module that other processes can import."""

import os
import signal
from dataclasses import dataclass

from r2et.bench.task import Done, Task


@dataclass(frozen=True)
class Sum(Task):
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

    def settings(self):
        return {"label": self.label, "after": [need.name for need in self.after]}

    def do(self, given):
        if self.bad == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.bad == "exit":
            raise SystemExit(0)
        if self.bad == "nan":
            return Done({"total": float("nan")})
        if self.bad:
            raise ValueError(self.bad)
        total = 1 + sum(g.record.measured["total"] for g in given)
        network = b"weights" if self.label == "a" else None
        if self.after and self.after[0].label == "a":
            assert given[0].network == b"weights"
        return Done({"total": total}, network=network)
