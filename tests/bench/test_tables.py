"""Tables made of claims: who wins, what is significant, what is missing; the papers' figures."""

import html
import json
from dataclasses import replace
from inspect import signature

import pytest

import bench_method
from bench_run import main
from r2et.bench.candidates import TABLE_CANDIDATES
from r2et.bench.claim import Claim, SeedValues, load_claims, save_claims
from r2et.bench.figure_plans import FIGURES
from r2et.bench.grid import Grid, SelectedTrainings
from r2et.bench.measure_task import MeasureTask
from r2et.bench.paper_tables import TABLE_NAMES, TABLE_SPECS, table_spec
from r2et.bench.papers import (
    ADDITIONS,
    OTHER_METHODS,
    R2ET_VARIANTS,
    is_r2et_family,
    paper_tables,
    reported_value,
)
from r2et.bench.record import Record
from r2et.bench.registry import BENCHMARKS, dataset_title
from r2et.bench.result_table import make_table
from r2et.bench.table_formats import LEGEND, latex, legend, markdown, missing, page, tex
from r2et.bench.table_plan import COARSE, LOST, ResultColumn, TableSpec, gathered, precision
from r2et.bench.train_task import TrainTask
from r2et.errors import InputError
from r2et.train import RECIPES, fit
from r2et.train.fit import RETRAINING_EPOCHS
from r2et.train.protocol import SLACK

SPEC = TableSpec(
    "table1",
    "Title",
    (precision("P", "er", None), ResultColumn("AUC", "clean", "auc", higher=None)),
)
MADE = {
    "r2et": "0",
    "torch": "2",
    "python": "3",
    "machine": "m",
    "date": "2026-01-01",
    "seconds": 9,
}


def claim(recipe, seeds, rows=(), below=(), auc=0.9, **more):
    numbers = {"p": SeedValues(tuple(seeds), rows=tuple(rows), **more), "auc": SeedValues((auc,))}
    settings = {"k": 8, "seeds": len(seeds), "epochs": None, "rows": None}
    return Claim("table1", "adult", recipe, {}, tuple(below), numbers, settings, MADE)


def made(*claims, spec=SPEC):
    return make_table(spec, "adult", "adult", claims)


def marks(table):
    return {row.recipe: (row.numbers[0].mark, row.numbers[0].dagger) for row in table.rows}


def test_winner_runner_up_and_who_does_not_race():
    table = made(
        claim("vanilla", [0.5, 0.7]),
        claim("sp", [0.8, 0.8]),
        claim("r2et", [0.9, 0.9]),
        claim("at", [1.0, 1.0], below=["validation AUC 0.5, below the threshold 0.8"]),
        claim("linear", [1.0, 1.0]),
    )
    by_recipe = marks(table)
    assert by_recipe["r2et"][0] == "best"
    assert by_recipe["sp"][0] == "second"
    assert by_recipe["vanilla"][0] == by_recipe["at"][0] == by_recipe["linear"][0] == ""
    assert table.rows[0].numbers[0].text == "60.0 ± 10.0"
    assert "at°" in latex(table).replace(r"$^\circ$", "°")
    assert "° at: validation AUC 0.5, below the threshold 0.8." in missing(table)
    assert [row.numbers[1].mark for row in table.rows] == [""] * 5


def test_equal_values_share_a_place():
    by_recipe = marks(made(claim("sp", [0.9]), claim("r2et", [0.9]), claim("wd", [0.8])))
    assert by_recipe["sp"][0] == by_recipe["r2et"][0] == "best"
    assert by_recipe["wd"][0] == "second"
    by_recipe = marks(made(claim("sp", [0.9]), claim("r2et", [0.0])))
    assert by_recipe["r2et"][0] == ""


def test_less_is_better_where_it_is():
    low = TableSpec("t", "T", (replace(SPEC.columns[0], higher=False), SPEC.columns[1]))
    assert marks(made(claim("sp", [0.9]), claim("r2et", [0.1]), spec=low))["r2et"][0] == "best"


APART = [0.9, 0.8, 0.9, 0.8, 0.9, 0.8], [0.7, 0.65, 0.7, 0.6, 0.7, 0.6]


