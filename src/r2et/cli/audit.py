"""r2et audit"""

from __future__ import annotations

import json
import os
from pathlib import Path

import typer

GATE = 3  # exit code of a failed gate


def command(
    model: str = typer.Argument(
        help="A folder written by `r2et train`, or package.module:factory."
    ),
    data: str = typer.Argument(help="A CSV, Parquet or .npz file, or a name of `r2et data list`."),
    k: int = typer.Option(None, help="How many reasons; by default those of the training."),
    radius: float = typer.Option(None, help="How far inputs may move; by default as in training."),
    norm: str = typer.Option("l2", help="l2 or linf."),
    html: str = typer.Option(None, help="Write the page here."),
    json_file: str = typer.Option(None, "--json", help="Write everything as JSON here; - prints."),
    fail_under: float = typer.Option(None, help="Exit with 3 where the gate's figure is below."),
    gate: str = typer.Option("precision_strong", help="The figure of --fail-under."),
    weights: str = typer.Option(None, help="A safetensors file for package.module:factory."),
    target: str = typer.Option(None, help="The label's column, for package.module:factory."),
    rows: int = typer.Option(None, help="Audit so many rows, drawn at random."),
    minutes: float = typer.Option(None, help="About how long it may take."),
    budget: str = typer.Option("standard", help="Of each attack: fast, standard or thorough."),
    seed: int = typer.Option(0, help="Of everything random."),
    engine: str = typer.Option("processes", help="here, processes or ray."),
    workers: int = typer.Option(None, help="How many processes; by default one per core."),
    address: str = typer.Option(None, help="Of a Ray cluster: auto or host:port."),
    name: str = typer.Option(None, help="What to call the model."),
) -> None:
    """How still a model's top-k explanations hold: proved, attacked, and beside what."""
    import torch

    from r2et.audit.task import Request, failed

    torch.set_num_threads(1)
    asked = Request(model, data, k, radius, norm, weights, target, name, gate, fail_under)
    try:
        found, partial = asked.run(
            html or json_file,
            rows=rows,
            minutes=minutes,
            budget=budget,
            seed=seed,
            engine=engine,
            workers=workers,
            address=address,
            progress=True,
        )
    except KeyboardInterrupt:
        typer.echo("Stopped; the same command continues where this one was.", err=True)
        raise typer.Exit(130) from None
    if json_file == "-":
        typer.echo(json.dumps(found.to_dict()))
    else:
        typer.echo(str(found))
    if json_file not in (None, "-"):
        found.to_json(json_file)
    if html is not None:
        found.to_html(html)
        typer.echo(f"Page: {Path(os.path.abspath(html)).as_uri()}", err=True)
    partial.unlink(missing_ok=True)
    reason = failed(found, gate, fail_under)
    if reason:
        typer.echo(reason, err=True)
        raise typer.Exit(GATE)
