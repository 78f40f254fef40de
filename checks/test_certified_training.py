"""What perf/certified.py recorded is what was promised, and stays below what is possible."""

import pytest

from recording import load_record

RECORD = load_record("certified")
RESULTS, INDIVIDUAL = RECORD["results"], RECORD["individual"]


def name(entry):
    return "-".join(str(entry[part]) for part in ("data", "hidden", "radius") if part in entry)


@pytest.mark.parametrize("entry", RESULTS, ids=name)
def test_nearly_all_rows_are_proved(entry):
    assert entry["certified"]["certified_share"] >= 0.95


@pytest.mark.parametrize("entry", [e for e in RESULTS if e["hidden"] == [32]], ids=name)
def test_the_price_is_small_with_one_hidden_layer(entry):
    assert entry["certified"]["auc"] >= entry["vanilla"]["auc"] - 0.01


@pytest.mark.parametrize("entry", INDIVIDUAL, ids=name)
def test_no_network_has_more_proved_sets_than_there_are_chains(entry):
    limit = next(c for c in entry["ceilings"] if c["radius"] == 0.1)
    for way in entry["ways"]:
        assert way["test"]["distinct_top_k_proved"] <= limit["test"]["sets"]
    assert limit["all"]["sets"] <= limit["test"]["sets"]
    assert next(c for c in entry["ceilings"] if c["radius"] == 1)["test"]["sets"] == 1


@pytest.mark.parametrize("entry", INDIVIDUAL, ids=name)
def test_what_validation_chose_is_proved_and_different(entry):
    plain, best = (entry["ways"][i]["test"] for i in (0, entry["chosen"]))
    hinge = max(w["test"]["distinct_top_k"] for w in entry["ways"] if w["way"] == "hinge")
    assert best["certified_share"] >= 0.95
    assert best["auc"] >= plain["auc"] - 0.01
    assert best["distinct_top_k"] > 10 * hinge


@pytest.mark.parametrize("entry", INDIVIDUAL, ids=name)
def test_half_of_vanillas_sets_can_be_proved_where_so_many_are_possible(entry):
    plain = entry["ways"][0]["test"]
    limit = next(c for c in entry["ceilings"] if c["radius"] == 0.1)["all"]["sets"]
    wanted = plain["distinct_top_k"] / 2
    distinct = [
        way["test"]["distinct_top_k"]
        for way in entry["ways"]
        if way["test"]["certified_share"] >= 0.95 and way["test"]["auc"] >= plain["auc"] - 0.01
    ]
    assert max(distinct) >= (wanted if wanted <= limit else 0.75 * limit)
