"""The identity of settings: plain JSON, and a short key that outlives new fields.

`settings.config()` is {"name": class, "version": int, **fields that change a result, "defaults":
names of those fields that are at their default}; settings within settings are there by their own
config(). `config_key(config)` hashes it, and follows from the JSON alone:

- Fields at their default are left out. A field added tomorrow is at its default in everything kept
  today, so that records, audits and checkpoints keep their keys.
- Who changes a default, or what a setting means, raises the class's `config_version`; the key
  changes with it. A default that itself is settings is left out only while all in it is at
  version 1, so that its new version is noticed too.
- 1 and 1.0 are one number; floats are hashed to the last bit.

Fields that change no result (progress, chunk, ...) are named once per class in `config_excluded`;
fields that are not set by the caller (init=False) follow from the others and have no part either.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from r2et.errors import describe, require

NAME, VERSION, DEFAULTS = "name", "version", "defaults"
LONGEST_LIST = 1024  # of a tensor's numbers; a longer one is told by its digest
KEY_LENGTH = 16


class Configurable:
    """Settings, a frozen dataclass, that can say what they are.

    config_version: raised when a default, or what a setting means, changes.
    config_excluded: names of fields that change no result; those of the bases count too.
    """

    config_version: ClassVar[int] = 1
    config_excluded: ClassVar[tuple[str, ...]] = ()

    def config(self) -> dict[str, Any]:
        """Name, version and the fields that change a result, as plain JSON."""
        excluded = _excluded(type(self))
        own = [item for item in fields(self) if item.init and item.name not in excluded]  # type: ignore[arg-type]
        values = {item.name: self.config_value(item.name) for item in own}
        defaults = {item.name: plain(_default(item)) for item in own if _has_default(item)}
        return config_of(type(self).__name__, self.config_version, values, defaults)

    def config_value(self, name: str) -> Any:
        """A field in plain JSON; for classes to override where it holds more than matters."""
        return plain(getattr(self, name))


def config_of(
    name: str, version: int, values: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """A config from plain values and what they are by default, where they have one."""
    frame = {NAME, VERSION, DEFAULTS} & set(values)
    require(not frame, "config", "a field", "called otherwise, or excluded", ", ".join(frame))
    at_default = [
        field
        for field, value in values.items()
        if field in defaults and _text(_essence(value)) == _text(_essence(defaults[field]))
    ]
    return {NAME: name, VERSION: version, **values, DEFAULTS: at_default}


def config_key(config: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that stand for a config, or for any plain JSON that holds some."""
    return hashlib.sha256(_text(_essence(config)).encode()).hexdigest()[:KEY_LENGTH]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Names of the entries in which two configs have different keys: ["penalty.l2", "seed"].

    Empty exactly where config_key(old) == config_key(new).
    """
    return _different(old, new, "")


def alike(configs: Iterable[Mapping[str, Any] | None], name: str) -> bool | None:
    """Whether an entry is the same in all configs; None where some has none, as of older files."""
    entries = [c.get(name) if isinstance(c, Mapping) else None for c in configs]
    if any(entry is None for entry in entries):
        return None
    return len({config_key({name: entry}) for entry in entries}) <= 1


def first_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """The first of the differences in words: "penalty.l2 was 1.0, is 0.5"; None without any."""
    for place in differences(old, new):
        was, now = (describe(_entry(config, place))[:80] for config in (old, new))
        return f"{place} was {was}, is {now}"
    return None


def plain(value: Any) -> Any:
    """A setting's value as JSON holds it; InputError for one that cannot be told apart by it."""
    if isinstance(value, Configurable):
        return value.config()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Tensor | np.ndarray):
        return _plain_array(torch.as_tensor(value))
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, torch.dtype | torch.device | PurePath):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((plain(item) for item in value), key=json.dumps)
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    if isinstance(value, nn.Module):
        return _plain_network(value)
    named = isinstance(value, functools.partial) or hasattr(value, "__qualname__")
    require(named, "config", "a setting", "what JSON can hold, or excluded from the config", value)
    return _plain_function(value)


