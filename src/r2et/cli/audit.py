"""r2et audit"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from r2et.defaults import BUDGET, RADIUS

if TYPE_CHECKING:
    from r2et.audit.model_audit import Audit
    from r2et.audit.request import Request

BAD, GATE = 2, 3  # exit codes of what went wrong, and of a failed gate
GATES = typer.Option(
    [],
    "--gate",
    metavar="'NAME>=VALUE'",
    help="Exit with 3 unless a figure of the summary keeps this bound; repeat at will.",
)
BY = typer.Option(
    [],
    metavar="COLUMN",
    help="AUC and calibration of the groups of this column, as sex; repeat at will.",
)


def command(
    model: str = typer.Argument(
        help="A folder written by `r2et train`, or package.module:factory."
    ),
    data: str = typer.Argument(
        None,
        help="A CSV, Parquet or .npz file, or a name of `r2et data list`; by default the test part"
        " of the model's training.",
    ),
    k: int = typer.Option(None, help="How many reasons; by default those of the training."),
    radius: float = typer.Option(
        None, help=f"How far inputs may move; by default as in training, else {RADIUS:g}."
    ),
    norm: str = typer.Option("l2", help="l2 or linf."),
    bounds: str = typer.Option(None, help="Least and greatest value of every feature, as 0,1."),
    frozen: str = typer.Option(None, help="Columns that stay as they are, as age,sex."),
    moves: str = typer.Option(
        None, help="How far columns may move, in their own units, as age=2,hours=2: no ball."
    ),
    switches: int = typer.Option(None, help="How many categories may change with --moves."),
    html: str = typer.Option(None, help="Write the page here."),
    json_file: str = typer.Option(None, "--json", help="Write everything as JSON here; - prints."),
    pack: str = typer.Option(
        None, help="Write all evidence here, a .zip file that `r2et verify` repeats."
    ),
    gate: list[str] = GATES,
    fail_under: float = typer.Option(None, help="The same as --gate 'precision_strong>=VALUE'."),
    id_column: str = typer.Option(None, "--id", help="The column that says who a row is."),
    by: list[str] = BY,
    weights: str = typer.Option(None, help="A safetensors file for package.module:factory."),
    target: str = typer.Option(None, help="The label's column, for package.module:factory."),
    all_rows: bool = typer.Option(
        False, "--all-rows", help="Audit rows that the model was trained on, too."
    ),
    cutoff: float = typer.Option(
        None, help="The probability of class 1 from which on it is decided for; by default 0.5."
    ),
    only: str = typer.Option(
        None, help="Leave out rows that are not decided for this class, as refused."
    ),
    of_reasons: bool = typer.Option(
        False, "--reasons", help="Audit what people are given: contributions, one per column."
    ),
    rows: int = typer.Option(None, help="Audit so many rows, drawn at random."),
    minutes: float = typer.Option(None, help="About how long it may take."),
    budget: str = typer.Option(BUDGET, help="Of each attack: fast, standard or thorough."),
    seed: int = typer.Option(0, help="Of everything random."),
    engine: str = typer.Option("processes", help="serial, processes or ray."),
    workers: int = typer.Option(None, help="How many processes; by default one per core."),
    address: str = typer.Option(None, help="Of a Ray cluster: auto or host:port."),
    name: str = typer.Option(None, help="What to call the model."),
) -> None:
    """How still a model's top-k explanations hold: proved, attacked, and beside what."""
    import torch

    from r2et.audit.gates import gates_of, goes_on
    from r2et.audit.packing import check_pack, pack_request
    from r2et.audit.request import Request

    torch.set_num_threads(1)
    asked = Request(
        model,
        data,
        k=k,
        radius=radius,
        norm=norm,
        weights=weights,
        target=target,
        name=name,
        id_column=id_column,
        by=tuple(by),
        command=shlex.join(["r2et", *sys.argv[1:]]),
        gates=gates_of(gate, fail_under),
        bounds=bounds,
        frozen=frozen,
        moves=moves,
        switches=switches,
        all_rows=all_rows,
        cutoff=cutoff,
        only=only,
        reasons=of_reasons,
    )
    if pack is not None:
        check_pack(pack, asked)
    notes: list[str] = []

    def note(message: str) -> None:
        notes.append(message)
        typer.echo(message, err=True)

    try:
        result, partial = asked.run(
            {"--html": html, "--json": json_file, "--pack": pack},
            rows=rows,
            minutes=minutes,
            budget=budget,
            seed=seed,
            engine=engine,
            workers=workers,
            address=address,
            progress=True,
            note=note,
        )
    except KeyboardInterrupt:
        kept = "" if notes else "; the same command continues where this one was"
        typer.echo(f"Stopped{kept}.", err=True)
        raise typer.Exit(130) from None

    def write_pack(path: str) -> None:
        settings = {"rows": rows, "budget": budget, "seed": seed}
        reason = pack_request(path, result, asked, settings)
        paper = "" if reason is None else f" (without a PDF: {reason})"
        typer.echo(f"Pack: {Path(os.path.abspath(path)).as_uri()}{paper}", err=True)

    outputs = ((json_file, result.to_json), (html, result.to_html), (pack, write_pack))
    try:
        typer.echo(json.dumps(result.to_dict()) if json_file == "-" else str(result))
        reasons = _shut(result, asked, quiet=json_file == "-")
        lost = _written(outputs)
    except KeyboardInterrupt:  # such as while a browser prints
        there = partial is not None and partial.exists()
        kept = f"; what was measured is kept in {partial}, the same command continues there"
        typer.echo(f"Stopped{kept if there else ''}.", err=True)
        raise typer.Exit(130) from None
    if html is not None and not lost:
        typer.echo(f"Page: {Path(os.path.abspath(html)).as_uri()}", err=True)
    if lost and partial is not None:
        typer.echo("What was measured is kept; the same command continues there.", err=True)
    elif partial is not None and goes_on(result, partial):
        typer.echo("What was measured is kept; with more --minutes it goes on there.", err=True)
    elif partial is not None:
        partial.unlink(missing_ok=True)
    for reason in reasons:
        typer.echo(reason, err=True)
    if lost or reasons:
        raise typer.Exit(BAD if lost else GATE)


def _shut(result: Audit, asked: Request, *, quiet: bool) -> list[str]:
    """Why gates are shut, in sentences; what became of all of them is shown."""
    if not asked.gates:
        return []
    report = result.check(asked.gates)
    if not quiet:
        typer.echo(str(report))
    return [verdict.reason for verdict in report if verdict.reason is not None]


def _written(outputs: Iterable[tuple[str | None, Callable[[str], None]]]) -> bool:
    """Write each output that was asked for, and say whether some could not be written."""
    from r2et.errors import R2ETError

    lost = False
    for path, write in outputs:
        if path in (None, "-"):
            continue
        try:
            write(str(path))
        except R2ETError as error:  # the other one may still be written
            typer.echo(str(error), err=True)
            lost = True
    return lost
