"""The parts of pages about training: counts and means against a record made by hand."""

from result_pages import training_parts

MADE = {"r2et": "0", "torch": "0", "python": "3", "machine": "m", "date": "d"}


def way(drop, half_width, proved, attacked, cost, *, met=True):
    measured = {"drop": drop, "half_width": half_width, "proved": proved, "attacked": attacked}
    return {**measured, "met": met, "sets": 4, "cost": cost, "trainings": 2 * cost}


def test_ways_to_a_weight_are_counted_over_the_cases_of_a_recipe(monkeypatch):
    cases = [
        {"search": way(0.002, 0.001, 0.9, 0.9, 8.0), "AUC": way(0.01, 0.001, 0.88, 0.88, 3.0)},
        # beyond the budget by chance; one share is lower than by the search
        {
            "search": way(0.004, 0.001, 0.5, 0.9, 10.0),
            "AUC": way(0.008, 0.006, 0.9, 0.8, 5.0, met=False),
        },
    ]
    stored = {
        **MADE,
        "max_auc_drop": 0.005,
        "epochs": 3,
        "radius": 0.1,
        "proved_rows": 7,
        "attacked_rows": 6,
        "cases": [
            {"table": "t", "recipe": "certified", "seed": seed, "ways": ways}
            for seed, ways in enumerate(cases)
        ],
    }
    monkeypatch.setattr(training_parts, "record", {"primal_dual": stored}.__getitem__)
    text = training_parts.primal_dual()
    search = "| search | 2 of 2 | +0.0030 | +0.0040 | 0 | 70 % | 90.0 % | 4 | 0 | 9.0 |"
    assert search in text
    assert "| AUC | 1 of 2 | +0.0090 | +0.0100 | 1 | 89 % | 84.0 % | 4 | 1 | 4.0 |" in text
    assert "Tables of seed 0: t; seed 1: t." in text
    assert "own weight: 18.0)" in text
