"""r2et verify"""

from __future__ import annotations

import json

import typer

GATE, PAGES = 3, 4  # exit codes of other figures, and of pages that nobody vouches for


def command(
    pack: str = typer.Argument(help="A file that `r2et audit --pack` wrote."),
    data: str = typer.Option(
        None, help="The file that was audited, where it is not at its old place."
    ),
    model: str = typer.Option(
        None, help="package.module:factory, for a pack that was made with one; or a folder."
    ),
    tolerance: float = typer.Option(
        1e-3, help="How far numbers may be apart, relative to the larger one."
    ),
    members_only: bool = typer.Option(
        False, "--members-only", help="Check the files of the pack, and audit nothing."
    ),
    engine: str = typer.Option("processes", help="serial, processes or ray."),
    workers: int = typer.Option(None, help="How many processes; by default one per core."),
    address: str = typer.Option(None, help="Of a Ray cluster: auto or host:port."),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Check a pack, audit its model on its rows again, and say what is equal to the bit."""
    import torch

    from r2et.audit.repetition import VerifyCommand

    torch.set_num_threads(1)
    asked = VerifyCommand(pack, data, model, tolerance)
    opened = asked.check(members_only=members_only)
    count = len(opened.members)
    if not as_json:
        typer.echo(f"{pack}: {count} members, each as it was written (by SHA-256)")
    if members_only:
        if as_json:
            typer.echo(json.dumps({"pack": {"members": count}, "passed": True}, indent=2))
        return
    result = asked.run(
        opened,
        engine=engine,
        workers=workers,
        address=address,
        progress=True,
        note=lambda message: typer.echo(message, err=True),
    )
    typer.echo(json.dumps(result.to_dict(), indent=2) if as_json else str(result))
    if not result.repeated:
        typer.echo("verify: the audit must repeat within tolerance, got other figures.", err=True)
        raise typer.Exit(GATE)
    if not result.passed:
        names = ", ".join(result.left_out)
        typer.echo(f"verify: {names} must be compared, got figures that repeat alone.", err=True)
        raise typer.Exit(PAGES)
