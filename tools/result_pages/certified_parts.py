"""Parts of pages about certified training, made of perf/records/certified.json."""

from __future__ import annotations

import re
from typing import Any

from result_pages.perf_parts import made_with, record, table


def percent(share: float) -> str:
    """One digit, and never 100 where it is not."""
    shown = f"{100 * share:.1f}"
    return "99.9 %" if shown == "100.0" and share < 1 else f"{shown} %"


def widths(entry: dict[str, Any]) -> str:
    """28-32-32-2 without its ends."""
    return "-".join(map(str, entry["hidden"]))


def certified() -> str:
    """What training against the proof reaches."""
    stored = record("certified")
    rows = []
    for entry in stored["results"]:
        proved, plain = entry["certified"], entry["vanilla"]
        settings = [
            re.search(rf" {name}=([\d.]+)", entry["recipe"]) for name in ("weight", "margin")
        ]
        rows.append(
            [
                entry["data"],
                widths(entry),
                f"{entry['radius']:g}",
                ", ".join(f"{float(match[1]):g}" for match in settings if match),
                percent(proved["certified_share"]),
                percent(plain["certified_share"]),
                f"{proved['auc']:.3f}",
                f"{plain['auc']:.3f}",
                f"{entry['linear_auc']:.3f}",
                str(proved["distinct_top_k"]),
                str(plain["distinct_top_k"]),
            ]
        )
    head = ["data", "hidden", "radius", "weight, margin", "proved", "vanilla"]
    head += ["AUC", "vanilla", "linear", "sets", "vanilla"]
    return f"{table(head, rows)}\n\n{made_with(stored)}"


def certified_ceilings() -> str:
    """How many different sets proved rows can have at all."""
    rows = []
    for entry in record("certified")["individual"]:
        plain = entry["ways"][0]["test"]
        sets = [str(plain["distinct_top_k"]), f"{plain['effective_top_k']:.1f}"]
        for limit in entry["ceilings"]:
            some = limit["test"], limit.get("all", limit["test"])
            cells = [str(one["sets"]) for one in some]
            cells += [f"{some[1]['effective']:.1f}", percent(some[1]["largest"])]
            rows.append([entry["data"], f"{limit['radius']:g}", *cells, *sets])
    head = ["data", "radius", "sets, if test rows are proved", "if all rows are", "effective"]
    return table([*head, "largest", "Vanilla's sets", "effective"], rows)


def certified_individual() -> str:
    """Ways to prove rows at radius 0.1 and tell them apart; in bold the one validation chose."""
    stored = record("certified")
    rows = []
    for entry in stored["individual"]:
        for i, way in enumerate(entry["ways"]):
            test = way["test"]
            settings = ", ".join(f"{n}={v:g}" for n, v in way["settings"].items())
            cells = [
                entry["data"],
                way["way"],
                settings,
                widths(way),
                percent(test["certified_share"]),
                f"{test['auc']:.3f}",
                str(test["distinct_top_k"]),
                f"{test['effective_top_k']:.1f}",
                percent(test["largest_top_k_share"]),
            ]
            mark = "**" if i == entry["chosen"] else "_" if i == entry["chosen_by_share"] else ""
            rows.append([f"{mark}{cell}{mark}" if cell else cell for cell in cells])
    head = ["data", "way", "settings", "hidden", "proved", "AUC", "sets", "effective", "largest"]
    return f"{table(head, rows)}\n\n{made_with(stored)}"


def certified_chosen() -> str:
    """Of each table Vanilla, `certified` and what validation rows chose of certified-individual."""
    stored = record("certified")
    rows = []
    for entry in stored["individual"]:
        ways = entry["ways"]
        for name, way in (
            ("vanilla", ways[0]),
            ("certified", ways[2]),
            ("certified-individual", ways[entry["chosen"]]),
        ):
            test = way["test"]
            proved, largest = percent(test["certified_share"]), percent(test["largest_top_k_share"])
            cells = [
                widths(way),
                proved,
                f"{test['auc']:.3f}",
                str(test["distinct_top_k"]),
                largest,
            ]
            rows.append([entry["data"], f"`{name}`", *cells])
    head = ["data", "recipe", "hidden", "proved at 0.1", "AUC", "sets", "largest"]
    return f"{table(head, rows)}\n\n{made_with(stored)}"


def certified_interactions() -> str:
    """AUC against the share of rows proved, where a linear model is clearly worse."""
    stored = record("certified")
    parts = []
    for entry in stored["interactions"]:
        rows = []
        for radius in dict.fromkeys(point["radius"] for point in entry["curve"]):
            for point in entry["curve"]:
                if point["radius"] == radius:
                    test = point["test"]
                    name = [f"{radius:g}", f"{point['weight']:g}"]
                    cells = [percent(test["certified_share"]), f"{test['auc']:.3f}"]
                    sets = [str(test["distinct_top_k"]), f"{test['effective_top_k']:.1f}"]
                    rows.append([*name, *cells, *sets])
        plain, line = entry["vanilla"]["test"], entry["linear"]["test"]
        head = (
            f"**{entry['data']}** ({entry['features']} features): Vanilla has AUC "
            f"{plain['auc']:.3f}, {plain['distinct_top_k']} sets and "
            f"{percent(plain['certified_share'])} of rows proved at "
            f"{entry['curve'][0]['radius']:g}; a linear model has AUC {line['auc']:.3f}."
        )
        titles = ["radius", "weight", "proved", "AUC", "sets", "effective"]
        parts.append(f"{head}\n\n{table(titles, rows)}")
    return "\n\n".join([*parts, made_with(stored)])
