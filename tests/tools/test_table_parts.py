"""The parts of pages about tables: means, counts and budgets against records made by hand."""

import pytest

from result_pages import table_parts

MADE = {"r2et": "0", "torch": "0", "python": "3", "machine": "m", "date": "d"}


def run(recipe, auc, proved=1.0, sets=2, seed=0, *, ranks=False):
    made = {"recipe": recipe, "ranks": ranks, "seed": seed}
    return {**made, "auc": auc, "proved": proved, "sets": sets}


def split(seed, logistic, boosting):
    return {"seed": seed, "logistic": logistic, "boosting": boosting}


TABLES = {
    "near": {
        "rows": [100, 20, 20],
        "features": 5,
        "chosen_by": True,
        "baselines": [split(0, 0.69, 0.80), split(1, 0.71, 0.82)],
        "runs": [
            run("certified", 0.80, 0.5),
            run("certified", 0.81, 1.0, seed=1),
            run("vanilla", 0.815),
        ],
    },
    "far": {
        "rows": [50, 10, 10],
        "features": 3,
        "chosen_by": False,
        "baselines": [split(0, 0.7, 0.9)],
        "runs": [run("certified", 0.695), run("certified", 0.88, 0.25, 4, ranks=True)],
    },
    "none": {"baselines": [split(0, 0.7, 0.9)], "runs": []},
}


def weight(value, drop, half_width, proved):
    return {"weight": value, "drop": drop, "half_width": half_width, "proved": proved}


def case(chosen, *weights):
    about = {"table": "t", "chosen_by": False, "recipe": "certified", "seed": 0}
    return {**about, "chosen": chosen, "plain_trainings": 9.0, "test": list(weights)}


@pytest.fixture
def records(monkeypatch):
    stored = {
        "tables": {**MADE, "proved_rows": 7, "radius": 0.1, "sets_rows": 8, "tables": TABLES},
        "auc_budget": {
            **MADE,
            "max_auc_drop": 0.005,
            "epochs": 3,
            "radius": 0.1,
            "proved_rows": 7,
            "cases": [
                case(1.0, weight(0, 0, 0, 0.0), weight(1.0, 0.004, 0.001, 0.9)),
                # beyond the budget, and surely so; another weight proves more and keeps to it
                case(2.0, weight(1.0, 0.001, 0.001, 0.8), weight(2.0, 0.02, 0.001, 0.7)),
                # beyond it, but perhaps by chance; the better share is not to be had
                case(2.0, weight(1.0, 0.03, 0.001, 0.9), weight(2.0, 0.01, 0.006, 0.7)),
            ],
        },
    }
    monkeypatch.setattr(table_parts, "record", stored.__getitem__)


@pytest.mark.usefixtures("records")
def test_columns_as_ranks_where_the_recipe_is_far_from_boosting():
    lines = table_parts.tables_ranks().splitlines()
    assert lines[2:] == [
        "| *far* | -0.205 ± 0.000 | 100 % | 2 | -0.020 ± 0.000 | 25 % | 4 |",
    ]


@pytest.mark.usefixtures("records")
def test_means_by_table_and_where_they_are_near():
    text = table_parts.tables()
    near = "| near | 100 | 5 | 0.700 | 0.810 | 0.805 | -0.005 ± 0.005 | 75 % | 2 | 0.815 |"
    assert near in text
    far = "| *far* | 50 | 3 | 0.700 | 0.900 | 0.695 | -0.205 ± 0.000 | 100 % | 2 |  |  |  |  |"
    assert far in text
    assert "none" not in text
    assert "means over 1 to 2 splits" in text
    assert "`certified` is at most 0.01 below boosting, or above it, on 1 of 2 tables" in text
    assert "(mean difference -0.105), on 1 surely further below, by two standard errors;" in text
    assert "`vanilla` is at most 0.005 below boosting, or above it, on 1 of 1 tables" in text
    assert text.count("above logistic regression on 1.") == 2


@pytest.mark.usefixtures("records")
def test_budgets_that_hold():
    text = table_parts.auc_budget()
    assert "| *t* | `certified` | 0 | 1 | +0.0040 ± 0.0010 | 90 % | 90 % | 9.0 |" in text
    assert "not surely beyond it (95 %), in 2 of 3 cases" in text
    assert "on test rows in 2 of 3." in text
