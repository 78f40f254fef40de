"""Every entry of a claim's file is checked, and what is wrong is one sentence."""

import copy
import json

import pytest

from r2et.bench.claim import Claim, SeedValues
from r2et.errors import InputError

CLAIM = Claim(
    "table1", "adult", "r2et", {"weight": 0.1, "warm": True}, ("low",),
    {"p": SeedValues((0.5, 0.6), 0.7, (0.5,), ("a", "b"), None, ("few",), "below", 0.5)},
    {"k": 8, "seeds": 2, "regime": "long", "epochs": None, "weights": [0.1, 0.2], "rules": {}},
    {"r2et": "0.1", "date": "2026-01-01", "seconds": 3.0}, ("c",), ("d",), {"0.1": [0.5]},
)  # fmt: skip
GONE = object()
REFUSED = [
    (("table",), "../x", "it: table is not a name"),
    (("data",), "", "it: data is not a name"),
    (("data",), "[/]", "it: data is not a name"),
    (("recipe",), "[bold]x[/bold]", "it: recipe is not a name"),
    (("recipe",), "a\x1b", "it: recipe is not a name"),
    (("recipe",), GONE, "it: recipe is not there"),
    (("more",), 1, "it: more is not one of table, data"),
    (("chosen",), [], "it: chosen is not an object"),
    (("chosen", "weight"), "0.1", "chosen: weight is not a number, true or a word"),
    (("chosen", "warm"), None, "chosen: warm is not a number, true or a word"),
    (("chosen", "ends"), "[red]worst", "chosen: ends is not a number, true or a word"),
    (("unreliable",), "x", "it: unreliable is not a list of texts"),
    (("unreliable",), [None], "it: unreliable is not a list of texts"),
    (("numbers",), None, "it: numbers is not an object"),
    (("numbers", "p"), [], "numbers: p is not an object"),
    (("numbers", "p", "seeds"), GONE, "numbers.p: seeds is not there"),
    (("numbers", "p", "seeds"), ["x"], "numbers.p: seeds is not a list of numbers"),
    (("numbers", "p", "seeds"), [True], "numbers.p: seeds is not a list of numbers"),
    (("numbers", "p", "seeds"), [float("nan")], "numbers.p: seeds is not a list of numbers"),
    (("numbers", "p", "seeds"), [10**400], "numbers.p: seeds is not a list of numbers"),
    (("numbers", "p", "reported"), "x", "numbers.p: reported is not a number or null"),
    (("numbers", "p", "rows"), [[]], "numbers.p: rows is not a list of numbers"),
    (("numbers", "p", "records"), [1], "numbers.p: records is not a list of texts"),
    (("numbers", "p", "failed"), {}, "numbers.p: failed is not a text or null"),
    (("numbers", "p", "unreliable"), {}, "numbers.p: unreliable is not a list of texts"),
    (("numbers", "p", "below"), 1, "numbers.p: below is not a text"),
    (("numbers", "p", "tied"), 2, "numbers.p: tied is not a share"),
    (("settings",), "x", "it: settings is not an object"),
    (("settings", "k"), "8", "settings: k is not a whole number"),
    (("settings", "seeds"), 1.5, "settings: seeds is not a whole number"),
    (("settings", "regime"), [], "settings: regime is not long or papers"),
    (("settings", "epochs"), {}, "settings: epochs is not a number"),
    (("settings", "by"), 1, "settings: by is not a text"),
    (("settings", "linear"), "no", "settings: linear is not true or false"),
    (("made",), 1, "it: made is not an object"),
    (("made", "date"), GONE, "made: date is not there"),
    (("made", "seconds"), "3", "made: seconds is not a number"),
    (("made", "cpu"), [], "made: cpu is not a text"),
    (("candidates",), [], "it: candidates is not an object"),
]


def test_a_claim_comes_back():
    assert Claim.from_json(CLAIM.to_json(), "x").to_json() == CLAIM.to_json()


@pytest.mark.parametrize(("place", "value", "reason"), REFUSED)
def test_what_is_no_claim(place, value, reason):
    stored = copy.deepcopy(json.loads(CLAIM.to_json()))
    holder = stored
    for key in place[:-1]:
        holder = holder[key]
    if value is GONE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    with pytest.raises(InputError) as caught:
        Claim.from_json(json.dumps(stored), "here.json")
    expected = "bench: a claim must be a file of r2et bench, got here.json (ValueError: "
    assert str(caught.value).startswith(expected + reason)
    assert str(caught.value).isprintable()