def test_the_dagger_needs_rows_that_differ_all_the_same_way():
    high, low = [0.85, 0.84], [0.66, 0.65]
    by_recipe = marks(made(claim("r2et", high, APART[0]), claim("sp", low, APART[1])))
    assert by_recipe["r2et"] == ("best", "†")
    by_recipe = marks(made(claim("r2et", low, APART[1]), claim("sp", high, APART[0])))
    assert by_recipe["sp"] == ("best", "†")
    mixed = [0.9, 0.1, 0.8, 0.2, 0.9, 0.3], [0.1, 0.9, 0.2, 0.8, 0.3, 0.7]
    by_recipe = marks(
        made(claim("r2et", [0.53, 0.53], mixed[0]), claim("sp", [0.5, 0.5], mixed[1]))
    )
    assert by_recipe["r2et"] == ("best", "")


def test_the_dagger_needs_every_seed():
    """Rows of the same networks are no new networks."""
    other = claim("sp", [0.6, 0.6], APART[1])
    assert marks(made(claim("r2et", [1.0, 0.59], APART[0]), other))["r2et"] == ("best", "")
    assert marks(made(claim("r2et", [0.9, 0.61], APART[0]), other))["r2et"] == ("best", "†")
    one = made(claim("r2et", [0.9], APART[0]), claim("sp", [0.6], APART[1]))
    assert marks(one)["r2et"] == ("best", "")


def test_our_additions_have_a_dagger_of_their_own():
    """The papers' R2ET is compared with the papers' other methods, whatever we add."""
    rows = [claim("r2et", [0.5, 0.5], APART[1]), claim("sp", [0.8, 0.8], APART[0])]
    higher = [row + 0.05 + 0.01 * (i % 2) for i, row in enumerate(APART[0])]
    by_recipe = marks(made(*rows, claim("certified", [0.9, 0.9], higher)))
    assert by_recipe == {"r2et": ("", ""), "sp": ("second", "†"), "certified": ("best", "‡")}
    by_recipe = marks(made(*rows, claim("certified", [0.7, 0.7], APART[1])))
    assert by_recipe["certified"] == ("second", "")


def test_what_rests_on_ties_is_marked_and_not_compared():
    table = made(claim("r2et", [0.9], tied=0.06), claim("sp", [0.8], tied=0.05), claim("wd", [0.7]))
    assert marks(table) == {"r2et": ("", ""), "sp": ("best", ""), "wd": ("second", "")}
    for text in (markdown(table), latex(table), page("Title", [table])):
        assert "90.0?" in text
        assert "80.0?" not in text


def test_every_format_says_what_its_marks_mean():
    picked = replace(claim("wd", [0.6, 0.6], APART[1]), chosen={"weight_decay": 0.125})
    added = [row + 0.05 + 0.01 * (i % 2) for i, row in enumerate(APART[0])]
    rows = [picked, claim("r2et", [0.8, 0.8], APART[0], reported=0.8), claim("linear", [1.0, 1.0])]
    rows += [claim("at", [0.5, 0.5], below=["low"]), claim("sp", [0.5, 0.5], tied=0.5)]
    table = made(*rows, claim("certified", [0.9, 0.9], added))
    assert legend([table]) == LEGEND
    for line in LEGEND:
        assert tex(line) in latex(table)
        assert html.escape(line) in page("Title", [table])
    for text in (latex(table), page("Title", [table])):
        assert "0.125" in text
    assert r"\label{tab:table1-adult}" in latex(table)
    assert "needs \\usepackage{booktabs}" in latex(table)
    (caption,) = (line for line in latex(table).splitlines() if "caption" in line)
    assert caption == r"\caption{Title, adult.}"


def test_nothing_is_said_of_marks_that_no_row_has():
    plain = made(claim("wd", [0.7]), claim("r2et", [0.9]))
    assert legend([plain]) == ("Bold: the best; underlined: the next.",)
    assert legend([]) == legend([made(claim("wd", [], failed="late"))]) == ()
    two = made(claim("linear", [0.7]), claim("sp", [0.9], tied=0.9))
    (line,) = legend([plain, two])
    assert "Not compared: the linear model and numbers marked ? (more" in line
    assert "°" not in line
    assert "†" not in line
    (_, tested) = legend(
        [made(claim("r2et", [0.9, 0.9], APART[0]), claim("sp", [0.5] * 2, APART[1]))]
    )
    assert tested.startswith(
        "† the better of the papers' best R2ET and the best other method. It needs"
    )
    for text in (latex(plain), page("Title", [plain])):
        assert "dagger" not in text
        assert "Not compared" not in text


