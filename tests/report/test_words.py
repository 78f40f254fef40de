"""Figures and sentences, each against what a reader should see."""

import re

import pytest

from audits import audit, skipped, tabular
from r2et import wording as numbers
from r2et.report.page import html
from r2et.report.rows import _bracket
from r2et.report.shares import (
    Shares,
    class_count,
    correlation,
    pairs,
    shares_at_radius,
)
from r2et.report.summary_table import cards, span, written
from r2et.report.words import cautions, listed, sets, verdict
from r2et.results import FIGURES, UNITS
from r2et.wording import lowered

NB = numbers.SPACE


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.86599, "86.5"), (0.865, "86.5"), (0.57, "57"), (0.9999, "99.9"), (1, "100"), (0, "0"),
     (0.0004, "0.04"), (1e-6, "near 0")],
)  # fmt: skip
def test_what_is_proved_is_rounded_down(value, text):
    assert numbers.proved_percent(value) == f"{text}{NB}%"
    assert numbers.proved_percent(None) == "not measured"
    for name in ("certified_share", "certified_precision"):
        assert UNITS[FIGURES[name].unit].page(value) == f"{text}{NB}%"


def test_a_proved_radius_at_the_limit_is_a_bound():
    whole = audit()
    whole["settings"]["limit"] = 0.3
    radius = FIGURES["radius_certified_median"]
    for low, value, high, text, interval in (
        (0.1, 0.2, 0.25, "0.2", "0.1 to 0.25"),
        (0.1, 0.2, 0.3, "0.2", "0.1 to at least 0.3"),
        (0.3, 0.3, 0.3, "at least 0.3", ""),
    ):
        ends = {f"{radius.name}_low": low, radius.name: value, f"{radius.name}_high": high}
        whole["summary"] |= ends
        assert (written(whole, radius), span(whole, radius)) == (text, interval)


def test_folds_are_called_folds():
    whole = audit()
    whole["summary"] |= {"auc_linear_low": 0.84, "auc_linear_high": 0.89}
    linear = FIGURES["auc_linear"]
    assert span(whole, linear) == "folds: 0.840 to 0.890"
    clean = FIGURES["auc_clean"]
    assert span(whole, clean) == "0.864 to 0.884"


def test_classes_are_counted_by_what_the_audit_shows():
    whole = audit()
    assert class_count(whole) == 2
    assert class_count(whole | {"classes": ["a", "b", "c"]}) == 3
    whole["rows"]["target"][0] = 9
    assert class_count(whole | {"classes": None}) == 10
    assert class_count(whole | {"class_count": 12}) == 12


def test_no_radius_is_written_that_was_not_proved():
    assert numbers.apart(0.19876, 0.25) == ("0.198", "0.25")
    assert [lowered(r) for r in (0.19876, 1999.0, 2e-7, 0.0)] == [0.198, 1990.0, 2e-7, 0.0]
    # A certificate is given a hair below what it proved.
    assert lowered(0.3 * (1 - 1e-6)) == 0.3
    row = {"radius_certified": 0.19876, "radius_attacked": None, "steps": []}
    assert _bracket(row, None)[0] == ["Proved up to", "0.198"]
    assert _bracket(row | {"radius_certified": None}, None)[0] == ["Proved up to", numbers.NONE]
    assert _bracket(row | {"radius_certified": 0.0}, None)[0] == ["Proved up to", "0"]


def at(proved, unknown, broken, proof=True, attack=True):
    return Shares(proved, unknown, broken, proof, attack, 100, 0)


