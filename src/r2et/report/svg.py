"""Axes and text of the page's charts, as SVG that takes its colours from the style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from r2et.wording import significant

WIDE, NARROW = 720, 340
LETTER = 6.6  # width of a letter at the charts' font size, on average


def both(draw: Callable[[int], Markup], wide: int = WIDE, narrow: int = NARROW) -> Markup:
    """A chart for screens and one for phones, with letters of one size; the style shows one."""
    shown = Markup('<div class="{}">{}</div>')
    return shown.format("wide", draw(wide)) + shown.format("narrow", draw(narrow))


@dataclass(frozen=True)
class Axes:
    """A plane: where numbers of two ranges lie on a drawing.

    width, height: of the drawing.
    x, y: the ranges.
    log: whether x is on a logarithmic scale.
    left, right, top, bottom: margins around the plane.
    parts: what has been drawn.
    """

    width: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float] = (0.0, 1.0)
    log: bool = False
    left: int = 50
    right: int = 14
    top: int = 14
    bottom: int = 44
    parts: list[Markup] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point lies, to a tenth of a unit."""
        low, high, value = *self.x, x
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        across = (value - low) / (high - low)
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        inner = self.width - self.left - self.right
        tall = self.height - self.top - self.bottom
        return (
            round(self.left + across * inner, 1),
            round(self.top + (1 - up) * tall, 1),
        )

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """A line through points, as path data."""
        return "M" + "L".join(f"{a:g} {b:g}" for a, b in (self.at(x, y) for x, y in points))

    def add(self, template: str, *values: object) -> None:
        """One more element; values are escaped."""
        self.parts.append(Markup(template).format(*values))

    def text(self, place: tuple[float, float], words: str, style: str = "", end: str = "") -> None:
        """Words at a place on the drawing; end: middle or end, where not start."""
        x, y = place
        anchor = Markup(' text-anchor="{}"').format(end) if end else ""
        self.add('<text x="{}" y="{}" class="{}"{}>{}</text>', x, y, style, anchor, words)

    def grid(
        self,
        x_label: str,
        y_label: str,
        write_y: Callable[[float], str],
        y_ticks: Sequence[float] | None = None,
        write_x: Callable[[float], str] = significant,
    ) -> None:
        """Lines, numbers and names of the two axes."""
        inner = self.width - self.left - self.right
        places = ticks(*self.y, 5) if y_ticks is None else y_ticks
        for value, text in zip(places, different(places, write_y), strict=True):
            y = self.at(self.x[0], value)[1]
            self.add('<path class="grid" d="M{} {}h{}"/>', self.left, y, inner)
            self.text((self.left - 7, y + 4), text, "tick", "end")
        most = max(2, inner // 56)
        places = decades(*self.x, most) if self.log else ticks(*self.x, most)
        for value, text in zip(places, different(places, write_x), strict=True):
            x, base = self.at(value, self.y[0])
            self.add('<path class="axis" d="M{} {}v5"/>', x, base)
            self.text((x, base + 19), text, "tick", "middle")
        base = self.height - self.bottom
        self.add('<path class="axis" d="M{} {}h{}"/>', self.left, base, inner)
        self.text((self.left + inner / 2, self.height - 6), x_label, "label", "middle")
        if y_label:
            self.text((0, 13), y_label, "label")

    def svg(self, name: str, title: str, description: str) -> Markup:
        """The drawing, with the words for those who do not see it."""
        return Markup(
            '<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img"'
            ' aria-labelledby="{n}-t {n}-d"><title id="{n}-t">{t}</title>'
            '<desc id="{n}-d">{d}</desc>{parts}</svg>'
        ).format(
            w=self.width,
            h=self.height,
            n=name,
            t=title,
            d=description,
            parts=Markup("").join(self.parts),
        )


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within a range, at most so many and one."""
    rough = (high - low) / max(1, most)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def different(values: Sequence[float], write: Callable[[float], str]) -> list[str]:
    """Numbers of an axis as texts, in as many digits as it takes for no two to be alike."""
    texts = [write(value) for value in values]
    for digits in range(4, 16):
        if len(set(texts)) == len(texts):
            break
        texts = [significant(value, digits) for value in values]
    return texts


def decades(low: float, high: float, most: int) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 3, 10, 30; or fewer, where they would crowd."""
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    inside: list[float] = []
    for within in ((1, 2, 5), (1, 3), (1,)):
        all_of_them = [float(f"{m}e{e}") for e in range(first, last + 1) for m in within]
        inside = [v for v in all_of_them if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
        if len(inside) <= most:
            return inside
    return inside[:: math.ceil(len(inside) / most)]
