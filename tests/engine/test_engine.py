"""Engines: the same results from all, one item lost at most, nothing left behind."""

import gc
import itertools
import multiprocessing
import os
import struct
import sys
import warnings

import pytest
import torch

import engine_work
from r2et.engine import ENGINES, LATER, Lost, engine
from r2et.engine.worker import Worker
from r2et.errors import InputError, R2ETError, UnavailableError

LOCAL = ["serial", "processes"]


@pytest.fixture(scope="module")
def pool():
    with engine("processes", workers=2) as run:
        yield run


@pytest.fixture(scope="module")
def ray_pool():
    pytest.importorskip("ray", exc_type=ImportError)
    with engine("ray", workers=2) as run:
        yield run


RAY = pytest.param("ray", marks=pytest.mark.slow)


@pytest.fixture(params=["serial", "processes", RAY])
def run(request):
    if request.param == "serial":
        return engine("serial")
    return request.getfixturevalue("pool" if request.param == "processes" else "ray_pool")


@pytest.fixture(params=["processes", RAY])
def remote(request):
    """An engine whose workers are other processes."""
    return request.getfixturevalue("pool" if request.param == "processes" else "ray_pool")


def test_all_results_with_their_numbers(run):
    assert sorted(run(engine_work.square, range(7))) == [(i, i * i) for i in range(7)]
    assert list(run(engine_work.square, [])) == []


def test_tensors_come_back_bit_for_bit(run):
    torch.manual_seed(0)
    weights, items = torch.randn(5, 4), [torch.randn(4) for _ in range(3)]
    for index, result in run(engine_work.Mean(weights), items):
        assert torch.equal(result, weights @ items[index])


def test_items_are_taken_as_needed(run):
    taken = []
    numbers = (taken.append(i) or i for i in itertools.count())
    results = run(engine_work.square, numbers)
    for done in range(1, 30):
        next(results)
        assert len(taken) <= done + 2 * run.workers
    results.close()


def test_items_that_hang_on_results(run):
    known = [2]  # each square but the last is the next item

    def chain():
        for place in range(4):
            while len(known) <= place:
                yield LATER
            yield known[place]

    for index, result in run(engine_work.square, chain()):
        known.insert(index + 1, result)
    assert known == [2, 4, 16, 256, 65536]
    assert list(run(engine_work.square, [LATER, 3])) == []


def test_one_thread_each_and_the_callers_setting_stays(run):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for _, (count, told) in run(engine_work.threads, range(3)):
            assert count == 1
            assert run.workers == 1 or told == "1"
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_work_goes_to_each_worker_once(remote, tmp_path):
    processes = {pid for _, pid in remote(engine_work.Counted(str(tmp_path)), range(20))}
    read = [int(p.name.split("-")[0]) for p in tmp_path.iterdir()]
    assert os.getpid() not in processes
    assert sorted(read) == sorted(processes)


def test_a_worker_killed_once_costs_nothing(remote, tmp_path):
    work = engine_work.Dies(str(tmp_path / "died"))
    assert sorted(remote(work, range(6))) == [(i, i) for i in range(6)]


def test_an_item_that_kills_its_worker_is_lost_alone(remote):
    results = dict(remote(engine_work.Dies(), range(6)))
    lost = results.pop(3)
    assert isinstance(lost, Lost)
    assert "2 times" in lost.reason
    assert results == {i: i for i in (0, 1, 2, 4, 5)}
    assert dict(remote(engine_work.square, range(3))) == {0: 0, 1: 1, 2: 4}


def test_a_worker_killed_while_it_answers_is_dead():
    """Half a message: its length is there, the rest is not."""
    worker = Worker.__new__(Worker)
    worker.pipe, theirs = multiprocessing.Pipe()
    os.write(theirs.fileno(), struct.pack("!i", 100) + b"half")
    theirs.close()
    assert worker.receive() is None


def test_an_idle_worker_that_dies_is_replaced():
    with engine("processes", workers=1) as run:
        list(run(engine_work.square, range(2)))
        run._pool[0].process.kill()
        run._pool[0].process.join()
        assert dict(run(engine_work.square, range(2))) == {0: 0, 1: 1}


