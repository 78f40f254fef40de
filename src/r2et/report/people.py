"""A page about the reasons of one or several people, which they can read themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from r2et.errors import require
from r2et.files import write_result
from r2et.wording import lowered, significant

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
SURE = ((0.95, "An almost certain"), (0.8, "A clear"), (0.65, "A rather clear"), (0.0, "A close"))


def people_page(
    reasons: Mapping[str, Any], path: str | os.PathLike[str], *, title: str | None = None
) -> None:
    """Write the page about reasons (as `Reasons.to_dict()` gives them) to a file."""
    write_result("to_html", path, people_html(reasons, title=title))


def people_html(reasons: Mapping[str, Any], *, title: str | None = None) -> str:
    """The page as a text: no script, nothing from a network."""
    has = isinstance(reasons, Mapping) and isinstance(reasons.get("people"), Sequence)
    require(has, "to_html", "reasons", "what Reasons.to_dict() gives", type(reasons).__name__)
    people = [_person(person) for person in reasons["people"]]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("r2et.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    one = people[0] if len(people) == 1 else None
    heading = f"Reasons for the decision {one['decision']}" if one else "Reasons for decisions"
    return environment.get_template("people.html").render(
        title=title or heading,
        people=people,
        one=one,
        policy=POLICY,
        style=Markup(_file("style.css") + _file("people.css")),
        **{
            name: reasons[name]
            for name in ("k", "baseline", "changes", "excluded", "explainer", "notes", "rule")
        },
    )


def _person(person: Mapping[str, Any]) -> dict[str, Any]:
    """A person with what a template cannot work out."""
    most = max((abs(r["contribution"]) for r in person["reasons"]), default=1.0) or 1.0
    views = [
        {
            **reason,
            "width": round(100 * abs(reason["contribution"]) / most),
            "strength": significant(reason["contribution"], 2),
            "times": _times(reason["radius"]),
        }
        for reason in person["reasons"]
    ]
    sure = next(words for least, words in SURE if person["probability"] >= least)
    return {**person, "reasons": views, "sure": sure, "percent": _whole(person["probability"])}


def _times(radius: float | None) -> str:
    """How many times the changes asked about are proved, where it is more than once."""
    return "" if radius is None or radius <= 1 else significant(lowered(radius, 2), 2)


def _whole(share: float) -> str:
    """A probability in percent, never 100 where it is not."""
    shown = round(100 * share)
    return "over 99" if shown == 100 and share < 1 else str(shown)


def _file(name: str) -> str:
    return (resources.files("r2et.report") / "templates" / name).read_text(encoding="utf-8")