@pytest.mark.parametrize(
    ("k", "radius", "shares", "clauses"),
    [
        (8, 0.1, at(0.93, 0.03, 0.04), ["change of 0.1,.* 8 reasons are proved.* 93 % of rows;",
                                        "attack changed them for 4 %;", "for 3 % nobody knows"]),
        (8, 0.1, at(1.0, 0.0, 0.0), ["proved.* for all rows;", "changed them for none;", "no row"]),
        (1, 0.25, at(0.0, 0.5, 0.5), ["change of 0.25, the strongest reason is proved.* for no row",
                                      "attack changed it for 50 %;", "for 50 % nobody knows"]),
        (8, 1.0, at(0.0, 0.96, 0.04, proof=False), ["attack changed the 8 reasons for 4 % of rows;",
                                                    "nothing was proved: for 96 % nobody knows"]),
        (8, 1.0, at(0.5, 0.5, 0.0, attack=False), ["8 reasons are proved.* for 50 % of rows;",
                                                   "no attack was run: for 50 % nobody knows"]),
        (8, None, at(0.0, 1.0, 0.0, proof=False, attack=False), ["Neither a proof nor an attack",
                                                                 "nobody knows.* 8 reasons"]),
    ],
)  # fmt: skip
def test_the_verdict_says_how_many_rows_are_proved_broken_and_open(k, radius, shares, clauses):
    sentence = verdict({"k": k, "radius": radius}, shares).replace(NB, " ")
    assert re.search(".*".join(clauses), sentence), sentence


def rows(radius=0.1, **columns):
    return {"summary": {"radius": radius}, "rows": columns}


def test_shares_count_rows_one_by_one():
    found = shares_at_radius(
        rows(
            radius_certified=[0.1, 0.05, 0.0, 0.3],
            radius_attacked=[0.2, 0.07, None, None],
            precision_strong=[1.0, 0.5, 1.0, 1.0],
        )
    )
    assert (found.proved, found.unknown, found.broken) == (0.5, 0.25, 0.25)
    assert (found.rows, found.conflicts, found.proof, found.attack) == (4, 0, True, True)


def test_the_strong_attack_breaks_where_the_nearest_change_was_not_searched():
    found = shares_at_radius(rows(precision_strong=[0.9, 1.0], radius_attacked=[None, None]))
    assert (found.broken, found.unknown, found.proof) == (0.5, 0.5, False)


def test_without_the_strong_attack_a_missing_radius_means_none_found():
    found = shares_at_radius(rows(radius_attacked=[0.05, None, 0.2]))
    assert (found.broken, found.rows, found.attack) == (pytest.approx(1 / 3), 3, True)


def test_rows_that_were_only_half_looked_at_do_not_count():
    found = shares_at_radius(
        rows(radius_certified=[0.2, 0.2, None], precision_strong=[1.0, None, 0.5])
    )
    assert (found.proved, found.rows) == (1.0, 1)


def test_nothing_measured_is_unknown():
    found = shares_at_radius(skipped())
    assert (found.unknown, found.rows, found.proof, found.attack) == (1.0, 0, False, False)


def test_a_row_that_is_proved_and_broken_is_counted_as_broken_and_called_out():
    found = shares_at_radius(rows(radius_certified=[0.2, 0.2], precision_strong=[0.5, 1.0]))
    assert (found.proved, found.broken, found.conflicts) == (0.5, 0.5, 1)
    assert "report it as a bug" in cautions({}, found)[0]


def test_the_fixture_has_no_conflicts():
    assert shares_at_radius(tabular()).conflicts == 0


def test_cautions_only_where_they_apply():
    shares = at(0.9, 0.1, 0.0)
    good = {"largest_top_k_share": 0.1, "auc_clean": 0.9, "auc_logistic": 0.8}
    assert cautions(good, shares) == []
    assert cautions({}, shares) == []
    (same,) = cautions(good | {"largest_top_k_share": 0.97}, shares)
    assert same.startswith(f"97{NB}% of rows get the same reasons.")
    # One fitted on the audited rows alone is no measure of the model.
    assert cautions(good | {"auc_linear": 0.95}, shares) == []
    (linear,) = cautions(good | {"auc_logistic": 0.898}, shares)
    assert "AUC 0.898 against 0.900), and its reasons never move: consider" in linear
    (several,) = cautions(good | {"auc_logistic": 0.898}, shares, 3)
    assert "AUC 0.898 against 0.900): consider" in several
    (open_,) = cautions(good, at(0, 0.9, 0.1, proof=False))
    assert open_.startswith("Nothing was proved")


