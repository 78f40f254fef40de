"""A page of results made of claims alone: every number leads to the file that says so."""

from __future__ import annotations

from pathlib import Path

from r2et.bench.cases import CASES, TABLES, standing
from r2et.bench.claim import Claim, load_claims
from r2et.bench.render import markdown
from r2et.bench.table import Row, make_table
from r2et.bench.tables import TABLE_NAMES, spec

HEAD = """# Results

Made by `python tools/results.py` from the files that the numbers lead to, and by nothing else; each
holds the numbers of every seed, the papers' figure, the settings and the versions. Small: the
papers' figure. Bold: the best, underlined: the next; a recipe whose validation AUC is below
Vanilla's minus 0.01 (°) and the linear model are not in the race. † the best of R2ET and its kin
and the best of the others differ significantly (paired t-test over test rows, 5 %).
"""


def results(folder: Path, link: str) -> str:
    """The page of all claims in a folder; link: how the page gets to the folder."""
    parts = [HEAD]
    for name in (*TABLE_NAMES, "leaderboard"):
        claims = load_claims(folder, name)
        some = [data for data in CASES if any(claim.data == data for claim in claims)]
        if some:
            parts.append(f"## {spec(name, some[0]).title}\n")
        for data in some:
            table = make_table(spec(name, data), data, standing(data), _ordered(claims))
            parts += [f"### {standing(data)}\n", markdown(table, lambda row: _place(row, link))]
    return "\n".join(parts)


def _place(row: Row, link: str) -> str:
    return f"{link}/{row.claim.name}"


def _ordered(claims: list[Claim]) -> list[Claim]:
    """As the papers order their rows, others after them."""
    names = list(TABLES)
    return sorted(claims, key=lambda c: names.index(c.recipe) if c.recipe in names else len(names))
