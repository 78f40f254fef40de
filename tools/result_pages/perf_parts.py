"""Parts of pages made of perf/records: attacks, costs; and how a part is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def record(name: str) -> dict[str, Any]:
    """One of perf/records."""
    stored: dict[str, Any] = json.loads((ROOT / "perf" / "records" / f"{name}.json").read_text())
    return stored


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(head)]
    lines.append(["---"] * len(lines[0]))
    lines += [list(row) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def made_with(stored: dict[str, Any]) -> str:
    """What a record was measured with, in a sentence."""
    return (
        f"Measured with r2et {stored['r2et']}, torch {stored['torch']}, Python {stored['python']}, "
        f"{stored['machine']}, on {stored['date']}."
    )


def attack_strength() -> str:
    """Mean P@8 of every attack, lowest in bold."""
    stored = record("attacks")
    cases = stored["strength"]
    titles = list(cases[0]["precision"])
    rows = []
    for case in cases:
        lowest = min(case["precision"].values())
        cells = [
            f"**{100 * v:.1f}**" if v == lowest else f"{100 * v:.1f}"
            for v in case["precision"].values()
        ]
        name = [case["data"], case["network"], str(case["radius"]), f"{case['auc']:.3f}"]
        rows.append([*name, *cells])
    return f"{table(['data', 'network', 'radius', 'AUC', *titles], rows)}\n\n{made_with(stored)}"


def trust_region() -> str:
    """How Algorithm 2 ends, and whether its iterations follow thickness."""
    stored = record("trust_region")
    rows = []
    for case in stored["cases"]:
        gap, share = case["spearman_gap"], case["spearman_probability"]
        rows.append(
            [
                str(case["radius"]),
                str(case["epsilon"]),
                f"{case['flippable']:.0%}",
                f"{case['flipped_of_flippable']:.0%}",
                f"{case['mean_iterations']:.1f}",
                f"{gap['rho']:.2f} (p = {gap['p']:.1g})",
                f"{share['rho']:.2f} (p = {share['p']:.1g})",
            ]
        )
    head = ["radius", "epsilon", "flippable (MinimumNorm)", "of these flipped", "mean iterations"]
    head += ["Spearman with gap thickness", "with probability thickness"]
    return f"{table(head, rows)}\n\n{stored['rows']} rows of Adult. {made_with(stored)}"


def steps() -> str:
    """Cost of a step of each recipe, in plain steps."""
    stored = record("steps")
    networks = stored["plain steps"]
    titles = list(next(iter(networks.values())))
    rows = [
        [f"`{t}`", *(f"{some[t]:.2f}" if t in some else "" for some in networks.values())]
        for t in titles
    ]
    return f"{table(['recipe', *networks], rows)}\n\n{made_with(stored)}"


def audit_cost() -> str:
    """Time and memory of large audits."""
    stored = record("audit")
    rows = [
        [
            f"{entry['rows']}",
            f"{entry['seconds']:.0f} s",
            f"{entry['megabytes_above_import']:.0f} MB",
            f"{entry['megabytes_of_a_worker_above_import']:.0f} MB",
        ]
        for entry in stored["results"]
    ]
    head = ["rows", "time", "memory of the caller", "of a worker"]
    about = f"Adult, {stored['budget']} budget, radius {stored['radius']:g}"
    about += f", {stored['workers']} workers; memory above what imports take"
    return f"{table(head, rows)}\n\n{about}. {made_with(stored)}"


def growth() -> str:
    """How cost grows, and captum beside ours."""
    stored = record("growth")
    rows = []
    for entry in stored["growth"]:
        pairs = zip(entry["sizes"], entry["ratios"], strict=True)
        rows.append(
            [
                entry["what"].replace("_", " "),
                entry["by"],
                ", ".join(f"{size}: {ratio:.3g}" for size, ratio in pairs),
                f"{entry['exponent']:.2f}",
            ]
        )
    head = ["what", "grows with", "size: processor time, the smallest being 1", "exponent"]
    other = [
        [e["what"], str(e["features"]), str(e["rows"]), f"{e['captum_over_ours']:.1f}"]
        for e in stored["captum"]
    ]
    points = stored["captum"][0]["points"]
    captum = table(["explanation", "features", "rows", "captum's time over ours"], other)
    text = f"{table(head, rows)}\n\n{made_with(stored)} Captum in the same run, {points} points:"
    return f"{text}\n\n{captum}"


SHOWN = re.compile(r"rows, radius|AUC|of logistic|of boosting|proved|at most|different|commonest")


def tour() -> str:
    """What the tour's two audits printed, the lines to look at first."""
    blocks = [b for b in record("pages")["blocks"] if b["page"] == "docs/tour.md"]
    outputs = [b["printed"] for b in blocks if b["code"].startswith("r2et audit")]
    lines = [line for text in outputs for line in text.splitlines() if SHOWN.search(line)]
    return "\n".join(["```text", *lines, "```"])


