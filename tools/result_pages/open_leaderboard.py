"""The leaderboard that anybody can join, from the claims in zoo/claims."""

from __future__ import annotations

from pathlib import Path

from r2et.bench.claim import Claim
from r2et.bench.evaluation import leaderboards
from r2et.bench.table_formats import markdown, markdown_text

CLAIMS = Path(__file__).parents[2] / "zoo" / "claims"


def open_leaderboard() -> str:
    """A table for each dataset, and who made what."""
    parts = []
    for table in leaderboards(CLAIMS):
        makers = [_maker(row.claim) for row in table.rows]
        parts.append(f"### {table.data}\n\n{markdown(table)}\n" + "\n".join(makers))
    return "\n\n".join(parts)


def _maker(claim: Claim) -> str:
    by, source = claim.settings.get("by"), claim.settings.get("source")
    digest = str(claim.settings["weights_sha256"])[:12]
    by, source = markdown_text(by or "unknown"), markdown_text(source or "not published")
    return f"- `{claim.recipe}`: {by}, {source}, weights {digest}"
