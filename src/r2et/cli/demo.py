"""r2et demo"""

from __future__ import annotations

import json
import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from r2et.wording import floored_percent, lowered_fixed, proved_radius

if TYPE_CHECKING:
    from r2et.audit import Comparison
    from r2et.demo import Change, Demo, ToldPerson


def command(
    rows: int = typer.Option(10, help="Test rows to explain."),
    seed: int = typer.Option(
        0, min=0, max=2**32 - 1, help="Seed of the network's weights and batches."
    ),
    audited: int = typer.Option(200, help="Test rows on which six models are compared; 0: none."),
    out: str = typer.Option("demo", help="Folder for the page about them."),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """See one decision and its reasons, how easily they change, and six ways of training."""
    screen = Console(stderr=as_json)
    screen.print("Training a small network on census data, and asking it for its reasons:")
    with screen.status("a few seconds"):
        from dataclasses import asdict

        import torch

        from r2et.demo import compared, run, told_person

        torch.set_num_threads(1)  # a tiny network: threads only get in each other's way
        result = run(rows, seed)
        person = told_person(seed)
    plain = {**result.to_dict(), "person": asdict(person)}
    if not as_json:
        show_person(screen, person)
        show(screen, result)
    if audited:
        screen.print("\nNow six ways of training, each audited; a minute or two.")
        models = compared(audited, seed, progress=True)
        plain["models"] = models.summary()
        page = Path(out) / "report.html"
        models.to_html(page)
        if not as_json:
            show_models(screen, models)
        screen.print(f"\nThe page about them: {page.resolve().as_uri()}", soft_wrap=True)
        if not as_json and screen.is_terminal and os.environ.get("DISPLAY"):
            webbrowser.open(page.resolve().as_uri())
    if as_json:
        typer.echo(json.dumps(plain, indent=2))


def show_person(screen: Console, shown: ToldPerson) -> None:
    """One decision: its reasons in words, which are proved, and what another model says."""
    person = shown.person
    screen.print(
        f"\nRow {person.row} is taken to earn [bold]{person.decision}[/] "
        f"({person.probability:.0%}). What speaks for it, compared with the average person:\n"
    )
    table = Table("", "reason", "others", f"for all {shown.changes}")
    for reason in person.reasons:
        state = "proved to stay" if reason.proved else f"gone with {reason.broken_by}"
        if not reason.proved and reason.broken_by is None:
            state = "not proved"
        table.add_row(str(reason.rank), reason.sentence, reason.reference, state)
    screen.print(table)
    if person.broken_by:
        gained = ", ".join(person.replaced_by) or "nothing"
        screen.print(f"  With {person.broken_by}, and the same decision, in their place: {gained}.")
    shared = [name for name in shown.other_seed if name in person.columns]
    screen.print(
        f"  Trained again with another seed, the network names {', '.join(shown.other_seed)}: "
        f"{len(shared)} of {len(person.columns)} are the same.\n"
    )


def show(screen: Console, result: Demo) -> None:
    """The result as text and tables."""
    screen.print(
        f"\nIt learned who earns over 50K with test AUC [bold]{result.auc:.3f}[/]. "
        f"Its {result.k} strongest reasons, by gradient, for {len(result.rows)} people:\n"
    )
    table = Table("row", "over 50K", f"top {result.k} reasons, strongest first", "thickness")
    for row in result.rows:
        thick = f"{row.thickness:.2f}\n{row.thickness_probability:.1%}"
        table.add_row(str(row.row), f"{row.probability:.0%}", ", ".join(row.reasons), thick)
    screen.print(table)
    screen.print(
        "Thickness, within distance 0.3: the mean gap between a reason and another feature, and "
        "the share of such pairs that stay in order. Larger is stabler.\n"
    )
    screen.print(
        f"Now move each of {result.tested} people by at most 2 years of age and 2 hours of work a "
        f"week. For [bold]{result.changed_share:.0%}[/] of them the top {result.k} changes "
        f"although the prediction does not. The worst:\n"
    )
    show_change(screen, result.worst)


def show_models(screen: Console, models: Comparison) -> None:
    """One line per model: never stability alone."""
    from r2et.demo import RADIUS

    names = ("recipe", "AUC", "proved", "attacked", "rows proved", "median radius", "reasons")
    table = Table(*names, title=f"P@8 and its companions, radius {RADIUS:g}")
    for one in models.audits:
        summary, radius = one.summary(), one.summary()["radius_certified_median"]
        table.add_row(
            one.name.replace("-", "-\n") if len(one.name) > 12 else one.name,
            f"{summary['auc_clean']:.3f}",
            floored_percent(summary["certified_precision"]),
            f"{summary['precision_strong']:.1%}",
            floored_percent(summary["certified_share"]),
            proved_radius(lowered_fixed(radius, 3), radius, one.result["settings"].get("limit")),
            f"{summary['distinct_top_k']} set{'s' * (summary['distinct_top_k'] > 1)}",
        )
    screen.print(table)
    screen.print(
        f"An attacker within {RADIUS:g} leaves at least the proved and at most the attacked share "
        "of the 8 reasons. Radius: what half of the rows can move, whoever pushes. Sets: how many "
        "different explanations the rows have; one for everybody is stable, and says little."
    )


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
