"""Each audit of the command line leaves what it has in a file of its own."""

import pytest
from typer.testing import CliRunner

from r2et.audit import request
from r2et.cli import app


@pytest.fixture
def stopped(monkeypatch):
    """Where audits that are stopped at once would have left what they have."""
    seen = []

    def audit(*_, partial, **__):
        seen.append(partial.name)
        raise KeyboardInterrupt

    monkeypatch.setattr(request, "audit", audit)
    return seen


def test_other_rows_are_another_audit(stopped, folder):
    for options in ([], ["--rows", "20"], ["--rows", "30"], ["--rows", "20", "--minutes", "1"]):
        done = CliRunner().invoke(app, ["audit", folder, "adult", "--k", "2", *options])
        assert done.exit_code == 130
    assert len(set(stopped)) == 3
    assert stopped[1] == stopped[3]  # more time goes on with the same