def _excluded(kind: type) -> frozenset[str]:
    named: list[str] = []
    for base in kind.__mro__:
        named += vars(base).get("config_excluded", ())
    return frozenset(named)


def _has_default(item: Field[Any]) -> bool:
    return item.default is not MISSING or item.default_factory is not MISSING


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def _essence(value: Any) -> Any:
    """The part of plain JSON that the key is made of."""
    if isinstance(value, Mapping):
        omitted: set[str] = set()
        if _is_config(value):
            omitted = {n for n in value[DEFAULTS] if _first_version(value.get(n))} | {DEFAULTS}
        return {name: _essence(item) for name, item in value.items() if name not in omitted}
    if isinstance(value, list | tuple):
        return [_essence(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, float) and value.is_integer() and math.copysign(1.0, value) > 0:
        return int(value)
    return value


def _text(essence: Any) -> str:
    return json.dumps(essence, sort_keys=True, allow_nan=False)


def _is_config(value: Mapping[str, Any]) -> bool:
    defaults = value.get(DEFAULTS)
    listed = isinstance(defaults, list) and all(isinstance(name, str) for name in defaults)
    return listed and NAME in value and VERSION in value


def _first_version(value: Any) -> bool:
    """Whether all settings in here are at version 1."""
    if isinstance(value, Mapping):
        first = not _is_config(value) or value[VERSION] == 1
        return first and all(map(_first_version, value.values()))
    return not isinstance(value, list | tuple) or all(map(_first_version, value))


def _different(old: Any, new: Any, place: str) -> list[str]:
    if _text(_essence(old)) == _text(_essence(new)):
        return []
    both = isinstance(old, Mapping) and isinstance(new, Mapping)
    if not both or (place and old.get(NAME) != new.get(NAME)):
        return [place]  # of settings of another kind that, not each of their fields
    places: list[str] = []
    for name in dict.fromkeys((*old, *new)):
        inner = f"{place}.{name}" if place else str(name)
        if name in old and name in new and name != DEFAULTS:
            places += _different(old[name], new[name], inner)
        elif name in _essence(old) or name in _essence(new):
            places.append(inner)
    return places or [f"{place}.{DEFAULTS}".lstrip(".")]  # a default changed, but no version did


def _entry(config: Mapping[str, Any], place: str) -> Any:
    """What a config holds at a place such as "penalty.l2"; a class's name for its settings."""
    value: Any = config
    for name in place.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return "not there"
        value = value[name]
    return value[NAME] if isinstance(value, Mapping) and _is_config(value) else value


def _plain_array(value: Tensor) -> Any:
    if value.numel() <= LONGEST_LIST:
        return plain(value.tolist())
    return {"shape": list(value.shape), "dtype": str(value.dtype), "sha256": _digest(value)}


def _plain_network(value: nn.Module) -> dict[str, Any]:
    weights = {name: _digest(item) for name, item in value.state_dict().items()}
    return {"class": type(value).__name__, "layers": str(value), "weights": config_key(weights)}


def _digest(value: Tensor) -> str:
    raw = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(raw).hexdigest()


def _plain_function(value: Callable[..., Any]) -> Any:
    """A function or class by its address; one without an address by its text and what it holds."""
    if isinstance(value, functools.partial):
        held = [plain(value.args), plain(value.keywords)]
        return {"function": plain(value.func), "holds": held}
    address = f"{value.__module__}:{value.__qualname__}"
    if "<" not in address:
        return address
    try:
        text = inspect.getsource(value)
    except OSError:  # written into an interpreter
        text = address
    cells = getattr(value, "__closure__", None) or ()
    source = hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]
    return {"function": address, "source": source, "holds": [plain(c.cell_contents) for c in cells]}
