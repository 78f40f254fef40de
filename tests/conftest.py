"""One thread; attacks cut short; unexpected skips are failures where CI asks for it."""

import os
import traceback
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch._subclasses import fake_tensor

from r2et.attack.strong import PLANS
from r2et.audit import example_rows
from r2et.audit.measures import attacks
from skips import is_expected

# The networks in these tests are tiny, and threads make them many times slower.
torch.set_num_threads(1)

# At each tensor of a trace, torch notes the stack for messages of its own. Under pytest it is deep:
# a third of the time of a trace.
fake_tensor.traceback = SimpleNamespace(
    extract_stack=traceback.StackSummary, format_list=traceback.format_list
)

STRICT = os.environ.get("R2ET_STRICT_SKIPS") == "1"


class UnexpectedSkips:
    """Collects skips from this process and, under xdist, from its workers; then fails the run."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.skips: list[str] = []

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            if not is_expected(str(reason)):
                self.skips.append(f"{report.nodeid}: {reason}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        """A module skipped as a whole is known to the workers alone."""
        self.skips += getattr(node, "workeroutput", {}).get("unexpected_skips", [])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.skips = sorted(set(self.skips))
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["unexpected_skips"] = self.skips
        elif self.skips and session.exitstatus in (pytest.ExitCode.OK, 0):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter) -> None:
        if self.skips:
            terminalreporter.section("unexpected skips: see tests/skips.py")
            for line in self.skips:
                terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    if STRICT:
        config.pluginmanager.register(UnexpectedSkips(config))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Networks that a test or its fixtures make without a seed are the same in every run."""
    torch.manual_seed(0)


def _shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(PLANS["fast"], random=8, steps=2, rounds=1, around=2, units=2)
    monkeypatch.setitem(PLANS, "fast", few)
    monkeypatch.setitem(attacks.STEPS, "fast", 3)
    monkeypatch.setattr(example_rows, "FRACTIONS", (1.0,))


@pytest.fixture
def short_attacks(monkeypatch):
    """Attacks that look at few points: for tests of what is made of their results.

    In this process alone, not in workers that it starts.
    """
    _shorten(monkeypatch)


@pytest.fixture(scope="module")
def short_attacks_throughout():
    """The same for all tests of a file, so that they can share an audit."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        _shorten(monkeypatch)
        yield
