"""Numbers in sentences: each word gives the number of the claims and panels that it names."""

import pytest

from r2et.bench.claim import Claim, SeedValues
from r2et.bench.panel import Panel
from r2et.bench.papers import paper_tables
from r2et.bench.record import Record
from r2et.errors import InputError
from r2et.train.defaults import USUAL_STEPS
from result_pages.figure_tables import follows, lines
from result_pages.text_template import WORDS, TextTemplate


def row(recipe, er, retrained=None, low=(), tied=0.0):
    """A claim of COMPAS with these values of two seeds under ERAttack."""
    numbers = {"erattack": SeedValues(er, tied=tied), "scratch": SeedValues(er)}
    numbers["retrained"] = SeedValues(retrained or ())
    tried = [{"precision": 0.5 + weight, "changes": {"weight": weight}} for weight in (0.1, 0.2)]
    return Claim("table1", "compas", recipe, {}, low, numbers, candidates={"scratch": tried})


def seeds(*thickness, bent=(0.5,) * 4):
    """A panel of rows that flip one after another, a seed for each list."""
    each = [
        {"first_flip_rows": [1, 2, 3, 4], "adversarial_rows": t, "hessian_rows": bent}
        for t in thickness
    ]
    return Panel("figure4", "adult", "r2et", {"way_points": 201, "seeds": each})


UP, DOWN = [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]
LENGTHS = {
    "epochs": [1, 50],
    "auc": [[0.8], [0.9]],
    "er": [[0.7], [0.5]],
    "er_last": [[0.8], [0.75]],
}
CLAIMS = [
    row("vanilla", (0.4, 0.5), (0.45, 0.45)),
    row("r2et", (0.6, 0.7), (0.5, 0.5), tied=0.04),
    row("r2et-nh", (0.9, 0.9), low=("too low",)),
    row("sp", (0.8, 0.8)),
]
PANELS = {
    "lengths": [Panel("lengths", "compas", "vanilla", LENGTHS)],
    "figure4": [seeds(UP, DOWN)],
    "figure9": [Panel("figure9", "bank", "r2et-nh", {"counts": [1], "precision": [[0.5, 0.7]]})],
}
RUNS = [
    {"x-validation-1": Record({}, {"precision": p, "auc_validation": a})}
    for p, a in ((0.5, 0.9), (0.55, 0.88))
]
TEMPLATE = TextTemplate({"table1": CLAIMS, "table8": CLAIMS}, PANELS, RUNS)


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("here table1 compas r2et erattack", "65.0"),
        ("theirs table1 compas r2et erattack", "92.0"),
        ("best table1 compas erattack variants", "65.0 (`r2et`)"),  # the other is too low
        ("best table1 compas erattack others", "80.0 (`sp`)"),
        ("gain table1 compas erattack", "+20.0"),
        ("below table1 compas r2et-nh", "too low"),
        ("most_tied table1 compas erattack", "4"),
        ("tried compas r2et", "60.0 at 0.1, 70.0 at 0.2"),
        ("moved compas", "5.0"),
        ("retrained compas", "1"),
        ("length compas 50 er", "50.0"),
        ("length compas 1 auc", "0.800"),
        ("last_point", "25.0"),
        ("pairs r2et-nh 1", "60.0"),
        ("rho adult r2et adversarial", "0.00 (-1.00 to 1.00)"),
        ("follows adult r2et", "with 1 of 2 seeds"),
        ("apart precision", "5.0"),
        ("apart auc", "0.0200"),
        ("batches", str(USUAL_STEPS)),
    ],
)
def test_every_word(words, number):
    assert TEMPLATE.look_up(words) == number


def test_the_papers_gain_is_their_best_variants():
    rows = {name: row["compas"][0] for name, row in paper_tables()["table1"].items()}
    best = max(rows[name] for name in ("r2et", "r2et-mm", "r2et-nh", "r2et-mm-nh"))
    gain = TEMPLATE.look_up("gain_papers table1 compas erattack")
    assert float(gain) == pytest.approx(best - rows["vanilla"])


def test_a_text_is_filled_and_wrapped():
    assert TEMPLATE.fill("- a\n  b {batches}") == f"- a b {USUAL_STEPS}"
    assert max(map(len, TEMPLATE.fill("word " * 60).splitlines())) <= 100
    assert all(callable(getattr(TEMPLATE, word)) for word in WORDS)


def test_a_text_that_asks_for_what_there_is_not():
    for words in (
        "nothing",
        "here table1 compas",
        "here table1 compas nobody erattack",
        "length x",
    ):
        with pytest.raises(InputError, match="results: a text must ask for one of here, theirs"):
            TEMPLATE.fill(f"so {{{words}}} it is")


def test_thickness_follows_steps_with_every_seed_or_with_some():
    assert follows(seeds(UP, UP)) == "yes"
    assert follows(seeds(UP, DOWN)) == "with 1 of 2 seeds"
    assert follows(seeds(DOWN, DOWN)) == "no"
    assert follows(seeds(UP, bent=DOWN)) == "no"  # the Hessian norm tells as much


def test_figures_as_tables():
    head, rows = lines(seeds(UP, UP))
    assert [row[:3] for row in rows] == [
        ("all", "4, 4 of 4", "1.00 (1.00 to 1.00)"),
        ("those that flip", "4, 4 of 4", "1.00 (1.00 to 1.00)"),
    ]
    assert len(head) == len(rows[0])
    assert lines(PANELS["lengths"][0])[1] == [
        ("1", "0.800", "70.0", "80.0"),
        ("50", "0.900", "50.0", "75.0"),
    ]
    assert lines(PANELS["figure9"][0])[1] == [("1", "60.0 ± 10.0")]
    assert lines(Panel("figure3", "mnist", "wd", {"shown": []})) == ((), [])