def test_what_is_missing_and_what_is_doubted_is_said_in_every_format():
    failed = claim("ssr", [], failed="ssr is for tables")
    doubted = claim("wd", [0.8], unreliable=("3 of 9 rows have equal scores",))
    table = made(failed, doubted, claim("r2et", [0.9], reported=0.875))
    for text in (markdown(table), latex(table), page("Title", [table])):
        assert "ssr P: ssr is for tables." in text
        assert "wd P: 3 of 9 rows have equal scores." in text
    assert "<sub>0.9</sub>" in markdown(table)
    assert "| `r2et` |  | **90.0** <sub>0.9</sub> |" in markdown(table)


def test_latex_escapes_and_html_escapes():
    table = replace(made(claim("r2et", [0.9])), data="50 % & <b>_x")
    assert r"50 \% \& <b>\_x" in latex(table)
    assert "50 % &amp; &lt;b&gt;_x" in page("T", [table])


def test_the_leaderboard_is_ordered_by_proof_then_attack():
    def entry(recipe, proved, strong, below=()):
        numbers = {"proved": SeedValues((proved,)), "strongattack": SeedValues((strong,))}
        numbers |= {"cauc": SeedValues((0.9,)), "sets": SeedValues((3,))}
        settings = {"k": 8, "seeds": 1, "epochs": None, "rows": None}
        return Claim("leaderboard", "adult", recipe, {}, below, numbers, settings, MADE)

    some = [entry("a", 0.0, 0.7), entry("b", 0.5, 0.2), entry("c", 0.0, 0.9)]
    some.append(entry("d", 1.0, 1.0, ("validation AUC below",)))
    table = make_table(TABLE_SPECS["leaderboard"], "adult", "adult", some)
    assert [row.recipe for row in table.rows] == ["b", "c", "a", "d"]


def test_claims_come_back_as_they_were_and_others_are_refused(tmp_path):
    mine = claim("r2et", [0.5, 0.25], [0.5, 1.0], unreliable=("why",))
    save_claims([mine], tmp_path)
    assert load_claims(tmp_path, "table1") == [mine]
    path = tmp_path / mine.name
    for text in ("{", "[]", '{"format": "other"}', json.dumps({"format": "r2et-claim/1"})):
        path.write_text(text)
        with pytest.raises(InputError, match="bench: a claim must be a file of r2et bench, got"):
            load_claims(tmp_path, "table1")


def test_the_papers_figures():
    assert reported_value("table1", "adult", "r2et-nh", 0) == 97.5
    assert reported_value("table1", "cifar10", "r2et-mm", 0) == 78.0
    assert reported_value("table1", "adhd", "r2et", 0) == 71.6
    assert reported_value("table8", "bank", "exact-h", 1) is None
    assert reported_value("table1", None, "r2et", 0) is None
    assert reported_value("table1", "mnist", "ssr", 0) is None
    for table, rows in paper_tables().items():
        assert set(rows) <= set(RECIPES), table
        lengths = {len(numbers) for row in rows.values() for numbers in row.values()}
        assert len(lengths) == 1, table
    # The second number of Table 8's scratch column is Table 1's first.
    for recipe in ("vanilla", "wd", "r2et", "est-h"):
        assert (
            paper_tables()["table8"][recipe]["adult"][0]
            == paper_tables()["table1"][recipe]["adult"][0]
        )


def test_every_case_and_every_table_fit_together():
    # Made for another radius and another network than the papers'.
    own = {"certified-individual", "r2et-reasons", "certified-reasons"}
    assert set(TABLE_CANDIDATES) == set(RECIPES) - own
    for own in BENCHMARKS.values():
        assert set(own.candidates) <= set(RECIPES)
    for name in TABLE_NAMES:
        keys = [part.key for part in table_spec(name, "mnist").columns]
        assert len(set(keys)) == len(keys)
    assert dataset_title("adhd-frontal") == "adhd-frontal (stands in for the papers' BP)"
    assert BENCHMARKS["adhd-frontal"].paper is BENCHMARKS["oct-kermany-64"].paper is None


