"""What a network's constructor was given: checked there, and stored beside the weights."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar

from torch import nn

from r2et.config import config_of, plain
from r2et.errors import require
from r2et.models.piecewise_linear import rho_of


class Network(nn.Module):
    """A network that can be built again: `type(self)(**self.settings)` has the same layers.

    settings: the constructor's arguments, in types that JSON keeps.
    """

    settings: dict[str, Any]
    config_version: ClassVar[int] = 1

    def config(self) -> dict[str, Any]:
        """What it was built from, and the rho of a smooth copy: see r2et.config."""
        given = inspect.signature(type(self).__init__).parameters.items()
        own = {name: p.default for name, p in given if p.default is not p.empty}
        values = {name: plain(value) for name, value in self.settings.items()}
        defaults = {name: plain(value) for name, value in own.items()}
        smoothness = rho_of(self)
        return config_of(
            type(self).__name__,
            self.config_version,
            {**values, "rho": smoothness},
            {**defaults, "rho": None},
        )


# torch keeps sizes as 64-bit numbers, and multiplies them.
LARGEST = 2**31 - 1


def check_counts(where: str, **counts: Any) -> None:
    """Sizes of layers and numbers of classes: whole numbers, at least 1."""
    for name, count in counts.items():
        whole = isinstance(count, int) and not isinstance(count, bool)
        require(whole and count > 0, where, name, "a whole number, at least 1", count)
        require(count <= LARGEST, where, name, f"at most {LARGEST}", count)


def check_widths(where: str, widths: Any, count: int | None = None) -> None:
    """The widths of hidden layers: a list of whole numbers, `count` of them where it is given."""
    listed = isinstance(widths, Sequence) and not isinstance(widths, str)
    expected = "a list of whole numbers" if count is None else f"a list of {count} whole numbers"
    require(listed and count in (None, len(widths)), where, "widths", expected, widths)
    for width in widths:
        check_counts(where, **{"every width": width})
