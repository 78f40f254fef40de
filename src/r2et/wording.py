"""What was proved, in words: never more than was proved."""

from __future__ import annotations

import math

CLOSE = 1e-9  # of a unit: a share of rows is a quotient, and rounds
HAIR = 1e-6  # of a radius: by as much less than was proved it is given


def rows_text(count: int) -> str:
    """So many rows."""
    return f"{count} row{'' if count == 1 else 's'}"


def floored(share: float, decimals: int = 1) -> float:
    """A share in percent, rounded down: 0.8657 is 86.5."""
    scale = 10.0**decimals
    return math.floor(100 * share * scale + CLOSE) / scale


def floored_percent(share: float, decimals: int = 1) -> str:
    """The same as a text for the terminal."""
    return f"{floored(share, decimals):.{decimals}f}%"


def lowered(radius: float, digits: int = 3) -> float:
    """A radius rounded down to so many digits: 0.19876 is 0.198.

    But for the hair that certificates keep back from what they proved.
    """
    if radius <= 0:
        return 0.0
    place = digits - 1 - math.floor(math.log10(radius))
    return math.floor(radius / (1 - HAIR) * 10.0**place + CLOSE) / 10.0**place


def at_limit(radius: float, limit: float | None) -> bool:
    """Whether a proved radius is the largest that was looked at: the truth may lie beyond."""
    return limit is not None and radius >= limit * (1 - HAIR)


def proved_radius(text: str, radius: float, limit: float | None) -> str:
    """A proved radius that is already written; one at the limit is a lower bound and says so."""
    return f"at least {text}" if at_limit(radius, limit) else text
