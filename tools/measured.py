"""Write what was measured into the pages: `python tools/measured.py [--check]`.

Between `<!-- measured: NAME -->` and `<!-- end -->` a page holds what NAME makes of the records in
perf/records and docs/records, or of the code itself, and nothing typed by hand. Under a block of
code, between `<!-- printed -->` and `<!-- end -->`, stands what it printed for perf/pages.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from result_pages.certified_parts import (
    certified,
    certified_ceilings,
    certified_chosen,
    certified_individual,
    certified_interactions,
)
from result_pages.certify_parts import (
    certify_floats,
    certify_hunt,
    certify_images,
    certify_others,
    certify_tightness,
    certify_ways,
)
from result_pages.open_leaderboard import open_leaderboard
from result_pages.perf_parts import (
    ROOT,
    attack_strength,
    audit_cost,
    growth,
    large_audit,
    record,
    soak,
    steps,
    tour,
    trust_region,
    versions,
)
from result_pages.reasons_parts import reasons, reasons_front
from result_pages.table_parts import auc_budget, tables, tables_ranks
from result_pages.training_parts import one_recipe, others, primal_dual, recipes, training

MARK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.S)
PRINTED = re.compile(
    r"(^```(?:python|sh)\n((?:(?!```).)*?)^```\n\n)(<!-- printed -->\n).*?(<!-- end -->)",
    re.M | re.S,
)
PARTS: dict[str, Callable[[], str]] = {
    "audit_cost": audit_cost,
    "attack_strength": attack_strength,
    "auc_budget": auc_budget,
    "certified": certified,
    "certified_ceilings": certified_ceilings,
    "certified_individual": certified_individual,
    "certified_chosen": certified_chosen,
    "certified_interactions": certified_interactions,
    "growth": growth,
    "large_audit": large_audit,
    "open_leaderboard": open_leaderboard,
    "others": others,
    "primal_dual": primal_dual,
    "reasons": reasons,
    "reasons_front": reasons_front,
    "recipes": recipes,
    "soak": soak,
    "steps": steps,
    "tables": tables,
    "tables_ranks": tables_ranks,
    "tour": tour,
    "training": training,
    "trust_region": trust_region,
    "versions": versions,
    "certify_floats": certify_floats,
    "certify_hunt": certify_hunt,
    "certify_images": certify_images,
    "certify_others": certify_others,
    "certify_tightness": certify_tightness,
    "certify_ways": certify_ways,
}
RECIPE = "recipe_"  # and a recipe's name, with _ for -


def part(name: str) -> str:
    """What stands between the marks of this name."""
    if name.startswith(RECIPE):
        return one_recipe(name.removeprefix(RECIPE).replace("_", "-"))
    return PARTS[name]()


def printed(match: re.Match[str]) -> str:
    """A block of code, and under it what perf/pages.py saw it print."""
    outputs = {block["code"]: block["printed"] for block in record("pages")["blocks"]}
    text = outputs.get(match[2])
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
