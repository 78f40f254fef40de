"""What a network's constructor was given: checked there, and stored beside the weights."""

from __future__ import annotations

from typing import Any, TypeAlias

from torch import nn

from r2et.errors import require

Settings: TypeAlias = dict[str, Any]


class Network(nn.Module):
    """A network that can be built again: `type(self)(**self.settings)` has the same layers.

    settings: the constructor's arguments, in types that JSON keeps.
    """

    settings: Settings


def check_counts(where: str, **counts: Any) -> None:
    """Sizes of layers and numbers of classes: whole numbers, at least 1."""
    for name, count in counts.items():
        whole = isinstance(count, int) and not isinstance(count, bool)
        require(whole and count > 0, where, name, "a whole number, at least 1", count)
