"""Numbers in the sentences about results are the files', and the words around them hold."""

import json
import re
from functools import cache
from pathlib import Path
from statistics import mean

import pytest
from scipy.stats import rankdata

from r2et.bench.claim import load_claims
from r2et.bench.facts import PLACE, WORDS, Facts
from r2et.bench.figures import PICTURES
from r2et.bench.panel import load_panels
from r2et.bench.papers import papers
from r2et.bench.plots import counted, front, places
from r2et.bench.results import place
from r2et.errors import InputError
from r2et.train.fit import USUAL_STEPS

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "records"
TEXTS = {name: (ROOT / "tools" / name).read_text() for name in ("summary.md", "why.md")}
TABLES = ("adult", "bank", "compas")
VARIANTS = ("r2et", "r2et-mm", "r2et-nh", "r2et-mm-nh")
GROUPS = {
    "variants": VARIANTS,
    "others": ("wd", "sp", "est-h", "exact-h", "ssr", "at", "cl"),
    "additions": ("r2et-ball", "certified"),
}
PERCENT = {"erattack", "mse_attack", "strongattack", "proved", "p@2", "p@5", "retrained", "scratch"}
PLACES = {"erattack": ("table1", 0), "mse_attack": ("table1", 1), "dffot": ("table9", 0)}


@pytest.fixture(scope="module")
def facts():
    names = ("table1", "table2", "table5", "table6", "table7", "table8", "table9")
    claims = {name: load_claims(RECORDS, name) for name in names}
    panels = {name: load_panels(place(RECORDS, name), name) for name in PICTURES}
    return Facts(claims, panels, [RECORDS / "runs", RECORDS / "steps" / "runs"])


@cache
def told(table, data, recipe):
    """A claim as its file has it."""
    return json.loads((RECORDS / table / f"{data}-{recipe}.json").read_text())


def value(table, data, recipe, key):
    """Mean over seeds, in percent where it is a share; None where there is none to compare."""
    path = RECORDS / table / f"{data}-{recipe}.json"
    if not path.exists():
        return None
    claim = told(table, data, recipe)
    some = claim["numbers"][key]
    if not some["seeds"] or claim["unreliable"] or some["below"]:
        return None
    return mean(some["seeds"]) * (100 if key in PERCENT else 1)


def column(table, data, key, names):
    found = {name: value(table, data, name, key) for name in names}
    return {name: x for name, x in found.items() if x is not None}


def panel(figure, data, recipe, folder=RECORDS):
    return json.loads((folder / figure / f"{data}-{recipe}.json").read_text())["values"]


def spearman(steps, values):
    """By hand: the correlation of ranks."""
    a, b = rankdata(steps), rankdata(values)
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / ((a * a).sum() * (b * b).sum()) ** 0.5)


def steps_and(data, recipe, name, every):
    found = []
    for seed in panel("figure4", data, recipe, RECORDS / "steps")["seeds"]:
        pairs = list(zip(seed["first_flip_rows"], seed[f"{name}_rows"], strict=True))
        rows = [(s if s > 0 else 10**9, v) for s, v in pairs if every or s > 0]
        found.append(spearman([s for s, _ in rows], [v for _, v in rows]))
    return found


def gain(values, plain):
    return f"{round(max(values), 1) - round(plain, 1):+.1f}"


