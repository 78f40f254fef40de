"""Orders that never change: the values here were computed with sha256sum, not with this code."""

import subprocess

import pytest

from r2et.data.shuffle import parts, pick, shuffled


def test_an_order_is_the_order_of_the_digests():
    lines = [
        subprocess.run(["sha256sum"], input=f"salt:{i}".encode(), capture_output=True, check=True)
        for i in range(20)
    ]
    digests = [line.stdout.split()[0] for line in lines]
    assert [digests[i] for i in shuffled(20, "salt")] == sorted(digests)


def test_the_first_of_an_order_are_pinned():
    assert shuffled(1000, "bank")[:5] == [672, 912, 67, 794, 559]


def test_an_order_is_a_permutation_that_depends_on_the_salt():
    one, two = shuffled(500, "one"), shuffled(500, "two")
    assert sorted(one) == sorted(two) == list(range(500))
    assert one != two


@pytest.mark.parametrize("count", [7, 20, 48842, 41188])
def test_parts_cover_everything_once(count):
    train, val, test = parts(count)
    rows = [*range(count)]
    assert rows[train] + rows[val] + rows[test] == rows
    assert len(rows[train]) == int(0.70 * count)
    assert len(rows[val]) == int(0.15 * count)


def test_pick():
    assert pick(5, 9, "salt") == [0, 1, 2, 3, 4]
    chosen = pick(10**12, 1000, "salt")
    assert len(set(chosen)) == 1000
    assert chosen == sorted(chosen)
    assert 0.4 < sum(chosen) / 1000 / 10**12 < 0.6
