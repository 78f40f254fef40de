"""Orders and choices that depend on a text, not on any library's random generator."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise

SHARES = (0.70, 0.15)  # training and validation; the rest is the test part


def shuffled(count: int, salt: str) -> list[int]:
    """0..count-1 sorted by the SHA-256 of "salt:number": the same in every version, everywhere."""

    def digest(i: int) -> bytes:
        return hashlib.sha256(f"{salt}:{i}".encode()).digest()

    return sorted(range(count), key=digest)


def parts(count: int, shares: Sequence[float] = SHARES) -> list[slice]:
    """Consecutive slices of `count` rows: the shares, rounded down, and the rest."""
    sizes = [int(share * count) for share in shares]
    ends = [0, *(sum(sizes[: i + 1]) for i in range(len(sizes))), count]
    return [slice(a, b) for a, b in pairwise(ends)]


def pick(count: int, wanted: int, salt: str) -> list[int]:
    """`wanted` different numbers of 0..count-1, ascending, without listing them all.

    Numbers are read off SHA-256 of "salt:draw", so `count` may be far larger than `wanted`.
    """
    if wanted >= count:
        return list(range(count))
    numbers: set[int] = set()
    draw = 0
    while len(numbers) < wanted:
        digest = hashlib.sha256(f"{salt}:{draw}".encode()).digest()
        numbers.add(int.from_bytes(digest, "big") % count)  # 256 bits: the bias is below 1e-60
        draw += 1
    return sorted(numbers)