def test_somebody_elses_method_and_recipe(tmp_path):
    names = ("vanilla", "bench_method:Short", "bench_method:LONGER", "bench_method:HEAVY")
    grid = Grid(("adult",), names, seeds=1, epochs=1, rows=8, steps=5)
    table = main(tmp_path, grid=grid, name="table9").tables[0]
    assert sorted(row.recipe for row in table.rows) == sorted(names)
    aucs = {row.recipe: row.numbers[3].text for row in table.rows}
    assert len(set(aucs.values())) == 4
    (path,) = (tmp_path / "records").glob("adult-bench_method.Short-train*")
    config = json.loads(path.read_text())["config"]
    assert config["settings"] == bench_method.Short().config()
    assert (config["settings"]["name"], config["settings"]["steps"]) == ("Short", 60)


def test_what_was_not_measured_leads_no_leaderboard():
    board = replace(SPEC, order=("p",))
    gone = claim("r2et", [], failed="it crashed")
    low = claim("sp", [1.0], below=["too low"])
    table = made(gone, low, claim("wd", [0.1]), claim("at", [0.9]), spec=board)
    assert [row.recipe for row in table.rows] == ["at", "wd", "r2et", "sp"]


def test_methods_of_others_are_no_kin():
    assert is_r2et_family("r2et-mm")
    assert is_r2et_family("certified")
    assert not is_r2et_family("r2et_mine:R2ET")
    groups = (*R2ET_VARIANTS, *ADDITIONS, *OTHER_METHODS, "vanilla", "linear")
    assert sorted(groups) == sorted(RECIPES)
    printed = {name for rows in paper_tables().values() for name in rows}
    assert printed == {*R2ET_VARIANTS, *OTHER_METHODS, "vanilla"}


def test_a_number_that_does_not_race():
    low = claim("r2et", [1.0, 1.0])
    low.numbers["p"] = replace(low.numbers["p"], below="validation AUC 0.5 of the retrained")
    table = made(low, claim("sp", [0.5, 0.5]), claim("wd", [0.4, 0.4]))
    assert marks(table) == {"r2et": ("", ""), "sp": ("best", ""), "wd": ("second", "")}
    assert any("of the retrained" in line for line in missing(table))


def test_rows_of_other_settings_are_named():
    quick = claim("sp", [0.5])
    quick = replace(quick, settings={**quick.settings, "steps": 20, "rows": 8})
    notes = "\n".join(made(claim("vanilla", [0.4, 0.5]), quick).notes)
    assert "1 or 2 seeds, mean ± half the range" in notes
    assert "Not as usual: rows 8 of sp.\n" in notes
    assert "Not as usual: steps 20 of sp.\n" in notes


def test_the_threshold_is_every_seeds():
    """Each is compared with Vanilla of the same seed."""
    trains = tuple(TrainTask("adult", "r2et", seed=seed) for seed in range(3))
    aucs = (0.9, 0.85, 0.8, 0.905, 0.87, 0.8)
    records = [Record({}, {"auc_validation": a}) for a in aucs]
    selected = SelectedTrainings(trains, slack=0.01)
    assert [(t.recipe, t.seed) for t in selected.compared[3:]] == [("vanilla", s) for s in range(3)]
    sentence = "validation AUC 0.8500 with seed 1, below the threshold 0.8600"
    assert selected.below(records) == (sentence,)
    assert replace(selected, slack=0.03).below(records) == ()
    assert replace(selected, unreliable=("why",)).below(records) == ("why",)


