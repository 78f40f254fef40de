"""Methods of others: one small class, or a Recipe, under module:name."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import inspect
import os
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from torch import nn

from r2et.bench.networks import papers_network
from r2et.config import Configurable
from r2et.data import Data
from r2et.errors import InputError, first_line, require
from r2et.train import RECIPES, Recipe


@dataclass(frozen=True)
class Method(Configurable, ABC):
    """A way to train that is no recipe. Its config is its fields, and its module's source.

    The stored network is `network(...)` with the weights of what `train` returns.
    """

    def network(self, data: Data, seed: int) -> nn.Module:
        """An untrained network: by default the one that recipes get."""
        return papers_network(data, None, seed)

    @abstractmethod
    def train(
        self, network: nn.Module, data: Data, *, k: int, radius: float, seed: int
    ) -> nn.Module:
        """The network, trained; the same weights each time for the same seed.

        data: a copy, whose test part is empty.
        """


def method(name: str) -> Recipe | Method:
    """A recipe by its name, or what module:name is; modules may lie in the current folder."""
    if name in RECIPES:
        return RECIPES[name]
    if ":" not in name:
        near = difflib.get_close_matches(name.lower(), RECIPES, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        known = f"one of {', '.join(RECIPES)}, or module:name"
        raise InputError(f"bench: recipes must be {known}{hint}, got {name!r}.")
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:  # stays: workers look where this process does
        sys.path.append(os.getcwd())
    try:
        named: Any = getattr(importlib.import_module(module), attribute)
        if isinstance(named, type) and issubclass(named, Method):
            named = named()
    except Exception as error:  # somebody's module may raise anything
        reason = f"{name!r} ({type(error).__name__}: {first_line(error)})"
        raise InputError(f"bench: recipes must be importable, got {reason}.") from error
    kind = type(named).__name__
    require(isinstance(named, Recipe | Method), "bench", name, "a Recipe or a Method", kind)
    checked: Recipe | Method = named
    return checked


def source_of(written: object) -> str | None:
    """A hash of the module that a method or penalty is written in: edited, it is another one."""
    try:
        text = inspect.getsource(sys.modules[type(written).__module__])
    except (OSError, TypeError, KeyError):  # written into an interpreter
        return None
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def title_of(name: str) -> str:
    """A recipe's name where a file could be called so."""
    return name.replace(":", ".")
