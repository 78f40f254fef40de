"""r2et bench"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Column
from rich.table import Table as Screen
from rich.text import Text

if TYPE_CHECKING:
    from r2et.bench.result_table import ResultCell, ResultTable
    from r2et.bench.run import BenchOutcome


def command(
    name: str = typer.Argument(
        help="table1 to table9, figure2 to figure9, lengths, leaderboard, or all that fits."
    ),
    datasets: str = typer.Option(None, help="Names, as adult,bank; by default the tables."),
    recipes: str = typer.Option(None, help="Names, as vanilla,r2et, or module:name of your own."),
    seeds: int = typer.Option(3, help="Trainings of each."),
    out: str = typer.Option("bench-out", "--out", "-o", help="Folder of records and tables."),
    engine: str = typer.Option("processes", help="serial, processes or ray."),
    workers: int = typer.Option(None, help="By default one per core."),
    address: str = typer.Option(None, help="Of a Ray cluster: auto or host:port."),
    budget: str = typer.Option(None, help="Begin nothing after 30m, 2h30m, ...; needed for all."),
    epochs: int = typer.Option(None, help="Fewer, for a quick look."),
    rows: int = typer.Option(None, help="Test rows, for a quick look."),
    steps: int = typer.Option(None, help="Of the papers' attacks, for a quick look."),
    regime: str = typer.Option(
        None, help="long, or papers: their length of training, thresholds, weights."
    ),
    weights: str = typer.Option(None, help="Penalty weights to try, as 0.01,0.1."),
    as_json: bool = typer.Option(False, "--json", help="Print the claims as JSON."),
) -> None:
    """Make the papers' tables and figures; a second run does only what is missing."""
    from r2et.bench.command import parse_request, run
    from r2et.progress import bar

    request = parse_request(
        name, datasets, recipes, seeds, epochs, rows, steps, weights, budget, regime
    )
    heard: list[str] = []

    def say(text: str) -> None:
        heard.append(text)
        typer.echo(text, err=True)

    try:
        with bar(f"bench {name}") as advance:

            def watch(title: str, done: int, left: int) -> None:
                advance(1, f"{done} done, {left} to go: {title}")

            where: dict[str, Any] = {"kind": engine, "workers": workers, "address": address}
            outcome = run(request, out, **where, watch=watch, say=say)
    except KeyboardInterrupt:
        typer.echo("Stopped; the same command does what is missing.", err=True)
        raise typer.Exit(130) from None
    for note in outcome.notes:
        if note not in heard:
            typer.echo(note, err=True)
    if as_json:
        typer.echo(json.dumps(outcome.to_dict(), indent=1))
    else:
        show(Console(), outcome)


def show(screen: Console, outcome: BenchOutcome) -> None:
    """The tables on the terminal, and where the files are."""
    from r2et.bench.table_formats import legend, missing

    for table in outcome.tables:
        screen.print(_screen(table))
        for note in [*table.notes, *missing(table)]:
            screen.print(note, markup=False, highlight=False, style="dim")
    for line in legend(outcome.tables):
        screen.print(line, markup=False, highlight=False, style="dim")
    for file in outcome.files:
        typer.echo(str(file))


def _screen(table: ResultTable) -> Screen:
    from r2et.bench.table_formats import chosen_settings

    name = Column(Text(table.data), no_wrap=True, min_width=10)
    shown = Screen(name, "chosen", *table.columns, title=Text(table.title))
    for row in table.rows:
        label, chosen = row.recipe + ("°" if row.below else ""), chosen_settings(row)
        shown.add_row(Text(label), Text(chosen), *(_cell(number) for number in row.numbers))
    return shown


def _cell(number: ResultCell) -> Text:
    from r2et.bench.table_formats import marked

    text = Text("-" if number.why else number.text)
    if number.mark:
        text.stylize("bold" if number.mark == "best" else "underline")
    text.append(marked(number))
    if number.reported:
        text.append(f" {number.reported}", style="dim")
    return text
