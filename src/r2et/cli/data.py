"""r2et data"""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer(
    name="data",
    help="Named data sets and their files.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
AS_JSON = typer.Option(False, "--json", help="Print the result as JSON.")
NAME = typer.Argument(help="A data set of `r2et data list`.")


@app.command("list")
def list_all(as_json: bool = AS_JSON) -> None:
    """The data sets that can be loaded by name, and whether their files are here."""
    from r2et.data.inventory import about_all

    datasets = about_all()
    if as_json:
        return typer.echo(json.dumps(datasets, indent=2))
    table = Table("name", "state", "what")
    for entry in datasets:
        table.add_row(entry["name"], entry["state"], entry["summary"])
    Console().print(table)


@app.command()
def get(name: str = NAME, as_json: bool = AS_JSON) -> None:
    """Bring the files of a data set to this machine, each checked by its SHA-256."""
    from r2et.data.inventory import get as fetch

    places = fetch(name, "data get")
    typer.echo(json.dumps({"name": name, "files": places}) if as_json else "\n".join(places))


@app.command()
def info(name: str = NAME, as_json: bool = AS_JSON) -> None:
    """What a data set is, which files it needs, and where they are or come from."""
    from r2et.data.inventory import about

    dataset = about(name, "data info")
    if as_json:
        return typer.echo(json.dumps(dataset, indent=2))
    source = dataset["source"]
    typer.echo(f"{dataset['name']}: {dataset['summary']}\n{dataset['state']}")
    typer.echo(f"x {dataset['shape']}, k = {dataset['k']}")
    for key in ("where", "credit", "licence", "changes"):
        if source[key]:
            typer.echo(f"{key:8} {source[key]}")
    for file in dataset["files"]:
        typer.echo("\n".join(_lines(file)))


@app.command()
def path(as_json: bool = AS_JSON) -> None:
    """Your own folder of data (R2ET_DATA) and the cache of fetched files (R2ET_CACHE)."""
    from r2et.data.sources import cache_dir, data_dir

    folder = data_dir()
    if as_json:
        folders = {"data": folder and str(folder), "cache": str(cache_dir())}
        return typer.echo(json.dumps(folders, indent=2))
    typer.echo(f"data   {folder or 'R2ET_DATA is not set'}\ncache  {cache_dir()}")


def _lines(file: dict[str, Any]) -> list[str]:
    lines = [f"  {file['path']}"]
    if file["where"]:
        lines.append(f"    here: {file['where']}")
    if "supply" in file:
        lines.append(f"    to supply, since {file['reason']}: see {file['supply']}")
        if file["measured_on_sha256"]:
            lines.append(f"    our figures are of a copy with SHA-256 {file['measured_on_sha256']}")
        return lines
    lines.append(f"    SHA-256 {file['sha256']}, {file['size']} bytes")
    return [*lines, *(f"    from {place}" for place in file["places"])]
