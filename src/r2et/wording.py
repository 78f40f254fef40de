"""How numbers are written, on a page and on a terminal: in no more digits than they deserve.

Of what was proved never more than was proved: shares and radii are rounded down; and never 100 %
for 99.97 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

CLOSE = 1e-9  # of a unit: a share of rows is a quotient, and rounds
HAIR = 1e-6  # of a radius: by as much less than was proved it is given
LEAST = 1e-290  # of a radius: below, no power of ten tells its digits apart
SPACE = "\u00a0"  # one that does not break the line
THIN = "\u202f"
MINUS = "\u2212"
TIMES = "\u00d7"
NONE = "not measured"
ENDLESS = "none found"  # a radius that was looked for in vain
MEASURES = {  # that a reader would not know by their names
    "strong": "the strongest attack",
    "smallest": "the smallest change",
    "papers": "the papers' attack",
    "certified": "the proof",
}
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def rows_text(count: int) -> str:
    """So many rows."""
    return f"{count} row{'' if count == 1 else 's'}"


def measure_words(name: Any) -> str:
    """A measure as a reader knows it."""
    return MEASURES.get(str(name), str(name))


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
    if radius < LEAST:
        return 0.0
    return _floored_at(radius, digits - 1 - math.floor(math.log10(radius)))


def lowered_fixed(radius: float, decimals: int) -> str:
    """The same to so many decimals, as a text for the terminal: 0.19876 to three is 0.198."""
    return f"{_floored_at(radius, decimals):.{decimals}f}"


def _floored_at(radius: float, place: int) -> float:
    return math.floor(radius / (1 - HAIR) * 10.0**place + CLOSE) / 10.0**place


def at_limit(radius: float, limit: float | None) -> bool:
    """Whether a proved radius is the largest that was looked at: the truth may lie beyond."""
    return limit is not None and radius >= limit * (1 - HAIR)


def proved_radius(text: str, radius: float, limit: float | None) -> str:
    """A proved radius that is already written; one at the limit is a lower bound and says so."""
    return f"at least {text}" if at_limit(radius, limit) else text


def finite(value: Any) -> float | None:
    """The value as a float; None where there is none, or it is no number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return number if math.isfinite(number) else None


def finites(values: Sequence[Any] | None) -> list[float | None]:
    """The same for a column, which may be missing."""
    return [finite(v) for v in values or ()]


def significant(value: Any, digits: int = 3) -> str:
    """A radius, a score: so many significant digits, no zeros at the end."""
    number = finite(value)
    if number is None:
        return NONE
    if number == 0:
        return "0"
    text = f"{abs(number):.{digits - 1}e}"
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    if -5 <= power < 6:
        plain = f"{float(text):.{max(0, digits - 1 - power)}f}"
    else:
        plain = f"{_strip(mantissa)}{SPACE}{TIMES}{SPACE}10{str(power).translate(SUPERSCRIPT)}"
    return (MINUS if number < 0 else "") + _strip(plain)


def apart(low: float, high: float) -> tuple[str, str]:
    """What is proved and what is broken, in the digits (3 to 6) that tell them apart."""
    digits = next((d for d in (3, 4, 5) if significant(low, d) != significant(high, d)), 6)
    return significant(lowered(low, digits), digits), significant(high, digits)


def fixed(value: Any, decimals: int = 3) -> str:
    """An AUC and its like: always the same number of decimals."""
    number = finite(value)
    if number is None:
        return NONE
    text = f"{abs(number):.{decimals}f}"
    return (MINUS if number < 0 and float(text) else "") + text


def count(value: Any) -> str:
    """A whole number, in groups of three from 10 000 on."""
    number = finite(value)
    if number is None:
        return NONE
    text = f"{round(number):,}" if abs(number) >= 10_000 else f"{round(number)}"
    return text.replace(",", THIN).replace("-", MINUS)


def rows_of(value: Any) -> str:
    """So many rows."""
    number = finite(value)
    return f"{count(value)}{SPACE}row{'' if number == 1 else 's'}"


def percent(value: Any) -> str:
    """A share, with as many decimals (at most 2) as it takes not to read as none or all."""
    number = finite(value)
    if number is None:
        return NONE
    decimals = next((d for d in (1, 2) if _honest(number, d)), None)
    if decimals is None:
        return f"over 99.99{SPACE}%" if number > 0.5 else f"near 0{SPACE}%"
    text = f"{100 * abs(number):.{decimals}f}"
    return (MINUS if number < 0 and float(text) else "") + f"{_strip(text)}{SPACE}%"


def proved_percent(value: Any) -> str:
    """A share that was proved: rounded down, so that it never reads as more."""
    number = finite(value)
    if number is None:
        return NONE
    decimals = next((d for d in (1, 2) if floored(number, d) > 0), 1)
    if number > 0 and not floored(number, decimals):
        return f"near 0{SPACE}%"
    return f"{_strip(f'{floored(number, decimals):.{decimals}f}')}{SPACE}%"


def proved_significant(value: Any, digits: int = 3) -> str:
    """A radius that was proved: rounded down to so many significant digits."""
    number = finite(value)
    return NONE if number is None else significant(lowered(number, digits), digits)


def percents(shares: Sequence[float]) -> list[str]:
    """Shares of one whole, all with the same decimals, so rounded that they still sum to 100 %.

    The first is what was proved, and is rounded down; what that leaves goes to the others.
    """
    proved = shares[0]
    decimals = next(
        (
            d
            for d in range(5)
            if all(_honest(s, d) for s in shares) and (floored(proved, d) or not proved)
        ),
        5,
    )
    scale = 100 * 10**decimals
    parts = [math.floor(s * scale + 1e-9) for s in shares]
    left = round(sum(shares) * scale) - sum(parts)
    rest = sorted(range(1, len(shares)), key=lambda i: parts[i] - shares[i] * scale)
    for i in rest[: max(0, left)]:
        parts[i] += 1
    texts = [f"{p / 10**decimals:.{decimals}f}" for p in parts]
    whole = {0.0: "0", 1.0: "100"}
    return [f"{whole.get(s, t)}{SPACE}%" for s, t in zip(shares, texts, strict=True)]


def compact(value: float, digits: int = 4) -> float:
    """A number for the data within the page: short, and the same to the eye."""
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e9 else short


def _strip(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text and TIMES not in text else text


def _honest(share: float, decimals: int) -> bool:
    """Whether so many decimals keep apart nothing from little, and almost all from all."""
    shown = round(100 * share, decimals)
    return (shown != 0 or share == 0) and (shown != 100 or share == 1)


def below_logistic(auc: Any, logistic: Any) -> str:
    """A loud line where a model is worse than a logistic regression on the same training rows.

    Worse means so in the three decimals that are printed; empty where it is not, or not known.
    """
    own, simple = finite(auc), finite(logistic)
    if own is None or simple is None or round(own, 3) >= round(simple, 3):
        return ""
    return (
        f"BELOW LOGISTIC REGRESSION: AUC {own:.3f} against {simple:.3f} of a logistic regression"
        " fitted on the same training rows. The simpler model is the better one here."
    )