def again(name, *of):
    """What a text asks for, from the files and the papers' table alone."""
    if name == "here":
        found = value(*of)
        return f"{found:.1f}" if of[3] in PERCENT else f"{found:.{0 if of[3] == 'sets' else 3}f}"
    if name == "theirs":
        table, index = PLACES[of[3]]
        return f"{papers()[table][of[2]][of[1]][index]:.{1 if of[3] in PERCENT else 2}f}"
    if name == "best":
        found = column(*of[:3], GROUPS[of[3]])
        who = max(found, key=found.get)  # the first of equal ones
        return f"{found[who]:.1f} (`{who}`)"
    if name == "gain":
        return gain(column(*of, VARIANTS).values(), value(of[0], of[1], "vanilla", of[2]))
    if name == "gain_papers":
        table, index = PLACES[of[2]]
        rows = papers()[table]
        some = [rows[n][of[1]][index] for n in VARIANTS]
        return gain(some, rows["vanilla"][of[1]][index])
    if name == "below":
        return "; ".join(told(*of)["unreliable"])
    if name == "most_tied":
        files = (RECORDS / of[0]).glob(f"{of[1]}-*.json")
        return (
            f"{100 * max(json.loads(f.read_text())['numbers'][of[2]]['tied'] for f in files):.0f}"
        )
    if name == "tried":
        some = told("table1", *of)["candidates"]["scratch"]
        return ", ".join(f"{100 * c['precision']:.1f} at {c['changes']['weight']}" for c in some)
    if name in ("moved", "retrained"):
        files = (RECORDS / "table8").glob(f"{of[0]}-*.json")
        names = [f.stem.removeprefix(f"{of[0]}-") for f in files]
        found = column("table8", of[0], "retrained", names)
        plain = found.pop("vanilla")
        return (
            f"{max(abs(x - plain) for x in found.values()):.1f}" if name == "moved" else len(found)
        )
    if name == "length":
        values = panel("lengths", of[0], "vanilla")
        found = mean(dict(zip(values["epochs"], values[of[2]], strict=True))[int(of[1])])
        return f"{found:.3f}" if of[2] == "auc" else f"{100 * found:.1f}"
    if name == "last_point":
        every = [panel("lengths", data, "vanilla") for data in TABLES]
        pairs = [(a, b) for v in every for a, b in zip(v["er"], v["er_last"], strict=True)]
        return f"{max(100 * (mean(b) - mean(a)) for a, b in pairs):.1f}"
    if name == "pairs":
        values = panel("figure9", "bank", of[0])
        by_count = dict(zip(values["counts"], values["precision"], strict=True))
        return f"{100 * mean(by_count[int(of[1])]):.1f}"
    if name == "rho":
        found = steps_and(*of[:3], every=len(of) == 3)
        return f"{mean(found):.2f} ({min(found):.2f} to {max(found):.2f})"
    if name == "apart":
        key = {"auc": "auc_validation", "precision": "precision"}[of[0]]
        one, other = (validations(RECORDS / part / "runs") for part in ("", "steps"))
        most = max(abs(one[n][key] - other[n][key]) for n in one.keys() & other.keys())
        return f"{most:.4f}" if of[0] == "auc" else f"{100 * most:.1f}"
    assert name == "batches"
    return str(USUAL_STEPS)


def validations(folder):
    """What archives have on validation rows, by the names of the records."""
    found = {}
    for file in folder.glob("*.jsonl"):
        for line in filter(None, file.read_text().split("\n")):
            record = json.loads(line)
            if record["task"]["kind"] == "validation":
                found[record["name"]] = record["measured"]
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_every_number_asked_for_is_the_files(name, facts):
    asked = dict.fromkeys(PLACE.findall(TEXTS[name]))
    assert len(asked) > 15
    for words in asked:
        assert facts.look_up(" ".join(words.split())) == again(*words.split()), words


def test_no_number_of_a_measurement_is_typed():
    """What is left in the texts are settings: radius, threshold, weights and the like."""
    text = PLACE.sub("", "".join(TEXTS.values()))
    assert set(re.findall(r"\d+\.\d+", text)) <= {"0.1", "0.5", "0.9"}
    assert "points" in text


def test_a_text_that_asks_for_what_there_is_not(facts):
    for words in ("nothing", "here table1 adult", "here table1 adult nobody erattack", "length x"):
        with pytest.raises(InputError, match="results: a text must ask for one of here, theirs"):
            facts.fill(f"so {{{words}}} it is")
    assert facts.fill("- a\n  b {batches}") == f"- a b {USUAL_STEPS}"
    assert all(callable(getattr(facts, word)) for word in WORDS)


def test_who_leads_under_which_attack():
    def best(table, data, key, group):
        found = column(table, data, key, GROUPS[group])
        return max(found, key=found.get), max(found.values())

    for data, name in (("adult", "sp"), ("compas", "sp")):
        who, most = best("table1", data, "erattack", "others")
        assert who == name
        assert most > best("table1", data, "erattack", "variants")[1] + 0.5
    who, most = best("table1", "bank", "erattack", "others")
    assert who == "wd"
    assert abs(most - best("table1", "bank", "erattack", "variants")[1]) < 0.5
    for table, key in (("table1", "mse_attack"), ("table7", "p@2")):
        assert best(table, "bank", key, "variants")[1] > best(table, "bank", key, "others")[1]
    for data in TABLES:
        strong = [best("table1", data, "strongattack", g)[1] for g in ("others", "variants")]
        assert strong[0] > strong[1]
        assert value("table1", data, "certified", "sets") == 1
        assert value("table1", data, "certified", "proved") > 99
    assert value("table7", "adult", "certified", "p@2") < value("table7", "adult", "sp", "p@2")
    for recipe in ("wd", "sp", "r2et-ball"):
        assert value("table1", "bank", recipe, "sets") < 10


