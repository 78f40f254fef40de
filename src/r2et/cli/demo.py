"""r2et demo"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from r2et.demo import Change, Demo


def command(
    rows: int = typer.Option(10, help="Test rows to explain."),
    seed: int = typer.Option(
        0, min=0, max=2**32 - 1, help="Seed of the network's weights and batches."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Train a small network on census data and see how easily its reasons change."""
    screen = Console(stderr=as_json)
    screen.print("Training a small network on census data, and explaining it:")
    with screen.status("a few seconds"):
        import torch

        from r2et.demo import run

        torch.set_num_threads(1)  # a tiny network: threads only get in each other's way
        found = run(rows, seed)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        show(screen, found)


def show(screen: Console, found: Demo) -> None:
    """The result as text and tables."""
    screen.print(
        f"\nIt learned who earns over 50K with test AUC [bold]{found.auc:.3f}[/]. "
        f"Its {found.k} strongest reasons, by gradient, for {len(found.rows)} people:\n"
    )
    table = Table("row", "over 50K", f"top {found.k} reasons, strongest first", "thickness")
    for row in found.rows:
        thick = f"{row.thickness:.2f}\n{row.thickness_probability:.1%}"
        table.add_row(str(row.row), f"{row.probability:.0%}", ", ".join(row.reasons), thick)
    screen.print(table)
    screen.print(
        "Thickness, within distance 0.3: the mean gap between a reason and another feature, and "
        "the share of such pairs that stay in order. Larger is stabler.\n"
    )
    screen.print(
        f"Now move each of {found.tested} people by at most 2 years of age and 2 hours of work a "
        f"week. For [bold]{found.changed_share:.0%}[/] of them the top {found.k} changes "
        f"although the prediction does not. The worst:\n"
    )
    show_change(screen, found.worst)


def _plain(value: object) -> str:
    """65.0 as 65: the columns that move count whole years and hours."""
    return f"{round(value)}" if isinstance(value, float) else str(value)


def show_change(screen: Console, worst: Change) -> None:
    """One row before and after, reason by reason."""
    for name, value in worst.before.items():
        if worst.after[name] != value:
            screen.print(f"  {name}: {_plain(value)} -> [bold]{_plain(worst.after[name])}[/]")
    low, high = worst.probability
    screen.print(f"  over 50K: {low:.1%} -> {high:.1%}, the same prediction\n")
    table = Table("", f"row {worst.row}, before", "after")
    before, after = worst.reasons
    for place, (old, new) in enumerate(zip(before, after, strict=True), 1):
        table.add_row(
            str(place),
            old if old in after else f"[strike]{old}[/] (gone)",
            new if new in before else f"[bold]{new}[/] (new)",
        )
    screen.print(table)
    kept = round(worst.precision * len(before))
    screen.print(f"  P@{len(before)} = {worst.precision:.1%}: {kept} of {len(before)} are left.")
