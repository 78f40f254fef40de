"""r2et reasons"""

from __future__ import annotations

import json
import os
from pathlib import Path

import typer

SHOWN = 10  # people on a terminal
ROWS = typer.Option([], "--row", metavar="ID", help="Only this row, by number or --id; repeat.")


def command(
    model: str = typer.Argument(help="A folder that `r2et train` wrote of a table."),
    data: str = typer.Argument(
        None, help="A CSV or Parquet file; by default the test part of the model's training."
    ),
    k: int = typer.Option(4, help="How many reasons at most."),
    toward: str = typer.Option(
        None, help="The class whose reasons are told, as refused; by default the one decided for."
    ),
    only_refused: bool = typer.Option(
        False, "--only-refused", help="Leave out rows that are not decided --toward."
    ),
    moves: str = typer.Option(
        None, help="Prove them for changes of columns, in their own units, as age=2,hours=2."
    ),
    switches: int = typer.Option(None, help="How many categories may change with --moves."),
    frozen: str = typer.Option(None, help="Columns that stay as they are, as sex."),
    baseline: str = typer.Option(
        "mean", help="Whom rows are compared with: mean, accepted or border."
    ),
    codes: str = typer.Option(None, help="A CSV file with the columns column, code, sentence."),
    exclude: str = typer.Option(None, help="Columns that must not be named, as sex,age."),
    rows: int = typer.Option(None, help="At most so many rows, from the first on."),
    row: list[str] = ROWS,
    id_column: str = typer.Option(None, "--id", help="The column that says who a row is."),
    cutoff: float = typer.Option(
        None, help="The probability of class 1 from which on it is decided for; by default 0.5."
    ),
    out: str = typer.Option(None, "--out", "-o", help="Write them here: .csv, .json or .html."),
    html: str = typer.Option(None, help="Write a page that the people can read themselves."),
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> None:
    """The few reasons of each decision, one per column, in words, and which are proved."""
    import torch

    from r2et.errors import require
    from r2et.reason.command import ReasonsCommand, write

    torch.set_num_threads(1)
    page = html is None or Path(html).suffix == ".html"
    require(page, "reasons", "html", "a file that ends in .html", html)
    asked = ReasonsCommand(
        model,
        data,
        k=k,
        toward=toward,
        only_decided=only_refused,
        moves=moves,
        switches=switches,
        frozen=frozen,
        baseline=baseline,
        codes=codes,
        exclude=exclude,
        rows=rows,
        chosen=tuple(row),
        id_column=id_column,
        cutoff=cutoff,
    )
    result = asked.run([out, html], progress=True)
    for path in filter(None, (out, html)):
        write(result, path)
        typer.echo(f"Written: {Path(os.path.abspath(path)).as_uri()}", err=True)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        typer.echo(result.text(SHOWN))
