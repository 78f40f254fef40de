"""r2et leaderboard"""

from __future__ import annotations

import json

import typer
from rich.console import Console

app = typer.Typer(
    name="leaderboard",
    help="Networks of anybody's under one attack and one proof.",
    no_args_is_help=True,
)
FOLDER = typer.Option("claims", "--out", "-o", help="Folder of claims, one JSON file each.")


@app.command()
def add(
    model: str = typer.Argument(help="A folder of `r2et train`, or package.module:factory."),
    name: str = typer.Option(help="Of its row."),
    weights: str = typer.Option(None, help="A safetensors file, for a factory."),
    data: str = typer.Option("adult", help="A table of the benchmark."),
    reported: str = typer.Option(
        None, help="What is said of it, as proved=97,strongattack=99,cauc=0.88,sets=12."
    ),
    by: str = typer.Option("", help="Who made it."),
    source: str = typer.Option("", help="Where its weights are to be had."),
    out: str = FOLDER,
    replace: bool = typer.Option(False, "--replace", help="Take the place of its earlier claim."),
    as_json: bool = typer.Option(False, "--json", help="Print the claim as JSON."),
) -> None:
    """Evaluate a network by the fixed rules and write its claim: reported and measured."""
    import torch

    from r2et.audit.loading import open_model
    from r2et.bench import evaluation

    torch.set_num_threads(1)  # a small network: threads only get in each other's way
    path = evaluation.claim_path(out, name, data)
    numbers = evaluation.check_reported(evaluation.parse_reported(reported))
    evaluation.check_about(by, source)
    if not replace:
        evaluation.check_free(path)
    evaluation.check_folder(out)
    opened = open_model(model, weights)
    claim = evaluation.evaluate(opened.model, name, data, reported=numbers, by=by, source=source)
    evaluation.add(claim, out, replace=replace)
    if as_json:
        typer.echo(json.dumps(claim.to_dict(), indent=1))
        return
    for line in evaluation.claim_lines(claim):
        typer.echo(line)
    typer.echo(str(path))


@app.command()
def show(out: str = FOLDER) -> None:
    """The table of the claims in a folder, best first."""
    from r2et.bench.evaluation import leaderboards
    from r2et.bench.run import BenchOutcome
    from r2et.cli.bench import show as show_tables

    show_tables(Console(), BenchOutcome(leaderboards(out), [], []))
