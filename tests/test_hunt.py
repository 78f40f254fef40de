"""perf/hunt.py finds what it hunts for: certificates that claim too much, or nothing."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest
import torch

import hunt
from hunted import Case, case
from r2et.certify import Certificate, IntervalCertifier
from recording import digest, without_prose

SEEDS = [1, pytest.param(3, marks=pytest.mark.slow)]  # of a network in the plane, a residual one


@dataclass(frozen=True)
class Scaled:
    """A certifier whose radii are another's times a factor."""

    inner: IntervalCertifier
    factor: float

    @property
    def norm(self):
        return self.inner.norm

    def __call__(self, *given, **settings) -> Certificate:
        certificate = self.inner(*given, **settings)
        return replace(certificate, radius=self.factor * certificate.radius)


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    monkeypatch.setattr(hunt, "POINTS", 4000)
    monkeypatch.setattr(hunt, "STRONG_ROWS", 4)


def small(seed: int, factor: float) -> Case:
    """A few rows of a network of the hunt, certified by the certifier scaled."""
    given = case(seed)
    return replace(given, x=given.x[:10], certifier=Scaled(given.certifier, factor), also=None)


def hunted(seed: int, factor: float) -> dict:
    torch.manual_seed(0)
    return hunt.Hunt(small(seed, factor), seed).run(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_honest_certifier_is_not_broken(seed):
    entry = hunted(seed, 1.0)
    assert entry["with_a_radius"] > 0
    assert hunt.failures([entry]) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_certifier_that_claims_too_much_is_broken(seed):
    entry = hunted(seed, 20.0)
    assert entry["broken"] > 0
    assert entry["closest"] > 1
    assert hunt.failures([entry]) == [f"seed {seed}: a claim is broken"]


def test_a_certifier_that_proves_nothing_fails_too():
    assert hunt.failures([hunted(1, 0.0)]) == ["seed 1: every radius is 0"]


def entry(seed: int) -> dict:
    """As the hunt makes one: seed 2 was refused."""
    return {"seed": seed, "rows": 0 if seed == 2 else 400}


def test_entries_count_up_to_where_there_are_enough_rows():
    entries = {seed: entry(seed) for seed in (0, 1, 2, 3, 5)}
    assert [e["seed"] for e in hunt.first_of(entries, 800)] == [0, 1]
    assert [e["seed"] for e in hunt.first_of(entries, 1200)] == [0, 1, 2, 3]
    assert [e["seed"] for e in hunt.first_of(entries, 9999)] == [0, 1, 2, 3]  # 4 is missing


@pytest.mark.parametrize("jobs", [1, 3])
def test_it_goes_on_where_it_was_stopped_whatever_the_number_of_jobs(monkeypatch, jobs):
    monkeypatch.setattr(hunt, "entry_of", entry)
    monkeypatch.setattr(hunt, "ProcessPoolExecutor", lambda n, **_: ThreadPoolExecutor(n))
    entries = {seed: entry(seed) for seed in (0, 3)}
    new = []
    for made in hunt.hunt_all(entries, 1900, jobs):
        entries[made["seed"]] = made
        new.append(made["seed"])
    assert set(new).isdisjoint((0, 3))
    assert [e["seed"] for e in hunt.first_of(entries, 1900)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("seed", range(10, 19))
def test_every_kind_of_network_is_certified(seed):
    given = case(seed)
    certificate = given.certifier(given.model, given.explainer, given.x[:6], k=given.k)
    assert certificate.radius.shape == (6,)


def test_the_digest_sees_code_and_no_prose():
    code = 'x = "a # b"\n\n\ndef f():\n    """Doc."""\n    return 1\n'
    same = '"""Module."""\nx = "a # b"  # why\n\ndef f():\n    """Other."""\n    return 1\n'
    assert without_prose(code) == without_prose(same)
    assert without_prose(code) != without_prose(code.replace("1", "2"))
    assert without_prose(code) != without_prose(code.replace("a #", "a !"))
    alone = {digest(package) for package in hunt.CODE}
    assert set(hunt.CODE) == {"certify", "explain", "models", "rank", "region"}
    assert len(alone) == len(hunt.CODE)
    assert digest(*hunt.CODE) not in alone