def test_an_error_keeps_its_type_and_message(run):
    with pytest.raises(InputError) as caught:
        list(run(engine_work.refuses, range(4)))
    assert type(caught.value) is InputError
    assert str(caught.value) in {f"refuses: item must be below 2, got {i}." for i in (2, 3)}
    assert sorted(run(engine_work.refuses, range(2))) == [(0, 0), (1, 1)]


def test_an_error_that_cannot_be_sent_keeps_its_name(remote):
    with pytest.raises(R2ETError, match="AwkwardError: 0 and 0"):
        list(remote(engine_work.awkward, [0]))
    with pytest.raises(InputError, match="engine: the result of work must be picklable"):
        list(remote(engine_work.unpicklable_result, [0]))


def test_what_cannot_be_sent_is_named(pool):
    here = 3
    with pytest.raises(InputError, match=r"engine: work must be picklable.* got function: "):
        list(pool(lambda item: item + here, [0]))
    with pytest.raises(InputError, match="engine: items must be picklable"):
        list(pool(engine_work.square, [lambda: here]))


@pytest.mark.slow
def test_what_cannot_be_sent_to_ray_is_named(ray_pool):
    with pytest.raises(InputError, match="engine: work must be picklable"):
        list(ray_pool(engine_work.Mean(i for i in range(3)), [0]))


def test_what_cannot_be_read_by_a_worker_is_one_sentence(pool):
    # Pickled here by name, it is not to be found there.
    made = type("Gone", (engine_work.Mean,), {"__module__": "engine_work"})
    engine_work.Gone = made
    try:
        with pytest.raises(R2ETError) as work:
            list(pool(made(torch.ones(1)), [0]))
        with pytest.raises(R2ETError) as items:
            list(pool(engine_work.square, [made(torch.ones(1))]))
    finally:
        del engine_work.Gone
    for name, caught in (("work", work), ("items", items)):
        said = str(caught.value)
        assert said.startswith(f"engine: {name} must be readable in a worker, got AttributeError: ")
        assert "\n" not in said


def test_bad_input():
    with pytest.raises(InputError, match=r"got 'proceses' \(did you mean 'processes'\?\)"):
        engine("proceses")
    with pytest.raises(InputError, match="engine: workers must be None or a positive whole"):
        engine("processes", workers=0)
    with pytest.raises(InputError, match="engine: address must be None"):
        engine("processes", address="auto")
    with pytest.raises(InputError, match="engine: work must be callable, got 3"):
        engine("serial")(3, [1])
    with pytest.raises(InputError, match="engine: items must be something to iterate over"):
        engine("serial")(engine_work.square, 3)
    first = engine("serial")
    results = first(engine_work.square, range(3))
    next(results)
    with pytest.raises(InputError, match="the run before must be at its end"):
        first(engine_work.square, range(3))


def test_the_registry_names_all_engines():
    made = {name: type(engine(name, workers=1)).__name__ for name in ENGINES}
    assert made == {"serial": "SerialEngine", "processes": "ProcessEngine", "ray": "RayEngine"}
    assert type(engine("here")) is type(engine("serial"))  # its name in version 0.1


def test_missing_ray_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnavailableError, match=r"pip install 'r2et\[cluster\]'"):
        list(engine("ray", workers=1)(engine_work.square, [1]))


def test_an_engine_is_given_back_and_the_outer_with_ends_it(pool):
    assert engine(pool) is pool
    list(pool(engine_work.square, range(2)))
    workers = list(pool._pool)
    with engine(pool) as inner:
        list(inner(engine_work.square, range(2)))
    assert pool._pool == workers
    alone = engine("processes", workers=1)
    list(alone(engine_work.square, range(2)))
    assert alone._pool == []


@pytest.mark.slow
def test_results_that_nobody_wants_any_more():
    with engine("processes", workers=2) as run:
        held = run(engine_work.square, itertools.count())
        next(held)
        workers = [worker.process.pid for worker in run._pool]
    assert run._pool == []  # though `held` is still there
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)
    with run:
        assert sorted(run(engine_work.square, range(3))) == [(0, 0), (1, 1), (2, 4)]
        held.close()
        assert sorted(run(engine_work.square, range(3))) == [(0, 0), (1, 1), (2, 4)]


@pytest.mark.slow
def test_ray_leaves_no_warning_behind(ray_pool):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        list(ray_pool(engine_work.square, range(3)))
        gc.collect()
    assert [str(w.message) for w in heard if "ray" in str(w.filename)] == []
