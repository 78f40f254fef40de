"""r2et certify"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from r2et.defaults import BUDGET
from r2et.wording import floored_percent, lowered_fixed, proved_radius

if TYPE_CHECKING:
    from r2et.audit.bracket import Bracket

WIDTH = 30  # characters of a bar


def command(
    model: str = typer.Argument(help="A folder written by `r2et train`."),
    data: str = typer.Argument(
        None,
        help="A CSV or Parquet file, or a name of `r2et data list`; by default the test part of"
        " the model's training.",
    ),
    k: int = typer.Option(None, help="How many reasons; by default those of the training."),
    norm: str = typer.Option("l2", help="l2 or linf."),
    rows: int = typer.Option(200, help="How many rows to look at, from the first on."),
    limit: float = typer.Option(3.0, help="The largest radius that is of interest."),
    all_rows: bool = typer.Option(
        False, "--all-rows", help="Look at rows that the model was trained on, too."
    ),
    budget: str = typer.Option(BUDGET, help="Of the attack: fast, standard or thorough."),
    figure: str = typer.Option(None, help="Also draw the curve, as a .png or .svg file."),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Prove how far rows can move before their top k can change, beside an attack."""
    import torch

    from r2et.audit.bracket import bracket, check_drawing, draw, rows_for
    from r2et.train import load_trained

    torch.set_num_threads(1)  # a small network: threads only get in each other's way
    if figure is not None:
        check_drawing(figure)
    trained = load_trained(model)
    chosen = rows_for(trained, data, rows, all_rows=all_rows)
    result = bracket(
        trained.model,
        chosen.x,
        k=trained.k if k is None else k,
        norm=norm,  # type: ignore[arg-type]
        limit=limit,
        budget=budget,  # type: ignore[arg-type]
        progress=True,
    )
    result = replace(result, training_rows=chosen.training_rows)
    if figure is not None:
        draw(result, figure)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        show(Console(), result)


def show(screen: Console, result: Bracket) -> None:
    """The radii, and the share of rows that is proved, unknown or broken at each."""
    from r2et.results.training_rows import counted_sentence  # brings torch, which takes time

    plain = result.to_dict()
    training = counted_sentence(result.training_rows, plain["rows"])
    if training:
        screen.print(training[0].upper() + training[1:], markup=False)
    table = Table("radius", *plain["certified_quantiles"], title=f"{plain['rows']} rows, quantiles")
    proved, broken = (plain[f"{name}_quantiles"].values() for name in ("certified", "attacked"))
    limit = plain["limit"]
    bounds = (proved_radius(lowered_fixed(min(v, limit), 4), v, limit) for v in proved)
    table.add_row("proved up to", *bounds)
    table.add_row("broken at", *("none found" if v is None else f"{v:.4f}" for v in broken))
    screen.print(table)
    curve = Table(
        "radius", "proved", "unknown", "broken", f"# proved  . unknown  x broken, top {result.k}"
    )
    for entry in plain["curve"]:
        shares = [entry[name] for name in ("proved", "unknown", "broken")]
        held, lost = int(WIDTH * shares[0]), round(WIDTH * shares[2])
        bar = "#" * held + "." * (WIDTH - held - lost) + "x" * lost
        texts = (floored_percent(shares[0]), *(f"{s:.1%}" for s in shares[1:]))
        curve.add_row(f"{entry['radius']:g}", *texts, bar)
    screen.print(curve)
    screen.print(
        f"Different top-{result.k} sets: {result.distinct_top_k}; the commonest has "
        f"{result.largest_top_k_share:.0%} of the rows. The proof assumes {result.assumptions}."
    )
