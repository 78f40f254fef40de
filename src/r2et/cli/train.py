"""r2et train"""

from __future__ import annotations

import json
import shlex
import warnings
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from r2et.defaults import PICTURE_RECIPE, RADIUS, RECIPE
from r2et.wording import below_logistic

if TYPE_CHECKING:
    from r2et.train.run import TrainingRun

CHANGES = typer.Option(
    [], "--set", metavar="NAME=VALUE", help="Change the recipe, as weight=0.1; repeat at will."
)


def command(
    data: str = typer.Argument(help="A CSV or Parquet file, or a name of `r2et data list`."),
    out: str = typer.Option(..., "--out", "-o", help="The folder for the model."),
    target: str = typer.Option(None, help="The column to predict, of a file."),
    drop: str = typer.Option(None, help="Columns of a file to leave out, as sex,ID."),
    positive: str = typer.Option(None, help="Which of two labels is class 1, as bad."),
    kinds: str = typer.Option(None, help="What columns are, as zip=category,age=number."),
    weights: str = typer.Option(None, help="A column of what each row counts for."),
    class_weight: str = typer.Option(None, help="balanced: every class counts for as much."),
    test_out: str = typer.Option(
        None, help="Write the test rows here, a CSV or Parquet file in the table's own units."
    ),
    k: int = typer.Option(None, help="How many reasons hold still; by default the data's."),
    recipe: str = typer.Option(
        None, help=f"How to train: by default {RECIPE} for tables, {PICTURE_RECIPE} for others."
    ),
    radius: float = typer.Option(RADIUS, help="How far a row may move, in features from 0 to 1."),
    epochs: int = typer.Option(None, help="Passes over the data; by default the recipe's."),
    seed: int = typer.Option(0, min=0, max=2**32 - 1, help="Seed of weights and batches."),
    hidden: str = typer.Option(None, help="Widths of hidden layers, as 32,32."),
    change: list[str] = CHANGES,
    max_auc_drop: float = typer.Option(
        None, help="Find the weight: the stablest that costs at most so much validation AUC."
    ),
    resume: bool = typer.Option(True, help="Go on with what the folder holds, or start anew."),
    baselines: bool = typer.Option(
        True, help="Of a table, fit logistic regression and boosting on the same rows too."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Train a network whose reasons hold still, and say how still they are."""
    import torch

    from r2et.data import write_part
    from r2et.files import check_writable
    from r2et.train.run import (
        changed,
        column_kinds,
        column_names,
        ignored_columns,
        open_data,
        train,
        widths,
    )

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _note
            layers = widths(hidden)
            known = None if recipe is None else changed(recipe, change)
            if test_out is not None:
                check_writable("train", "--test-out", test_out)
            dataset = open_data(
                data,
                target,
                k,
                drop=column_names(drop),
                positive=positive,
                kinds=column_kinds(kinds),
                weights=weights,
            )
            ignored = ignored_columns(dataset)
            if ignored:
                typer.echo(f"note: not used: {ignored}.", err=True)
            if test_out is not None:
                write_part(dataset, test_out, source=data if target else None)
            table = dataset.train.x.ndim == 2
            if table:
                torch.set_num_threads(1)  # a tiny network: threads only get in each other's way
            chosen = known or changed(RECIPE if table else PICTURE_RECIPE, change)
            done = train(
                dataset,
                chosen,
                out,
                k=k,
                radius=radius,
                epochs=epochs,
                seed=seed,
                hidden=layers,
                resume=resume,
                progress=True,
                baselines=baselines,
                class_weight=class_weight,
                max_auc_drop=max_auc_drop,
            )
    except KeyboardInterrupt:
        again = "the same command" if resume else "the same command without --no-resume"
        typer.echo(f"Stopped; {again} continues where this one was.", err=True)
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(done.to_dict(), indent=2))
    else:
        show(Console(), done)


def show(screen: Console, done: TrainingRun) -> None:
    """The result as a table, and what to do with it."""
    report = done.report
    table = Table(f"{done.recipe} on {done.data}", "")
    table.add_row("test AUC", _number(report.auc_clean))
    table.add_row("  of logistic regression", _number(report.auc_linear))
    table.add_row("  of boosting", _number(report.auc_boosting))
    table.add_row(
        f"P@{report.k} under attack, radius {report.radius:g}", _share(report.precision_strong)
    )
    table.add_row("thickness: share of pairs in order", _share(report.thickness_probability))
    sets = (
        f"{report.distinct_top_k}; the commonest has {report.largest_top_k_share:.0%} of the rows"
    )
    table.add_row(f"different top-{report.k} sets, {report.rows} rows", sets)
    table.add_row("epochs; seconds", f"{done.epochs}; {done.seconds:.1f}")
    screen.print(table)
    if done.search is not None:
        typer.echo(str(done.search))
    loud = below_logistic(report.auc_clean, report.auc_linear)
    if loud:
        screen.print(loud, markup=False, style="bold")
    if done.stopped:
        screen.print(f"Stopped early: {done.stopped}.", markup=False)
    # Not wrapped: these lines are there to be copied.
    typer.echo(f"Stored in {done.folder}. How still it holds on the test rows, on a page:")
    typer.echo(f"  r2et audit {shlex.quote(done.folder)} --html audit.html")
    typer.echo("Or in Python:")
    typer.echo(f"  from r2et.train import load_trained\n  t = load_trained({done.folder!r})")
    if done.table:
        typer.echo("  x, y = t.read('new_rows.csv')  # for t.model, t.names, t.k")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float) -> str:
    return f"{value:.1%}"


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as a line of its own, without the code it came from."""
    typer.echo(f"note: {message}", err=True)
