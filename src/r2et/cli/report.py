"""r2et report"""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    audits: Annotated[
        list[str],
        typer.Argument(metavar="AUDIT.json", help="What `r2et audit --json` wrote."),
    ],
    out: str = typer.Option("report.html", "-o", "--out", help="The page to write."),
    title: str = typer.Option(None, help="Its title; by default the name of the model."),
) -> None:
    """Turn audits into one HTML page: a verdict, the proof beside the attack, single rows."""
    from r2et.report import page, read_audit

    page([read_audit(audit) for audit in audits], out, title=title)
    typer.echo(f"wrote {out}")
