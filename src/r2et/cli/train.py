"""r2et train"""

from __future__ import annotations

import json
import shlex
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from r2et.defaults import MAX_AUC_DROP, PICTURE_RECIPE, RADIUS, RECIPE
from r2et.wording import below_logistic

if TYPE_CHECKING:
    from r2et.reason.retraining import Retraining
    from r2et.reason.training import TrainedReasons
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
    find_weight: bool = typer.Option(
        True,
        help="Of a table, take a lighter weight where the recipe's own clearly costs more than "
        f"{MAX_AUC_DROP:g} of validation AUC.",
    ),
    moves: str = typer.Option(
        None, help="Of recipes of reasons: changes to train for, in own units, as age=2,hours=2."
    ),
    switches: int = typer.Option(None, help="How many categories may change with --moves."),
    frozen: str = typer.Option(None, help="Columns that stay as they are, as sex."),
    toward: str = typer.Option(
        None, help="The class whose reasons are told, as bad; by default the one predicted."
    ),
    seeds: int = typer.Option(
        1, min=1, help="Train so often, from --seed on, and say how far the reasons agree."
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
    from r2et.reason.retraining import Retraining, retrained
    from r2et.reason.training import of_reasons, trained_for, trained_reasons
    from r2et.train.run import (
        changed,
        column_kinds,
        column_names,
        ignored_columns,
        open_data,
        train,
        usual_drop,
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
            table = dataset.train.x.ndim == 2
            chosen = known or changed(RECIPE if table else PICTURE_RECIPE, change)
            chosen, region = trained_for(
                dataset,
                chosen,
                moves=moves,
                switches=switches,
                frozen=frozen,
                toward=toward,
                compared=seeds > 1,
            )
            if test_out is not None:
                write_part(dataset, test_out, source=data if target else None)
            given = any(text.startswith("weight=") for text in change)
            heavier = max_auc_drop is not None
            if max_auc_drop is None and find_weight and not given:
                max_auc_drop = usual_drop(dataset, chosen)
            if table:
                torch.set_num_threads(1)  # a tiny network: threads only get in each other's way
            settings: dict[str, Any] = {
                "k": k,
                "radius": radius,
                "epochs": epochs,
                "hidden": layers,
                "resume": resume,
                "progress": True,
                "baselines": baselines,
                "class_weight": class_weight,
                "max_auc_drop": max_auc_drop,
                "heavier": heavier,
                "region": region,
            }
            done: TrainingRun | Retraining
            kept = None
            if seeds > 1:
                done = retrained(dataset, chosen, out, seeds, seed=seed, toward=toward, **settings)
            else:
                done = train(dataset, chosen, out, seed=seed, **settings)
                if of_reasons(chosen):
                    kept = trained_reasons(out, dataset, region, k=k, toward=toward, progress=True)
    except KeyboardInterrupt:
        again = "the same command" if resume else "the same command without --no-resume"
        typer.echo(f"Stopped; {again} continues where this one was.", err=True)
        raise typer.Exit(130) from None
    if as_json:
        plain = done.to_dict()
        plain |= {} if kept is None else {"reasons": asdict(kept)}
        typer.echo(json.dumps(plain, indent=2))
    elif isinstance(done, Retraining):
        show_seeds(Console(), done)
    else:
        show(Console(), done, kept)


def show(screen: Console, done: TrainingRun, kept: TrainedReasons | None = None) -> None:
    """The result as a table, and what to do with it."""
    report = done.report
    table = Table(f"{done.recipe} on {done.data}", "")
    table.add_row("test AUC", _number(report.auc_clean))
    table.add_row("  of logistic regression", _number(report.auc_linear))
    table.add_row("  of boosting", _number(report.auc_boosting))
    if kept is not None:
        table.add_row(
            f"reasons of {kept.rows} test rows",
            f"{kept.proved:.0%} proved, {kept.unknown:.0%} unknown, {kept.broken:.0%} broken",
        )
        table.add_row(f"  different sets of {kept.k}", str(kept.sets))
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
    if kept is not None:
        screen.print(f"Reasons: for {kept.changes}.", markup=False)
    if done.search is not None:
        typer.echo(str(done.search))
    _warn(screen, done)
    # Not wrapped: these lines are there to be copied.
    typer.echo(f"Stored in {done.folder}. How still it holds on the test rows, on a page:")
    typer.echo(f"  r2et audit {shlex.quote(done.folder)} --html audit.html")
    typer.echo("Or in Python:")
    typer.echo(f"  from r2et.train import load_trained\n  t = load_trained({done.folder!r})")
    if done.table:
        typer.echo("  x, y = t.read('new_rows.csv')  # for t.model, t.names, t.k")


def show_seeds(screen: Console, done: Retraining) -> None:
    """A line for each seed, and how far their models agree on people's reasons."""
    first = done.runs[0].report
    table = Table(
        f"{done.runs[0].recipe} on {done.runs[0].data}",
        "test AUC",
        f"P@{first.k} under attack, radius {first.radius:g}",
        "epochs",
    )
    for seed, run in zip(done.seeds, done.runs, strict=True):
        report = run.report
        cells = (_number(report.auc_clean), _share(report.precision_strong), str(run.epochs))
        table.add_row(f"seed {seed}", *cells)
    screen.print(table)
    _warn(screen, done.runs[0])
    common = done.agreement
    toward = "the decision" if done.toward is None else done.toward
    pairs = Table(f"{common['rows']} test rows, at most {done.k} reasons for {toward}", "")
    pairs.add_row("of two models: reasons that both name", _share(common["shared"]))
    pairs.add_row("  same decision, other reasons", _share(common["changed_share"]))
    pairs.add_row("  another decision", _share(common["decision_changed_share"]))
    same = _share(common["same_share"])
    if common["same_share"] is not None:
        same += f"  [{common['same_share_low']:.1%}, {common['same_share_high']:.1%}]"
    pairs.add_row(f"of all {common['models']} models: the same reasons", same)
    pairs.add_row("  among rows that all decide alike", str(common["all_alike"]))
    screen.print(pairs)
    folder = shlex.quote(f"{done.folder}/seed-{done.seeds[0]}")
    typer.echo(f"Stored in {done.folder}, a folder for each seed. One of them on a page:")
    typer.echo(f"  r2et audit {folder} --html audit.html")


def _warn(screen: Console, done: TrainingRun) -> None:
    """What must not be overlooked."""
    loud = below_logistic(done.report.auc_clean, done.report.auc_linear)
    if loud:
        screen.print(loud, markup=False, style="bold")
    if done.stopped:
        screen.print(f"Stopped early: {done.stopped}.", markup=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as a line of its own, without the code it came from."""
    typer.echo(f"note: {message}", err=True)
