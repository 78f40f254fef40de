"""Verdicts: the papers' own best, ours, and what follows from both answers."""

import pytest

from r2et.bench.claim import Claim, SeedValues
from r2et.bench.paper_tables import table_spec
from result_pages.verdicts import AGREEMENT, above, ahead, at_most, no_worse, size, verdicts

LEADS = "ERAttack: a variant of R2ET leads the other methods"
GAINS = "ERAttack: R2ET gains over Vanilla"
# The papers' COMPAS: 84.2 vanilla; r2et-mm-nh 95.3 is the best variant, sp 99.5 the best other.


def rows(below=(), tied=(), **precision):
    """Table 1 of COMPAS with these numbers under ERAttack, in percent."""
    claims = []
    for name, value in precision.items():
        recipe = name.replace("_", "-")
        numbers = {column.key: SeedValues() for column in table_spec("table1", "compas").columns}
        share = 0.9 if recipe in tied else 0.0
        numbers["erattack"] = SeedValues((value / 100,), tied=share)
        low = ("too low",) if recipe in below else ()
        claims.append(Claim("table1", "compas", recipe, {}, low, numbers))
    return claims


def verdict(claims, says):
    return next((v for v in verdicts(claims) if v.says == says), None)


def test_the_papers_best_is_theirs_whatever_was_run_here():
    lead = verdict(rows(vanilla=60, r2et=70, sp=65), LEADS)
    assert lead.theirs == "95.3 `r2et-mm-nh`, 99.5 `sp`"
    assert lead.ours == "70.0 `r2et`, 65.0 `sp`; `r2et-mm-nh` was not run"
    assert (lead.papers, lead.here) == ("no", "yes")
    assert lead.holds == "here, but not in the papers"
    low = verdict(rows(("r2et-mm-nh",), vanilla=60, r2et=70, r2et_mm_nh=99, sp=65), GAINS)
    assert low.theirs == "+11.1 `r2et-mm-nh`"
    assert low.ours == "+10.0 `r2et`; `r2et-mm-nh` is below the threshold"
    assert low.holds == "here, too"


@pytest.mark.parametrize(
    ("r2et", "holds"), [(64.0, "here, too, less than half as much"), (66.0, "here, too"),
                        (90.0, "here, too, more than twice as much"), (60.4, "even here"),
                        (50.0, "not here")],
)  # fmt: skip
def test_gains_are_compared_in_size_where_both_gain(r2et, holds):
    assert verdict(rows(vanilla=60, r2et=r2et, r2et_mm_nh=1, sp=65), GAINS).holds == holds


def test_both_answers_are_told():
    assert set(AGREEMENT) == {(a, b) for a in ANSWERS for b in ANSWERS}
    assert len(set(AGREEMENT.values())) == len(AGREEMENT)
    assert AGREEMENT["even", "no"] == "not here; even in the papers"
    assert [ahead(x) for x in (0.5, -0.5, 0.4, -0.4)] == ["yes", "no", "even", "even"]
    assert [size(10, x) for x in (5, 4.9, 21)] == [
        "",
        ", less than half as much",
        ", more than twice as much",
    ]
    assert [above(0.5)(0.6), above(0.5)(0.5)] == ["yes", "no"]
    assert [at_most(0.02)(0.02), at_most(0.02)(0.03)] == ["yes", "no"]
    assert [no_worse(-1)(x) for x in (-0.1, 0.02, 0.03)] == ["yes", "yes", "no"]
    assert [no_worse(1)(x) for x in (0.1, -0.02, -0.03)] == ["yes", "yes", "no"]


ANSWERS = ("yes", "no", "even")


def test_ties_give_no_verdict():
    numbers = {"vanilla": 60, "r2et": 70, "sp": 65}
    assert verdict(rows(**numbers), LEADS) is not None
    assert verdict(rows(tied=("sp",), **numbers), LEADS) is None
    assert verdict(rows(tied=("sp",), **numbers), GAINS) is None
