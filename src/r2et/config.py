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
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from r2et.errors import require

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
        return _config_of(self, self.config_version, _excluded(type(self)))


def config_key(config: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that stand for a config, or for any plain JSON that holds some."""
    return hashlib.sha256(_text(_essence(config)).encode()).hexdigest()[:KEY_LENGTH]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Names of the entries in which two configs have different keys: ["penalty.l2", "seed"].

    Empty exactly where config_key(old) == config_key(new).
    """
    return _different(_essence(old), _essence(new), "")


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
        return _config_of(value, 1, frozenset())
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((plain(item) for item in value), key=json.dumps)
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    require(callable(value), "config", "a setting", "what JSON can hold", value)
    return _plain_function(value)


def _config_of(settings: Any, version: int, excluded: AbstractSet[str]) -> dict[str, Any]:
    told: dict[str, Any] = {NAME: type(settings).__name__, VERSION: version}
    defaults = []
    for item in fields(settings):
        if not item.init or item.name in excluded:
            continue
        reserved = item.name in (NAME, VERSION, DEFAULTS)
        require(not reserved, "config", "a field", "called otherwise, or excluded", item.name)
        value = plain(getattr(settings, item.name))
        told[item.name] = value
        if _has_default(item) and _text(_essence(value)) == _text(_essence(plain(_default(item)))):
            defaults.append(item.name)
    return {**told, DEFAULTS: defaults}


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
    if isinstance(value, float) and value.is_integer() and math.copysign(1.0, value) > 0:
        return int(value)
    return value


def _text(essence: Any) -> str:
    return json.dumps(essence, sort_keys=True, allow_nan=False)


def _is_config(value: Mapping[str, Any]) -> bool:
    return {NAME, VERSION, DEFAULTS} <= set(value)


def _first_version(value: Any) -> bool:
    """Whether all settings in here are at version 1."""
    if isinstance(value, Mapping):
        first = not _is_config(value) or value[VERSION] == 1
        return first and all(map(_first_version, value.values()))
    return not isinstance(value, list | tuple) or all(map(_first_version, value))


def _different(old: Any, new: Any, place: str) -> list[str]:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return [] if _text(old) == _text(new) else [place]
    if old.get(NAME) != new.get(NAME) and place:
        return [place]  # settings of another kind: that, not each of their fields
    found: list[str] = []
    for name in dict.fromkeys((*old, *new)):
        inner = f"{place}.{name}" if place else str(name)
        both = name in old and name in new
        found += _different(old[name], new[name], inner) if both else [inner]
    return found


def _plain_array(value: Tensor) -> Any:
    if value.numel() <= LONGEST_LIST:
        return plain(value.tolist())
    raw = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    shape, dtype = list(value.shape), str(value.dtype)
    return {"shape": shape, "dtype": dtype, "sha256": hashlib.sha256(raw).hexdigest()}


def _plain_function(value: Callable[..., Any]) -> Any:
    """A function or class by its address; one without an address by its text and what it holds."""
    if isinstance(value, functools.partial):
        held = [plain(value.args), plain(value.keywords)]
        return {"function": plain(value.func), "holds": held}
    name = getattr(value, "__qualname__", None)
    require(name is not None, "config", "a setting", "what JSON can hold", value)
    address = f"{value.__module__}:{name}"
    if "<" not in address:
        return address
    try:
        text = inspect.getsource(value)
    except OSError:  # written into an interpreter
        text = address
    cells = getattr(value, "__closure__", None) or ()
    source = hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]
    return {"function": address, "source": source, "holds": [plain(c.cell_contents) for c in cells]}
