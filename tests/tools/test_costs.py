"""Costs of the parts of "all" from records: each record once, none where one is missing."""

from contextlib import suppress

import pytest

from r2et.bench.agenda import MAIN, TABLE_SETS, AgendaItem, agenda, cost
from r2et.bench.grid import Grid
from r2et.bench.record import Record
from r2et.bench.run import plans_of
from r2et.bench.select_task import SelectTask
from result_pages.archive import Archive
from result_pages.costs import recorded_costs

CLEAN = AgendaItem("table9", "long", ("adult",), ("vanilla",), 1)
MORE = AgendaItem("table9", "long", ("adult",), ("vanilla",), 2)
OTHER = AgendaItem("table9", "long", ("adult",), ("wd",), 1)


def archive(*items, **made):
    """Records of all tasks of some items, each of one second, or of what is said."""
    kept = Archive()

    def note(task):
        for need in task.needs:
            note(need)
        measured = {"index": 0, "auc_validation": 0.9, "precision": 0.5, "auc": 0.9}
        measured |= dict.fromkeys(("dffot", "comprehensiveness", "sufficiency"), 0.5)
        if isinstance(task, SelectTask):
            measured["candidates"] = []
        where = dict.fromkeys(("r2et", "torch", "python", "machine", "cpu", "date"), "1")
        seconds = {"seconds": 1.0, **made}
        record = Record(task.config(), measured, made={**where, **seconds}, name=task.name)
        kept.records[task.name] = record
        return record

    for item in items:
        for plan in plans_of(item.name, item.grid(Grid())):
            drive(plan, note)
    return kept


def drive(plan, note):
    with suppress(StopIteration):
        wanted = next(plan)
        while True:
            wanted = plan.send([note(task) for task in wanted])


def test_each_record_is_counted_once():
    """A training, a clean measurement and faithfulness of one seed; the same of another."""
    costs = recorded_costs([CLEAN, MORE], {"tables": archive(MORE)})
    assert costs == {CLEAN.title: 3.0, MORE.title: 3.0}


def test_what_is_not_recorded_has_no_cost():
    assert recorded_costs([CLEAN, OTHER], {"tables": archive(CLEAN)}) == {CLEAN.title: 3.0}


def test_the_processors_seconds_count_where_they_are_known():
    shared = archive(CLEAN, processor_seconds=0.25)
    assert recorded_costs([CLEAN], {"tables": shared}) == {CLEAN.title: 0.8}


def test_titles_are_each_items_own():
    items = agenda(3)
    assert len({item.title for item in items}) == len(items)
    main = AgendaItem("table1", "long", ("adult",), MAIN)
    assert main.title == "table1 of adult, 1 seed"
    assert AgendaItem("table1", "long", ("adult",)).title == "table1 of adult, 1 seed, all recipes"
    assert (
        AgendaItem("table1", "papers", ("mnist",), (), 3).title == "table1-papers of mnist, 3 seeds"
    )


@pytest.mark.parametrize("data", TABLE_SETS)
def test_the_committed_costs_are_of_items_that_there_are(data):
    seconds = cost(AgendaItem("table1", "long", (data,), MAIN))
    assert seconds is None or 10 < seconds < 10_000
