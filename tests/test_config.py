"""The identity of settings: plain JSON, and keys that outlive new fields."""

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from r2et.config import Configurable, alike, config_key, differences, first_difference, plain
from r2et.errors import InputError


@dataclass(frozen=True)
class Inner(Configurable):
    size: float = 1.0


@dataclass(frozen=True)
class Outer(Configurable):
    config_excluded: ClassVar[tuple[str, ...]] = ("progress",)

    radius: float
    inner: Inner = field(default=Inner())
    bounds: tuple[float, float] | None = None
    progress: bool = False
    derived: int = field(default=0, init=False)


@dataclass(frozen=True)
class Longer(Outer):
    config_excluded: ClassVar[tuple[str, ...]] = ("chunk",)

    chunk: int = 8
    options: Mapping[str, Any] = field(default_factory=dict)


def test_config_is_plain_and_whole():
    assert Outer(0.5, bounds=(0.0, 1.0)).config() == {
        "name": "Outer",
        "version": 1,
        "radius": 0.5,
        "inner": {"name": "Inner", "version": 1, "size": 1.0, "defaults": ["size"]},
        "bounds": [0.0, 1.0],
        "defaults": ["inner"],
    }


def test_fields_that_change_no_result_have_no_part():
    same = [Longer(0.5, progress=progress, chunk=n) for progress in (True, False) for n in (1, 2)]
    assert len({config_key(settings.config()) for settings in same}) == 1


def test_a_field_added_later_keeps_the_key():
    before = Outer(0.5, bounds=(0.0, 1.0)).config()
    del before["inner"]  # as it was recorded before there was such a field
    before["defaults"] = []
    now = Outer(0.5, bounds=(0.0, 1.0)).config()
    assert config_key(before) == config_key(now)
    assert differences(before, now) == []
    moved = Outer(0.5, Inner(2.0), bounds=(0.0, 1.0)).config()
    assert config_key(before) != config_key(moved)
    assert differences(before, moved) == ["inner"]
    assert differences(now, moved) == ["inner.size"]
    assert first_difference(now, moved) == "inner.size was 1.0, is 2.0"
    assert first_difference(before, now) is None


def test_a_new_version_changes_the_key_also_of_what_holds_it(monkeypatch):
    before = Outer(0.5).config()
    monkeypatch.setattr(Inner, "config_version", 2)
    now = Outer(0.5).config()
    assert now["defaults"] == ["inner", "bounds"]
    assert config_key(before) != config_key(now)
    monkeypatch.setattr(Outer, "config_version", 2)
    assert config_key(now) != config_key(Outer(0.5).config())


def test_one_number_has_one_key_and_the_next_float_another():
    key = config_key(Outer(1.0).config())
    assert key == config_key(Outer(1).config())
    assert key != config_key(Outer(math.nextafter(1.0, 2.0)).config())
    assert config_key(Outer(0.0).config()) != config_key(Outer(-0.0).config())
    assert config_key({"on": True}) != config_key({"on": 1})
    assert config_key({"a": 1, "b": 2}) == config_key({"b": 2, "a": 1})


def test_a_key_follows_from_the_json_alone():
    config = Longer(0.1, Inner(0.3), options={"defaults": ["x"], "version": 3}).config()
    assert config_key(json.loads(json.dumps(config))) == config_key(config)
    assert config_key({"attack": config, "k": 8}) != config_key({"attack": config, "k": 9})


def test_differences_name_the_innermost_field():
    old, new = Outer(0.5, Inner(2.0)), Outer(0.5, Inner(3.0), bounds=(0, 1))
    assert differences(old.config(), new.config()) == ["inner.size", "bounds"]
    assert differences({"s": Outer(1.0).config()}, {"s": Inner(2.0).config()}) == ["s"]
    assert differences({"k": 1}, {"k": 1, "seed": 0}) == ["seed"]


def test_entries_are_alike_where_all_have_them():
    one, same, other = Outer(0.5).config(), Outer(0.5, progress=True).config(), Outer(0.6).config()
    assert alike([one, same], "radius") is True
    assert alike([one, other], "radius") is False
    assert alike([one, other], "inner") is True
    assert alike([one, None], "radius") is None
    assert alike([one, other], "norm") is None


def test_values_of_every_kind_become_plain():
    assert plain((1, (2.5, None))) == [1, [2.5, None]]
    assert plain(np.float32(0.5)) == 0.5
    assert plain(torch.tensor([[1.0, 2.0]])) == [[1.0, 2.0]]
    assert plain({3, 1, 2}) == [1, 2, 3]
    assert plain(math.inf) == "inf"
    assert plain(torch.float64) == "torch.float64"
    assert plain({1: np.arange(2)}) == {"1": [0, 1]}


def test_a_large_tensor_is_told_by_its_digest():
    large = torch.arange(5000.0)
    config = plain(large)
    assert config["shape"] == [5000]
    assert len(json.dumps(config)) < 200
    assert config == plain(large.clone())
    assert config != plain(large + torch.eye(1, 5000)[0])
    assert config != plain(large.view(50, 100))


def _adder(number: int) -> Any:
    return lambda x: x + number


def test_functions_are_told_by_address_or_by_text_and_what_they_hold():
    assert plain(math.sqrt) == "math:sqrt"
    assert plain(torch.nn.Linear) == "torch.nn.modules.linear:Linear"
    assert plain(_adder(1)) == plain(_adder(1)) != plain(_adder(2))
    assert plain(functools.partial(math.pow, 2)) != plain(functools.partial(math.pow, 3))


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(InputError, match="config: a setting must be what JSON can hold, or"):
        plain(object())


def test_a_field_may_not_be_called_as_the_frame_is():
    @dataclass(frozen=True)
    class Bad(Configurable):
        version: int = 3

    with pytest.raises(InputError, match="a field must be called otherwise, or excluded"):
        Bad().config()
