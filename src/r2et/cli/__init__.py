"""The command-line program `r2et`."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

import typer

from r2et.cli import (
    audit,
    bench,
    certify,
    data,
    demo,
    diff,
    leaderboard,
    reasons,
    report,
    train,
    verify,
)
from r2et.version import __version__

app = typer.Typer(
    name="r2et",
    help="Top-k explanations that hold still, and how still.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.command)
app.command("train")(train.command)
app.command("audit")(audit.command)
app.command("verify")(verify.command)
app.command("certify")(certify.command)
app.command("reasons")(reasons.command)
app.command("diff")(diff.command)
app.command("report")(report.command)
app.command("bench")(bench.command)
app.add_typer(data.app)
app.add_typer(leaderboard.app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"r2et {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    """Top-k explanations that hold still, and how still."""


# Of a terminal, a pipe or a file that takes no more; files that a command opens are its own.
FULL = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT)


def main() -> None:
    """Run a command; bad input is one sentence and exit code 2, Ctrl-C is 130."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in FULL or error.filename is not None:
            raise
        with contextlib.suppress(OSError, ValueError):  # what is left would fail once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        got = error.strerror
        typer.echo(f"r2et: the output must be one that can be written, got {got}.", err=True)
        sys.exit(2)
    except Exception as error:
        # Imported here: `r2et --help` should not wait for torch.
        from r2et.errors import R2ETError

        if not isinstance(error, R2ETError):
            raise
        typer.echo(str(error), err=True)
        sys.exit(2)
