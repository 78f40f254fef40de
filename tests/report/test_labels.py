"""Names on a chart: free of each other, of the axis' title, and read as their own point's."""

import itertools
import re

import pytest

from r2et.report.labels import BOLD, _away, _overlap, grouped, label
from r2et.report.svg import LETTER, Axes

TITLE = "kept under attack"
# The places of a real comparison: three models at the top left, close to each other.
CROWD = [(183.0, 40.0), (187.0, 40.0), (213.0, 40.0), (340.0, 90.0), (430.0, 95.0)]
NAMES = ["linear", "certified", "r2et-ball", "r2et", "vanilla"]


def drawn(points, names, width=480):
    """Text -> (box, whether a line ties it to its point)."""
    axes = Axes(width, 320, (0, 1))
    label(axes, points, names, TITLE)
    found, tied = {}, False
    for part in axes.parts:
        if "tie" in part:
            tied = True
            continue
        x, y = (float(v) for v in re.search(r'x="([-\d.]+)" y="([-\d.]+)"', part).groups())
        text = re.search(r">([^<]+)</text>", part)[1]
        found[text] = ((x, y - 11, x + BOLD * len(text) + 2, y + 3), tied)
        tied = False
    return found


@pytest.mark.parametrize("width", [340, 480])
def test_no_name_lies_on_another_or_on_the_title(width):
    points = [(a * width / 480, b) for a, b in CROWD]
    found = drawn(points, NAMES, width)
    boxes = [box for box, _ in found.values()]
    boxes.append((0, 0, LETTER * len(TITLE), 16))
    assert not any(_overlap(a, b) for a, b in itertools.combinations(boxes, 2))
    for place, name in zip(points, NAMES, strict=True):
        (box, tied) = next(value for text, value in found.items() if name in text.split(", "))
        nearest = min(points, key=lambda p: _away(box, p))
        assert tied or nearest == place, name


def test_points_that_coincide_share_a_label():
    assert grouped([(10, 10), (11, 11), (90, 10)], "abc") == [
        ((10, 10), ["a", "b"]),
        ((90, 10), ["c"]),
    ]
    found = drawn([(200.0, 100.0), (200.5, 100.0), (300.0, 200.0)], ["one", "two", "three"])
    assert set(found) == {"one, two", "three"}


def test_a_point_alone_has_its_name_to_the_right():
    ((box, tied),) = drawn([(200.0, 100.0)], ["a name that is much too long"]).values()
    assert not tied
    assert box[0] == 210
    assert box[1] < 100 < box[3]
