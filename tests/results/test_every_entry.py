"""Every entry of an audit by something else: it is refused, or all that is made of it is made."""

import copy
import json

import pytest

from audits import audit, hostile
from mutated import at, only_ours, places
from r2et.audit import Audit
from r2et.report.model_card import model_card
from r2et.report.page import html
from r2et.results import check_audit
from r2et.results.rows_csv import rows_csv

GONE = object()
OTHERS = (
    None, True, -1, 0, 3.5, 1e308, -1e308, 1e-320, 10**400, float("nan"), float("inf"), "", "x",
    "\ud800", "\x00\x1b[2J", "x" * 300, [], {}, [[]], [None], [1, "x"], {"a": None}, {"name": []},
    {"name": "L2", "defaults": 3}, [[[[[]]]]], GONE,
)  # fmt: skip


def small(make=audit):
    """One of everything."""
    whole = make(rows=2, worst=1, ordinary=0) if make is audit else make()
    whole["curve"] = whole["curve"][:2]
    for row in whole["shown"]:
        row["steps"] = row["steps"][:2]
        row["steps"][-1]["changes"] = [
            {"column": "age", "before": "3", "after": "4", "change": "+1", "possible": False}
        ]
    whole["config"] = {"region": {"name": "L2", "radius": 0.1, "bounds": [0, 1], "frozen": [1]},
                       "explainer": {"name": "Own", "k": [1], "defaults": ["k"]}}  # fmt: skip
    whole["figures"] = [{"name": "own", "label": "Own", "unit": "count"}]
    whole["training_rows"] = {"given": 9, "training": 3, "validation": 1, "alike": 1,
                              "included": True, "label": "x"}  # fmt: skip
    whole["skipped"], whole["notes"] = [{"what": "dffot", "why": "no time"}], ["a note"]
    whole["gates"] = [{"name": "dffot", "sign": ">=", "bound": 0.1, "value": 0.2, "end": 0.1,
                       "passed": True, "text": "0.2", "reason": None}]  # fmt: skip
    whole["durations"], whole["class_count"] = {"clean": 0.1}, 2
    whole["proof"], whole["assumptions"] = "Each was tried", "None"
    whole["summary"]["own"] = 3
    whole["settings"] |= {"limit": 0.3, "cutoff": 0.4}
    return whole


def made(found):
    """All that people read."""
    html([found])
    model_card(found)
    rows_csv(found).encode()
    str(Audit(found))
    repr(Audit(found))
    Audit(found)._repr_html_()
    json.dumps(Audit(found).rows)


def changes(whole):
    """Of long lists of numbers the first and the last."""
    for place in list(places(whole))[1:]:
        inner = at(whole, place[:-1])
        if not isinstance(inner, list) or place[-1] in (0, len(inner) - 1):
            for number in range(len(OTHERS)):
                yield place, number


def check(whole, place, number):
    changed = copy.deepcopy(whole)
    inner, other = at(changed, place[:-1]), OTHERS[number]
    if other is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = other
    if only_ours(lambda: check_audit("read_audit", changed)):
        return False
    made(changed)
    return True


def test_some_entries():
    whole = small()
    assert not check(whole, ("rows", "top"), OTHERS.index(3.5))
    assert check(whole, ("names", 0), OTHERS.index("\ud800"))
    listed = list(changes(whole))
    assert len(listed) > 5000
    taken = [check(whole, *change) for change in listed[::401]]
    assert 1 < sum(taken) < len(taken) / 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [audit, hostile])
def test_a_fortieth_of_the_entries(make):
    whole = small(make)
    assert sum(check(whole, *change) for change in list(changes(whole))[7::40]) > 5