def test_every_figure_of_a_summary_has_words():
    own = {"rows", "k", "radius"}
    named = set(FIGURES)
    ends = {n for n in audit()["summary"] if n.endswith(("_low", "_high"))}
    assert set(audit()["summary"]) - own - ends == named


def test_cards_leave_out_what_was_not_measured():
    full, bare = cards(audit()["summary"]), cards(skipped()["summary"])
    assert full[0] == {
        "title": "Accuracy",
        "figure": "0.874",
        "text": "AUC; logistic regression: 0.861",
    }
    assert full[-1]["text"] == f"different sets of reasons; the commonest: 5.7{NB}% of rows"
    assert [c["figure"] for c in bare] == ["not measured"] * 5
    assert [c["text"] for c in bare] == [""] * 5
    assert [c["title"] for c in bare] == [c["title"] for c in full]


def test_listed():
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"


def test_correlation_of_lines_and_of_a_known_case():
    assert correlation([(1, 2), (2, 4), (3, 6)]) == pytest.approx(1)
    assert correlation([(1, -2), (2, -4), (3, -6)]) == pytest.approx(-1)
    assert correlation([(0, 0), (1, 1), (2, 0)]) == 0
    assert correlation([(0.1, 0), (0.1, 1), (0.1, 2)]) is None


def test_pairs_leave_out_what_is_missing_and_draw_at_most_a_thousand():
    assert pairs([1, 2, None, 4], [1, None, 3, 4]) is None
    found = pairs(range(2500), [2 * i for i in range(2500)])
    assert (found.total, len(found.points), found.correlation) == (2500, 834, pytest.approx(1))


MOVES = "2 in age and one category"


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        (
            Shares(0.6, 0.1, 0.3, True, True, 10, 0),
            f"No change of at most 2 in age and one category that keeps the decision alters the 3"
            f" reasons of 60{NB}% of rows: that is proved; for 30{NB}% one was found that does; for"
            f" 10{NB}% nobody knows.",
        ),
        (
            Shares(1.0, 0.0, 0.0, True, True, 10, 0),
            "No change of at most 2 in age and one category that keeps the decision alters the 3"
            " reasons of all rows: that is proved; none was found that does; no row is left open.",
        ),
        (
            Shares(0.0, 0.0, 1.0, True, True, 10, 0),
            "A change of at most 2 in age and one category that keeps the decision was found to"
            " alter the 3 reasons of all rows; no row is proved: no row is left open.",
        ),
        (
            Shares(0.0, 0.5, 0.5, False, True, 10, 0),
            f"A change of at most 2 in age and one category that keeps the decision was found to"
            f" alter the 3 reasons of 50{NB}% of rows; nothing was proved: for 50{NB}% nobody"
            " knows.",
        ),
        (
            Shares(0.0, 1.0, 0.0, False, True, 10, 0),
            "No change of at most 2 in age and one category that keeps the decision was found to"
            " alter the 3 reasons of any row; nothing was proved: nobody knows about any of the"
            " rows.",
        ),
        (
            Shares(0.5, 0.5, 0.0, True, False, 10, 0),
            f"No change of at most 2 in age and one category that keeps the decision alters the 3"
            f" reasons of 50{NB}% of rows: that is proved; no attack was run; for 50{NB}% nobody"
            " knows.",
        ),
    ],
)
def test_the_verdict_of_changes_a_row_could_have(shares, sentence):
    assert verdict({"k": 3, "radius": None}, shares, MOVES) == sentence


def test_sets_are_told_apart_from_orders():
    proved = shares_at_radius(tabular())
    assert "set of reasons" in sets({"k": 3}, proved)
    assert sets({"k": 1}, proved) == ""
    assert "as a set" in FIGURES["certified_share"].line
    assert "they may change places" in html([tabular()])
