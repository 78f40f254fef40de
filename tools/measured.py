"""Write what was measured into the pages: `python tools/measured.py [--check]`.

Between `<!-- measured: NAME -->` and `<!-- end -->` a page holds what NAME makes of the records in
perf/records and docs/records, or of the code itself, and nothing typed by hand. Under a block of
code, between `<!-- printed -->` and `<!-- end -->`, stands what it printed for perf/pages.py.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from r2et.bench.claim import Claim
from r2et.bench.paper_tables import TABLE_SPECS
from r2et.bench.registry import BENCHMARKS, TABLE_CANDIDATES
from r2et.bench.result_table import shown
from result_pages.archive import Archive

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "docs" / "records" / "tables.jsonl.xz"  # what `r2et bench` measured
MARK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.S)
PRINTED = re.compile(
    r"(^```(?:python|sh)\n((?:(?!```).)*?)^```\n\n)(<!-- printed -->\n).*?(<!-- end -->)",
    re.M | re.S,
)


def record(name: str) -> dict[str, Any]:
    """One of perf/records."""
    found: dict[str, Any] = json.loads((ROOT / "perf" / "records" / f"{name}.json").read_text())
    return found


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(head)]
    lines.append(["---"] * len(lines[0]))
    lines += [list(row) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def made_with(found: dict[str, Any]) -> str:
    """What a record was measured with, in a sentence."""
    return (
        f"Measured with r2et {found['r2et']}, torch {found['torch']}, Python {found['python']}, "
        f"{found['machine']}, on {found['date']}."
    )


def attack_strength() -> str:
    """Mean P@8 of every attack, lowest in bold."""
    found = record("attacks")
    cases = found["strength"]
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
    return f"{table(['data', 'network', 'radius', 'AUC', *titles], rows)}\n\n{made_with(found)}"


def trust_region() -> str:
    """How Algorithm 2 ends, and whether its iterations follow thickness."""
    found = record("trust_region")
    rows = []
    for case in found["cases"]:
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
    return f"{table(head, rows)}\n\n{found['rows']} rows of Adult. {made_with(found)}"


def changes(settings: Any, *hidden: str) -> str:
    """The fields of a dataclass that differ from their defaults, as they would be written."""
    found = []
    for item in fields(settings):
        value = getattr(settings, item.name)
        if item.name not in hidden and value != item.default:
            found.append(f"{item.name}={value!r}")
    return ", ".join(found)


def recipes() -> str:
    """Every recipe: what it does, its penalty, and its own settings."""
    from r2et.train import RECIPES

    rows = []
    for name, recipe in RECIPES.items():
        penalty = recipe.penalty
        shown = "" if penalty is None else f"`{type(penalty).__name__}({changes(penalty)})`"
        settings = changes(recipe, "name", "penalty", "about")
        if penalty is not None and recipe.weight is None:
            settings = settings.replace("weight=None", f"weight={penalty.usual_weight:g} / radius")
        rows.append([f"`{name}`", recipe.about, shown, f"`{settings}`" if settings else ""])
    return table(["recipe", "what it is", "penalty", "settings"], rows)


def certify_tightness() -> str:
    """How near the proved radius comes to the attacked one."""
    found = record("certify")
    titles = ["interval", "linear", "split", "hessian"]
    rows = []
    for case in found["tightness"]:
        ratios = [f"{case['ratio'][t]:.3f}" if t in case["ratio"] else "" for t in titles]
        name = [case["data"], case["kind"], case["activation"], str(case["layers"])]
        rows.append([*name, str(case["rows"]), f"{case['attacked']:.4f}", *ratios])
    head = ["data", "network", "activation", "layers", "rows", "attacked, median", *titles]
    return f"{table(head, rows)}\n\n{made_with(found)}"


def certify_hunt() -> str:
    """Speed, and whether anything was found inside a claimed radius."""
    found = record("certify")
    lines = []
    for case in found["speed"]["certify"]:
        rate = f"{case['seconds']:.2f} s of processor time"
        lines.append(f"- {case['rows']} rows of Adult, {case['activation']}: {rate}")
    step = found["speed"]["step"]
    lines.append(
        f"- a certified step of 28 - 32 - 2 on a batch of 256: {step['ratio_64_rows']} plain steps "
        f"with 64 rows penalised, {step['ratio_256_rows']} with all"
    )
    hunt = record("hunt")["totals"]
    million = {name: f"{hunt[name] / 1e6:.0f} million" for name in hunt if "points" in name}
    lines.append(
        f"- {hunt['broken']} counter-examples in {hunt['rows']} rows of {hunt['networks']} "
        f"networks: {million['points']} random points in the claimed balls, "
        f"{million['grid_points']} on grids, `MinimumNorm` at {hunt['minimum_norm_rows']} rows "
        f"(fast) and {hunt['standard_minimum_norm_rows']} (standard), `StrongAttack` at "
        f"{hunt['strong_rows']} (thorough) and {hunt['standard_strong_rows']} (standard); nearest: "
        f"{hunt['closest']:.4f} of an attacked radius"
    )
    lines.append(
        f"- beyond the radius, what `precision_at` proves: {million['partial_points']} points, "
        f"`StrongAttack` (fast) at {hunt['partial_rows']} rows"
    )
    return "\n".join(lines)


@cache
def bench_claims() -> list[Claim]:
    """Every row of Table 1 by `r2et bench`, as the papers order them."""
    order = list(TABLE_CANDIDATES)
    claims = Archive.read(BENCH).claims_of("table1")
    return sorted(claims, key=lambda c: (list(BENCHMARKS).index(c.data), order.index(c.recipe)))


def bench_rows(is_table: bool, names: Collection[str] = ()) -> list[list[str]]:
    """Rows of Table 1: of tables, or of what is none; of all recipes or of some."""
    columns = {column.key: column for column in TABLE_SPECS["table1"].columns}
    rows = []
    for claim in bench_claims():
        if BENCHMARKS[claim.data].is_table is not is_table:
            continue
        if names and claim.recipe not in names:
            continue
        cells = {}
        for key, values in claim.numbers.items():
            cells[key] = "" if values.mean is None else shown(columns[key], values)
        settings = ", ".join(f"{n}={v:g}" for n, v in claim.chosen.items())
        settings += " (AUC below the threshold)" if claim.unreliable else ""
        theirs = claim.numbers["erattack"].reported
        reported = "" if theirs is None else f"{theirs:.1f}"
        figures = [cells[key] for key in ("cauc", "erattack", "strongattack", "proved", "sets")]
        rows.append([claim.data, f"`{claim.recipe}`", settings, reported, *figures])
    return rows


HEAD = (
    "data",
    "recipe",
    "chosen",
    "reported",
    "cAUC",
    "ERAttack",
    "StrongAttack",
    "proved",
    "sets",
)


def training() -> str:
    """Table 1 for tables: the papers' figure beside ours, and what they do not report."""
    about = (
        "P@8 in percent, l2 radius 1, 3 seeds (mean ± half the range); 500 test rows under "
        "ERAttack, 200 under StrongAttack; proved: the share of 200 rows whose top 8 cannot "
        "change; sets: different top-8 sets of all test rows. All tables and figures, and the "
        "records: [results](results.md)."
    )
    return f"{table(list(HEAD), bench_rows(is_table=True))}\n\n{about}"


