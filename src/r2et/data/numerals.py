"""Numbers as people write them: which text spells one, and one spelling for each."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

# ASCII digits only, and no underscore: float() takes 2_10 for 210, though it is a code.
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE
)
_PLAIN = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(%?)", re.ASCII)
# As programs write exponents. A bare 1E5 stays as it is: it may be a code.
_EXPONENT = re.compile(r"[+-]?\d+(?:\.\d+[eE][+-]?|[eE][+-])\d{1,3}", re.ASCII)
_LONGEST = 25  # exponents beyond this are kept, instead of a line of zeros
_STARTS = frozenset("+-.,0123456789")


class Marks(NamedTuple):
    """What separates the whole from the fraction, and thousands from hundreds, in text."""

    decimal: str = "."
    thousands: str | None = None


POINT = Marks()


def rewritten(text: str, marks: Marks = POINT) -> str | None:
    """A number as text with a decimal point and no thousands; None for what spells no number.

    A percent sign stays. Thousands are taken out only of well-formed groups of three digits.
    """
    if not text or text[0] not in _STARTS:
        return text if _NUMBER.fullmatch(text) else None
    bare, sign = (text[:-1].rstrip(), "%") if text.endswith("%") else (text, "")
    if marks.thousands and marks.thousands in bare:
        if not _grouped(marks).fullmatch(bare):
            return None
        bare = bare.replace(marks.thousands, "")
    if marks.decimal != ".":
        if "." in bare:
            return None
        bare = bare.replace(marks.decimal, ".")
    return bare + sign if _NUMBER.fullmatch(bare) else None


def is_number(text: str, marks: Marks = POINT) -> bool:
    """Whether a text spells a number; one with a percent sign counts."""
    return rewritten(text, marks) is not None


def spelling(text: str, marks: Marks = POINT) -> str:
    """The one spelling of a number: 1.50, +1.5 and 1.5e+00 are 1.5; other text stays.

    Zeros in front stay as well, for they are part of a code such as 01000; see `same_number`.
    """
    if not text or text[0] not in _STARTS:
        return text
    plain = rewritten(text, marks)
    if plain is None:
        return text
    if _EXPONENT.fullmatch(plain):
        value = Decimal(plain)
        if abs(value.adjusted()) > _LONGEST:
            return repr(float(plain))
        plain = format(value, "f")
    match = _PLAIN.fullmatch(plain)
    if match is None:
        return plain
    sign, whole, fraction, percent = match.groups(default="")
    fraction = fraction.rstrip("0")
    zero = not fraction and not whole.strip("0")
    text = ("-" if sign == "-" and not zero else "") + (whole or "0")
    return text + ("." + fraction if fraction else "") + percent


def same_number(label: str) -> str:
    """What two labels have in common if they spell the same number: 01000 and 1000 do.

    A program that reads a column of codes as numbers loses the zeros in front, so no comparison
    may depend on them.
    """
    sign, digits = ("-", label[1:]) if label.startswith("-") else ("", label)
    if not digits.startswith("0") or not _PLAIN.fullmatch(digits):
        return label
    digits = digits.lstrip("0")
    return sign + (digits if digits[:1].isdigit() else "0" + digits) if digits else "0"


@lru_cache(maxsize=8)
def _grouped(marks: Marks) -> re.Pattern[str]:
    thousands, decimal = re.escape(marks.thousands or ""), re.escape(marks.decimal)
    return re.compile(rf"[+-]?\d{{1,3}}(?:{thousands}\d{{3}})+(?:{decimal}\d*)?", re.ASCII)


def grouped_pattern(marks: Marks) -> str:
    """The regular expression of a number with thousands, for readers of whole columns."""
    return _grouped(marks).pattern
