"""r2et diff"""

from __future__ import annotations

import json

import typer

GATE = 3  # exit code of a failed gate


def command(
    old: str = typer.Argument(help="The folder of the model in use, of `r2et train`."),
    new: str = typer.Argument(help="The folder of the model that is to take its place."),
    data: str = typer.Argument(
        None, help="A CSV or Parquet file; by default the test part of the new model's training."
    ),
    k: int = typer.Option(4, help="How many reasons at most."),
    toward: str = typer.Option(
        None, help="The class whose reasons are told, as refused; by default the one decided for."
    ),
    baseline: str = typer.Option(
        "mean", help="Whom rows are compared with: mean, accepted or border."
    ),
    exclude: str = typer.Option(None, help="Columns that must not be named, as sex,age."),
    rows: int = typer.Option(None, help="At most so many rows, from the first on."),
    id_column: str = typer.Option(None, "--id", help="The column that says who a row is."),
    cutoff: float = typer.Option(
        None, help="The probability of class 1 from which on it is decided for; by default 0.5."
    ),
    max_changed: float = typer.Option(
        None,
        min=0.0,
        max=1.0,
        help="Exit with 3 where a larger share of people gets other reasons for the same decision.",
    ),
    out: str = typer.Option(None, "--out", "-o", help="Write who is affected here, .csv or .json."),
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> None:
    """Who gets other reasons, though the decision is the same, when a model is replaced."""
    import torch

    from r2et.reason.command import DiffCommand, write

    torch.set_num_threads(1)
    asked = DiffCommand(
        old,
        new,
        data,
        k=k,
        toward=toward,
        baseline=baseline,
        exclude=exclude,
        rows=rows,
        id_column=id_column,
        cutoff=cutoff,
    )
    result = asked.run(out, progress=True)
    if out is not None:
        write(result, out)
    typer.echo(json.dumps(result.to_dict(), indent=2) if as_json else str(result))
    share = result.changed_share
    if max_changed is not None and (share is None or share > max_changed):
        got = "nobody is decided alike" if share is None else f"{share:.1%} do"
        typer.echo(
            f"diff: at most {max_changed:.1%} may get other reasons for the same decision, {got}.",
            err=True,
        )
        raise typer.Exit(GATE)