def steps() -> str:
    """Cost of a step of each recipe, in plain steps."""
    found = record("steps")
    networks = found["plain steps"]
    titles = list(next(iter(networks.values())))
    rows = [
        [f"`{t}`", *(f"{some[t]:.2f}" if t in some else "" for some in networks.values())]
        for t in titles
    ]
    return f"{table(['recipe', *networks], rows)}\n\n{made_with(found)}"


def others() -> str:
    """Pairs of digits, pictures, brain networks."""
    rows = [row[:7] for row in bench_rows(is_table=False)]
    return table(list(HEAD[:7]), rows)


def percent(share: float) -> str:
    """One digit, and never 100 where it is not."""
    shown = f"{100 * share:.1f}"
    return "99.9 %" if shown == "100.0" and share < 1 else f"{shown} %"


def widths(entry: dict[str, Any]) -> str:
    """28-32-32-2 without its ends."""
    return "-".join(map(str, entry["hidden"]))


def certified() -> str:
    """What training against the proof reaches."""
    found = record("certified")
    rows = []
    for entry in found["results"]:
        proved, plain = entry["certified"], entry["vanilla"]
        told = [re.search(rf" {name}=([\d.]+)", entry["recipe"]) for name in ("weight", "margin")]
        rows.append(
            [
                entry["data"],
                widths(entry),
                f"{entry['radius']:g}",
                ", ".join(f"{float(found[1]):g}" for found in told if found),
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
    return f"{table(head, rows)}\n\n{made_with(found)}"


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
    found = record("certified")
    rows = []
    for entry in found["individual"]:
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
    return f"{table(head, rows)}\n\n{made_with(found)}"


def certified_chosen() -> str:
    """Of each table Vanilla, `certified` and what validation rows chose of certified-individual."""
    found = record("certified")
    rows = []
    for entry in found["individual"]:
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
    return f"{table(head, rows)}\n\n{made_with(found)}"


def certified_interactions() -> str:
    """AUC against the share of rows proved, where a linear model is clearly worse."""
    found = record("certified")
    parts = []
    for entry in found["interactions"]:
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
    return "\n\n".join([*parts, made_with(found)])


SHOWN = re.compile(r"rows, radius|AUC|linear model|proved|at most|different|commonest")


def tour() -> str:
    """What the tour's two audits printed, the lines to look at first."""
    blocks = [b for b in record("pages")["blocks"] if b["page"] == "docs/tour.md"]
    told = [b["printed"] for b in blocks if b["code"].startswith("r2et audit")]
    lines = [line for text in told for line in text.splitlines() if SHOWN.search(line)]
    return "\n".join(["```text", *lines, "```"])


def one_recipe(name: str) -> str:
    """What one recipe came to beside Vanilla, and what its step costs."""
    rows = [row[:2] + row[4:] for row in bench_rows(is_table=True, names={name, "vanilla"})]
    head = [*HEAD[:2], *HEAD[4:]]
    costs = record("steps")["plain steps"]
    told = [f"{some[name]:.2f} on {kind}" for kind, some in costs.items() if name in some]
    cost = f" A step costs, in plain steps: {'; '.join(told)}." if told else ""
    about = (
        "P@8 in percent at l2 radius 1; proved: rows whose top 8 cannot change; sets: different "
        "top-8 sets. All recipes: [results](../results.md)."
    )
    return f"{table(head, rows)}\n\n{about}{cost}"


def audit_cost() -> str:
    """Time and memory of large audits."""
    found = record("audit")
    rows = [
        [
            f"{entry['rows']}",
            f"{entry['seconds']:.0f} s",
            f"{entry['megabytes_above_import']:.0f} MB",
            f"{entry['megabytes_of_a_worker_above_import']:.0f} MB",
        ]
        for entry in found["results"]
    ]
    head = ["rows", "time", "memory of the caller", "of a worker"]
    about = (
        f"Adult, {found['budget']} budget, radius {found['radius']:g}, {found['workers']} workers"
    )
    return f"{table(head, rows)}\n\n{about}; memory above what imports take. {made_with(found)}"


PARTS: dict[str, Callable[[], str]] = {
    "audit_cost": audit_cost,
    "attack_strength": attack_strength,
    "certified": certified,
    "certified_ceilings": certified_ceilings,
    "certified_individual": certified_individual,
    "certified_chosen": certified_chosen,
    "certified_interactions": certified_interactions,
    "others": others,
    "recipes": recipes,
    "steps": steps,
    "tour": tour,
    "training": training,
    "trust_region": trust_region,
    "certify_tightness": certify_tightness,
    "certify_hunt": certify_hunt,
}
RECIPE = "recipe_"  # and a recipe's name, with _ for -


def part(name: str) -> str:
    """What stands between the marks of this name."""
    if name.startswith(RECIPE):
        return one_recipe(name.removeprefix(RECIPE).replace("_", "-"))
    return PARTS[name]()


def printed(match: re.Match[str]) -> str:
    """A block of code, and under it what perf/pages.py saw it print."""
    said = {block["code"]: block["printed"] for block in record("pages")["blocks"]}
    text = said.get(match[2])
    if text is None:
        first = match[2].splitlines()[0]
        sys.exit(
            f"measured: `{first} ...` must be run first (python perf/pages.py), got no record."
        )
    return f"{match[1]}{match[3]}```text\n{text.rstrip()}\n```\n{match[4]}"


def filled(page: str) -> str:
    """A page with its measured parts made anew."""
    page = MARK.sub(lambda m: f"{m[1]}{part(m[2])}\n{m[3]}", page)
    return PRINTED.sub(printed, page)


def main() -> None:
    """Rewrite the pages, or with --check say which are out of date."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text()
        new = filled(text)
        if new == text:
            continue
        if "--check" in sys.argv[1:]:
            sys.exit(
                f"measured: {path.relative_to(ROOT)} must be made anew (python tools/measured.py)."
            )
        path.write_text(new)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
