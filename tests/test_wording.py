"""Numbers, each against what a reader should see."""

import math

import pytest

from r2et import wording as numbers

NB = numbers.SPACE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (0.0316227766, "0.0316"),
        (0, "0"),
        (1, "1"),
        (1234.5, "1230"),
        (-0.00001234, "−0.0000123"),  # noqa: RUF001
        (9.9999, "10"),
        (1e-9, f"1{NB}×{NB}10⁻⁹"),  # noqa: RUF001
        (None, "not measured"),
        (math.nan, "not measured"),
        (math.inf, "not measured"),
        (True, "not measured"),
    ],
)
def test_significant(value, text):
    assert numbers.significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "50"), (0.057, "5.7"), (0, "0"), (1, "100"), (0.9996, "99.96"), (0.0004, "0.04"),
     (0.99999, "over 99.99"), (-1e-9, "near 0"), (-0.01, "−1"), (0.30000000000000004, "30")],  # noqa: RUF001
)  # fmt: skip
def test_percent(value, text):
    assert numbers.percent(value) == f"{text}{NB}%"


@pytest.mark.parametrize(
    ("shares", "texts"),
    [
        ((0.93, 0.03, 0.04), ["93", "3", "4"]),
        ((1 / 3, 1 / 3, 1 / 3), ["33", "34", "33"]),
        ((0.996, 0.002, 0.002), ["99.6", "0.2", "0.2"]),
        ((1.0, 0.0, 0.0), ["100", "0", "0"]),
        ((0.9999, 0.0001, 0.0), ["99.99", "0.01", "0"]),
        ((0.125, 0.125, 0.75), ["12", "13", "75"]),
        ((0.865, 0.135, 0.0), ["86", "14", "0"]),
        ((0.865, 0.0, 0.135), ["86", "0", "14"]),
        ((0.006, 0.5, 0.494), ["0.6", "50.0", "49.4"]),
        ((0.99999, 0.00001, 0.0), ["99.999", "0.001", "0"]),
    ],
)
def test_shares_of_one_whole_sum_to_it(shares, texts):
    assert numbers.percents(shares) == [f"{t}{NB}%" for t in texts]


def test_two_numbers_that_differ_are_written_differently():
    assert numbers.apart(0.0116147, 0.0116229) == ("0.01161", "0.01162")
    assert numbers.apart(0.01, 0.02) == ("0.01", "0.02")
    assert numbers.apart(0.5, 0.5) == ("0.5", "0.5")


def test_counts_are_grouped_from_five_digits_on():
    assert [numbers.count(v) for v in (7, 9999, 10000, 1234567)] == [
        "7",
        "9999",
        "10\u202f000",
        "1\u202f234\u202f567",
    ]


@pytest.mark.parametrize("decimals", [3, 4])
def test_a_proved_radius_is_rounded_down_however_it_is_written(decimals):
    for radius in (0.29999, 0.19876, 1.99996, 0.00019):
        texts = (
            numbers.proved_significant(radius, decimals),
            numbers.lowered_fixed(radius, decimals),
            f"{numbers.lowered(radius, decimals):.10f}",
        )
        for text in texts:
            assert radius - 10.0 ** -(decimals - 1) < float(text) <= radius
    # A certificate is given a hair below what it proved.
    assert numbers.lowered_fixed(0.3 * (1 - 1e-6), decimals) == f"0.3{'0' * (decimals - 1)}"
    assert numbers.proved_significant(None) == "not measured"
