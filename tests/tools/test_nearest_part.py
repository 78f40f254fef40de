"""How near we come to the papers' figures: within five points, only with too low an AUC, or not."""

from r2et.bench.claim import Claim, SeedValues
from result_pages.nearest_part import column_of, difference, nearest_part


def claim(recipe, ours, theirs, below=(), data="adult", **chosen):
    values = SeedValues(() if ours is None else (ours / 100,), reported=theirs)
    settings = {"seeds": 1, "regime": "papers"}
    return Claim("nearest", data, recipe, chosen, tuple(below), {"erattack": values}, settings)


def test_where_each_figure_stands():
    assert column_of(claim("r2et", 95.0, 90.0)) == 0
    assert column_of(claim("r2et", 95.1, 90.0)) == 2
    assert column_of(claim("r2et", 85.0, 90.0, ["too low"])) == 1
    assert column_of(claim("r2et", 80.0, 90.0, ["too low"])) == 2
    assert column_of(claim("r2et", None, 90.0)) is column_of(claim("r2et", 90.0, None)) is None
    assert difference(claim("r2et", 94.04, 92.1)) == 94.0 - 92.1


def test_a_line_for_each_dataset():
    some = [
        claim("vanilla", 85.2, 87.6),
        claim("r2et", 94.0, 92.1, weight=0.001),
        claim("at", 84.0, 68.4, ["too low"], epochs=3),
        claim("sp", 96.0, 99.5, ["too low"], data="compas"),
    ]
    text = "\n".join(nearest_part(some, "page.md"))
    assert "2 of 4 come out within 5 points, 1 more only where the AUC is too low, and 1 do" in text
    first, second = text.splitlines()[-2:]
    found = "`vanilla` 85.2 (87.6), 1 epoch; `r2et` 94.0 (92.1), 1 epoch"
    missed = "`at`° 84.0 (68.4), 3 epochs"
    assert first == f"| [adult](page.md#nearest-papers-adult) | {found} |  | {missed} |"
    assert second.endswith("|  | `sp`° 96.0 (99.5), 3 epochs |  |")
    assert list(nearest_part([], "page.md")) == []