def test_who_is_on_which_front():
    panels = load_panels(RECORDS, "figure7")
    for data in TABLES:
        some = [p for p in panels if p.data == data]
        for name in ("er auc", "er auc_attacked", "strong auc"):
            placed = places(some, name)
            on = [
                {n for n, at in placed.items() if at in front(points, low=False)}
                for points in (counted(some, placed), counted(some, placed, papers=True))
            ]
            assert "certified" in on[0]
            assert on[0].isdisjoint(VARIANTS)
            expected = {"r2et"} if data == "adult" else set()
            if name == "er auc_attacked" and data != "compas":
                expected |= {"r2et-mm"}
            assert on[1] & set(VARIANTS) == expected, (data, name)


def test_what_is_said_of_the_length_of_training():
    """docs/papers.md too: 20 to 30 points from 1 to 50 epochs, and not with every one."""
    for data in TABLES:
        values = panel("lengths", data, "vanilla")
        kept = {e: 100 * mean(x) for e, x in zip(values["epochs"], values["er"], strict=True)}
        assert 19 < kept[1] - kept[50] < 30.5
        assert (kept[2] > kept[1]) is (data in ("bank", "compas"))
    assert "falls by about 20 to 30 points" in (ROOT / "docs" / "papers.md").read_text()


def test_what_is_said_of_thickness(facts):
    answers = {(d, r): facts.follows(d, r) for d in ("adult", "compas") for r in STEPS}
    yes = {("adult", "r2et"), ("adult", "est-h")}
    assert {place for place, answer in answers.items() if answer == "yes"} == yes
    assert {answer for place, answer in answers.items() if place not in yes} == {"no"}
    for data, recipe in answers:
        thick, bent = (steps_and(data, recipe, n, True) for n in ("adversarial", "hessian"))
        every = all(t > 0.5 and t > abs(h) for t, h in zip(thick, bent, strict=True))
        assert every is ((data, recipe) in yes)
    assert sum(rho > 0.5 for rho in steps_and("adult", "r2et", "adversarial", False)) == 2
    assert max(steps_and("adult", "r2et", "adversarial_gap", True)) < 0
    assert max(steps_and("compas", "r2et", "adversarial", True)) < 0.5
    points = {panel("figure4", d, r, RECORDS / "steps")["way_points"] for d, r in answers}
    assert points == {201}


STEPS = ("vanilla", "est-h", "r2et")


def test_what_is_said_of_weights_and_retraining(facts):
    for data, recipe in (("bank", "r2et"), ("bank", "r2et-mm"), ("adult", "r2et-nh")):
        claim = told("table1", data, recipe)
        weights = [c["changes"]["weight"] for c in claim["candidates"]["scratch"]]
        assert claim["chosen"]["weight"] == weights[-1] == 0.1
    for recipe in VARIANTS:
        for data in TABLES:
            tried = told("table1", data, recipe)["candidates"]["scratch"]
            assert max(c["changes"]["weight"] for c in tried) == 0.1
    assert facts.retrained("adult") == "0"
    assert int(facts.retrained("bank")) > 5
    below = {r for r in VARIANTS if told("table1", "compas", r)["unreliable"]}
    assert below == {"r2et-nh", "r2et-mm-nh"}
    theirs = {r: papers()["table1"][r]["compas"][0] for r in VARIANTS}
    assert max(theirs, key=theirs.get) == "r2et-mm-nh"


def test_what_is_said_of_the_rest():
    for key in ("erattack", "mse_attack", "strongattack"):
        same = [told("table1", "compas", r)["numbers"][key]["seeds"] for r in ("r2et", "r2et-mm")]
        assert same[0] == same[1]
    for data in TABLES:
        near = [told("table1", data, r)["numbers"]["erattack"]["seeds"] for r in ("exact-h", "ssr")]
        assert abs(mean(near[0]) - mean(near[1])) < 0.025
        for recipe in ("vanilla", "r2et", "sp"):
            both = [value("table6", data, recipe, f"{a}auc,_er") for a in "ca"]
            assert both[0] > both[1]
        assert papers()["table9"]["vanilla"][data][0] < value("table9", data, "vanilla", "dffot")
    for recipe in ("r2et-nh", "r2et-mm-nh"):
        values = panel("figure9", "bank", recipe)["precision"]
        assert mean(values[7]) < mean(values[0])
    names = [f.stem for f in (RECORDS / "table1").glob("adhd-frontal-*.json")]
    found = column("table1", "adhd-frontal", "erattack", [n[13:] for n in names])
    assert max(found, key=found.get) == "sp"
    assert max(found.values()) < 3
    small = column("table1", "cifar10-10k", "erattack", ("r2et", "r2et-nh", "est-h"))
    assert round(max(small.values()), 1) <= round(
        value("table1", "cifar10-10k", "vanilla", "erattack"), 1
    )
    assert value("table1", "oct-kermany-64", "r2et", "sets") == 1
    assert not (RECORDS / "figure5").exists()
    assert not (RECORDS / "figure3" / "mnist-r2et-mm.json").exists()