def driven(plan, low, retrained_low=(), unmoved=()):
    """A plan's end, with made-up records; low: seeds whose training is not accurate enough.

    unmoved: seeds of which a retraining keeps no epoch.
    """

    def record(task):
        config = task.config()
        if config["name"] == "choice":
            again = task.tried[0].of.retrain
            why = tuple(retrained_low) if again else ()
            return Record(config, {"index": 0}, unreliable=why, name=task.name)
        if config["name"] == "train":
            bad = task.recipe != "vanilla" and not task.retrain and task.seed in low
            kept = -1 if task.retrain and task.seed in unmoved else 3
            auc = 0.8 if bad else 0.9
            return Record(config, {"auc_validation": auc, "epoch_kept": kept}, name=task.name)
        if config["name"] == "validation":
            measured = {"auc_validation": 0.9, "precision": 0.5}
            return Record(config, measured, name=task.name)
        measured = {"precision": 0.5, "precision_rows": [0.5, 0.5], "auc": 0.9, "auc_attacked": 0.9}
        return Record(config, measured, name=task.name)

    try:
        wanted = next(plan)
        while True:
            wanted = plan.send([record(task) for task in wanted])
    except StopIteration as end:
        return end.value


def test_a_seed_below_the_threshold_takes_its_row_out_of_the_race():
    grid = Grid(("adult",), ("wd",), seeds=2)
    sentence = "validation AUC 0.8000 with seed 1, below the threshold 0.8900"
    for plan in (table_spec("table8", "adult").plan, FIGURES["figure7"].plan):
        assert driven(plan(grid, "adult", "wd"), low={1}).unreliable == (sentence,)
        assert driven(plan(grid, "adult", "wd"), low=()).unreliable == ()


def test_a_retrained_choice_below_the_threshold_takes_its_numbers_out():
    grid = Grid(("adult",), ("wd",), seeds=2)
    claim = driven(table_spec("table8", "adult").plan(grid, "adult", "wd"), (), ["too low"])
    assert claim.unreliable == ()
    assert {key: some.below for key, some in claim.numbers.items()} == {
        "scratch": "",
        "retrained": "too low",
        "cauc,_scratch": "",
        "cauc,_retrained": "too low",
    }
    assert claim.chosen == {"weight_decay": 1e-4, "retrained weight_decay": 1e-4}
    assert not claim.races("retrained")


def test_a_retraining_that_kept_nothing_is_no_number():
    grid = Grid(("adult",), ("wd",), seeds=3)
    plan = table_spec("table8", "adult").plan
    numbers = driven(plan(grid, "adult", "wd"), (), unmoved={0, 2}).numbers
    sentence = "no epoch kept Vanilla's ranking or AUC (seeds 0, 2), so it is Vanilla still"
    assert {key: some.failed for key, some in numbers.items()} == {
        "scratch": None,
        "retrained": sentence,
        "cauc,_scratch": None,
        "cauc,_retrained": sentence,
    }
    assert driven(plan(grid, "adult", "wd"), ()).numbers["retrained"].failed is None
    cl = driven(table_spec("table1", "adult").plan(grid, "adult", "cl"), (), unmoved={1}).numbers
    assert all("(seed 1)" in some.failed for some in cl.values())


def test_vanilla_is_no_retraining():
    again = replace(SPEC, columns=(replace(SPEC.columns[0], retrain=True), SPEC.columns[1]))
    assert marks(made(claim("vanilla", [0.9]), claim("wd", [0.5]), spec=again)) == {
        "vanilla": ("", ""),
        "wd": ("best", ""),
    }


def test_thickness_at_few_points_is_said_to_be_an_upper_estimate():
    columns = {column.key: column for column in table_spec("table5", "adult").columns}
    coarse, fine = (
        Record({}, {"adversarial": 0.5, "gap": 0.1, "points": n}, name=f"of {n}") for n in (10, 201)
    )
    assert gathered(columns["thickness"], [fine, coarse], None).unreliable == (COARSE.format(10),)
    assert gathered(columns["thickness"], [fine], None).unreliable == ()
    assert gathered(columns["mean_gap"], [coarse], None).unreliable == ()


def test_the_numbers_of_a_column_are_those_of_its_seeds():
    column = precision("P", "er", None)
    first = {"precision": 0.5, "precision_rows": [0.0, 1.0], "tied_rows": 1, "rows": 2}
    second = {"precision": 0.25, "precision_rows": [0.5, 0.0], "tied_rows": 0, "rows": 2}
    records = [Record({}, measured, name=name) for name, measured in (("a", first), ("b", second))]
    values = gathered(column, records, 0.9)
    assert values.seeds == (0.5, 0.25)
    assert values.rows == (0.25, 0.5)
    assert (values.records, values.reported, values.tied) == (("a", "b"), 0.9, 0.5)
    assert gathered(column, [records[0], Record({}, failed="why")], None).failed == "why"
    assert gathered(column, [Record({}, {"precision": None})], None).failed is not None