def versions() -> str:
    """What was installed where, and whether the core tests pass there."""
    stored = record("versions")
    names = ("torch", "numpy", "pandas", "scikit-learn")
    rows = []
    for name, own in stored["environments"].items():
        took = own["import_seconds"]
        beyond = f"{took['r2et.audit, torch'] - took['torch']:.1f} s"
        result = own["tests"].partition(" in ")[0]
        pip = "nothing broken" if own["pip_check"] == "No broken requirements found." else "broken"
        found = [own["versions"][package] for package in names]
        rows.append([name, own["python"], *found, result, pip, beyond])
    head = ["environment", "Python", *names, "core tests", "`pip check`", "import beyond torch's"]
    compiles = [own["python"] for own in stored["pythons"].values() if own.get("compiles")]
    # Not the torch and Python of the run itself, which are those of the environments above.
    dates = sorted({own["date"] for own in stored["environments"].values()})
    return (
        f"{table(head, rows)}\n\nMeasured on {stored['machine']}, {' and '.join(dates)}. The"
        f" sources compile with Python {', '.join(compiles)}."
    )


def soak() -> str:
    """What memory did over the last soak."""
    run = record("soak")
    first, last = run["resident_mb"][0], run["resident_mb"][-1]
    return (
        f"{run['minutes']:g} minutes, {run['rounds']} rounds: {first:g} MB after the first round,"
        f" {last:g} MB after the last; from the second to the last quarter {run['growth_mb']:+g}"
        " MB;"
        f" {run['most_open_files']} files open at most."
    )


MACHINES, MILLION = 100, 1_000_000
SHOWN_AS = {"clean": "AUC", "certified": "proofs", "noise": "P@k under noise"}


def large_audit() -> str:
    """Memory, ends and speed of the audit of a table that is as long as they get."""
    stored = record("large_audit")
    whole, rows, chunk = stored["whole"], stored["rows"], stored["chunk"]
    looks = [look for name in ("before", "after") for look in whole[f"memory_{name}"]]
    measuring = [look for look in looks if look["worker"]]
    parts = [measuring[round(i * (len(measuring) - 1) / 6)] for i in range(7)]
    lines = [
        [f"{look['chunks'] * chunk:,}", f"{look['driver']:.0f} MB", f"{look['worker']:.0f} MB"]
        for look in parts
    ]
    speed = stored["sample"]["processor_seconds"] / stored["sample"]["rows"]
    most = max(look["driver"] for look in looks)
    measured = ", ".join(SHOWN_AS[name] for name in stored.get("measures", ()))
    seen = table(["rows done", "memory of the caller", "of a worker, the larger"], lines)
    at_once = MACHINES * stored["workers"]
    return (
        f"{seen}\n\n{rows:,} rows of {stored['features']} features,"
        f" {measured or 'all measures of the fast budget'}, Ray with {stored['workers']} workers."
        f" A worker was ended by `kill -9` after a quarter, the caller after"
        f" {whole['chunks_when_the_driver_was_killed']} of {whole['chunks']} chunks; the same"
        f" command went on from there: {whole['wall_seconds'] / 60:.0f} minutes in all."
        f" The caller, which makes one file of all rows in the end, had {most:.0f} MB"
        f" at most."
        f" Of {stored['sample']['rows']:,} rows Ray and one process gave the same figures, to the"
        f" bit, in {1000 * speed:.2f} ms of a processor a row. At that rate a million rows are"
        f" {MILLION * speed / 60:.0f} minutes of one processor; {MACHINES} machines with"
        f" {stored['workers']} workers each would take {MILLION * speed / at_once:.1f} seconds, and"
        f" what starting them takes: that is on paper. {made_with(stored)}"
    )
