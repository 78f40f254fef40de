"""The parts of pages about certificates: goals and groups against records made by hand."""

import pytest

from result_pages import certify_parts

MADE = {"r2et": "0", "torch": "0", "python": "3", "machine": "m", "date": "d"}


def case(data, kind, activation, layers, **ratio):
    return {
        "data": data,
        "kind": kind,
        "activation": activation,
        "layers": layers,
        "rows": 2,
        "attacked": 0.1,
        "ratio": ratio,
        "certified": {way: 0.1 * value for way, value in ratio.items()},
        "ms_per_row": dict.fromkeys(ratio, 4.0),
    }


CERTIFY = {
    **MADE,
    "tightness": [
        case("adult", "vanilla", "tanh", 3, linear=0.5, symbols=0.81),
        case("adult", "vanilla", "gelu", 3, linear=0.5, symbols=0.79),
        case("adult", "vanilla", "leaky_relu", 2, linear=0.5, split=0.9),
    ],
    "images": [
        case("digits", "cnn", "relu", 2, linear=0.5, split=0.89),
        {**case("digits", "resnet", "relu", 5, linear=0.2, split=0.392), "proved_in_float32": 1},
    ],
}


@pytest.fixture(autouse=True)
def by_hand(monkeypatch):
    monkeypatch.setattr(certify_parts, "record", {"certify": CERTIFY}.__getitem__)


def test_goals_are_met_or_missed():
    lines = certify_parts.certify_tightness().splitlines()[2:5]
    ends = [line.split("|")[-2].strip() for line in lines]
    assert ends == ["0.8, met", "0.8, missed", ""]
    assert "0.9, missed" in certify_parts.certify_images()


def test_radii_stand_in_grey_levels():
    lines = certify_parts.certify_images().splitlines()
    assert "| resnet | relu | 0.03920 | 10 | 26 | 1 of 2 |" in lines


def test_every_network_is_in_one_group():
    every = CERTIFY["tightness"] + CERTIFY["images"]
    assert all(sum(of(c) for of in certify_parts.GROUPS.values()) == 1 for c in every)
    text = certify_parts.certify_ways()
    row = next(line for line in text.splitlines() if "smooth, three" in line)
    assert [part.strip() for part in row.split("|")[4:6]] == ["0.50, 4 ms", ""]
    assert "0.80, 4 ms" in row