def test_rows_that_an_attack_loses_put_its_precision_in_doubt():
    column = precision("P", "er", None)
    measured = {"precision": 0.9, "precision_rows": [0.8, 1.0], "rows": 2}
    few, many = (Record({}, {**measured, "sensitivity": lost}, name="a") for lost in (0.02, 0.41))
    assert gathered(column, [few], None).unreliable == ()
    assert gathered(column, [few, many], None).unreliable == (LOST.format(0.41),)
    assert "41% of the rows lost their prediction" in LOST.format(0.41)


def test_the_page_names_how_a_retraining_stops():
    about = table_spec("table8", "adult").about
    assert f"falls below {signature(fit).parameters['agree'].default}" in about
    assert f"for {RETRAINING_EPOCHS} epochs at most" in about
    assert f"the AUC by more than {SLACK}" in about


def test_a_retraining_takes_a_tenth_of_the_learning_rate():
    for recipe in ("r2et", "wd"):
        scratch, again = (TrainTask("adult", recipe, retrain=retrain) for retrain in (False, True))
        usual = RECIPES[recipe].lr
        assert scratch.settings(RECIPES[recipe]).lr == usual
        assert again.settings(RECIPES[recipe]).lr == pytest.approx(usual / 10)


@pytest.mark.slow
def test_what_cannot_be_retrained_or_only_that(tmp_path):
    grid = Grid(("adult",), ("vanilla", "cl", "sp", "linear"), seeds=1, epochs=1, rows=8, steps=5)
    (table,) = main(tmp_path, grid=grid, name="table8").tables
    why = {row.recipe: tuple(number.why for number in row.numbers[:2]) for row in table.rows}
    assert why["vanilla"] == ("", "")
    assert why["cl"] == ("cl is for retraining", "")
    assert why["sp"] == ("", "softplus changes the network, so nothing is retrained")
    assert why["linear"] == ("", "a linear model has no network of Vanilla's to start from")


@pytest.mark.parametrize(
    ("kind", "options", "retrain", "table", "number"),
    [
        ("er", {}, False, "table1", 84.2),
        ("er", {"rows": 5, "steps": 3}, False, "table1", 84.2),
        ("mse", {}, False, "table1", 99.7),
        ("er", {"k": 2}, False, "table7", paper_tables()["table7"]["vanilla"]["compas"][0]),
        (
            "er",
            {"explainer": "smoothgrad"},
            False,
            "table2",
            paper_tables()["table2"]["vanilla"]["compas"][1],
        ),
        ("er", {}, True, "table8", 84.2),
        ("er", {"constraint": "gda", "share": 1.0}, False, None, None),
        ("er", {"keep": "last"}, False, None, None),
        ("strong", {}, False, None, None),
        (
            "thickness",
            {"hessian": True},
            False,
            "table5",
            paper_tables()["table5"]["vanilla"]["compas"][1],
        ),
        ("mse", {"k": 2}, False, None, None),
    ],
)
def test_a_record_has_the_papers_figure_of_the_same_thing(kind, options, retrain, table, number):
    of = TrainTask("compas", "vanilla", retrain=retrain)
    reported = MeasureTask(of, kind, tuple(options.items())).reported() or {}
    assert reported.get("table") == table
    assert reported.get("adversarial" if kind == "thickness" else "precision") == number


def test_settings_are_numbers_words_and_what_is_so():
    chosen = {"ends": "worst", "every": 2.0, "free": True, "weight": 0.05}
    picked = replace(claim("r2et-ball", [0.6, 0.6], APART[1]), chosen=chosen)
    assert Claim.from_json(picked.to_json(), "x").chosen == chosen
    for text in (markdown(made(picked)), latex(made(picked)), page("Title", [made(picked)])):
        assert "ends worst, every 2, free, weight 0.05" in text
