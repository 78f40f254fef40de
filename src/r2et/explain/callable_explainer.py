"""Any function (model, x, target) -> scores, as an explainer for evaluation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from r2et.config import plain
from r2et.errors import InputError, require
from r2et.explain.base import Explainer, predicted, seeded
from r2et.explain.reductions import Reduction

ScoresFunction: TypeAlias = Callable[[nn.Module, Tensor, Tensor], Tensor | NDArray[Any]]

SIGNATURE = "a function (model, x, target) -> scores"


@final
@dataclass(frozen=True, repr=False)
class CallableExplainer(Explainer):
    """Scores by a function of yours: (model, x (B, ...), target (B,)) -> (B, n).

    The function gets the model in eval mode, rows without a graph and their explained classes, and
    returns a tensor or an array of finite numbers, larger for what is more important. Each row's
    scores must depend on that row alone: it is called with batches of any size, in any order.
    Values only: attacks on it use no gradients. Settings beside these are those of Explainer.

    Args:
        function: makes the scores.
        reduce: "signed", as the function gives them, or for instance "abs".
        seed: of torch's, NumPy's and Python's global generators at every call, so that a function
            that draws random numbers repeats.
    """

    function: ScoresFunction
    reduce: Reduction = field(default="signed", kw_only=True)
    seed: int = field(default=0, kw_only=True)

    differentiable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        where, function = "CallableExplainer", self.function
        is_valid = _takes_three(function) and not isinstance(function, Explainer)
        require(is_valid, where, "function", SIGNATURE, function)
        is_valid = type(self.seed) is int and 0 <= self.seed < 2**40
        require(is_valid, where, "seed", "a whole number, 0 or more, below 2^40", self.seed)

    def __repr__(self) -> str:
        return f"CallableExplainer({_address(self.function)}, reduce={self.reduce!r})"

    def attribute(
        self, model: nn.Module, x: Tensor, target: Tensor | None, *, create_graph: bool
    ) -> Tensor:
        where = "CallableExplainer"
        expected = "False (a function's scores come without a graph)"
        require(not create_graph, where, "create_graph", expected, create_graph)
        target = predicted(where, model, x) if target is None else target
        with seeded(self.seed):
            raw = self.function(model, x.detach().clone(), target.clone())
        if isinstance(raw, np.ndarray) and raw.dtype.kind in "fiub":
            raw = torch.from_numpy(raw.copy())
        expected = f"one that returns scores ({len(x)}, n), a tensor or array of real numbers"
        require(isinstance(raw, Tensor), where, "function", expected, raw)
        assert isinstance(raw, Tensor)
        is_valid = raw.ndim >= 2 and len(raw) == len(x) and raw[0].numel() > 0
        require(is_valid and not raw.is_complex(), where, "function", expected, raw)
        return raw.detach().to(x.device, x.dtype)

    def config_value(self, name: str) -> Any:
        """The function by its address; one whose state JSON cannot hold, by that alone."""
        try:
            return super().config_value(name)
        except InputError:
            return plain(_address(self.function))


def as_explainer(where: str, explainer: object) -> Explainer:
    """An explainer as it is, or a function (model, x, target) -> scores as one."""
    if isinstance(explainer, Explainer):
        return explainer
    expected = f"an Explainer of r2et.explain, or {SIGNATURE}"
    require(_takes_three(explainer), where, "explainer", expected, explainer)
    return CallableExplainer(explainer)  # type: ignore[arg-type]


def _takes_three(function: object) -> bool:
    """Whether it can be called with a model, rows and classes; classes are no functions here."""
    if not callable(function) or isinstance(function, type | nn.Module):
        return False
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # some builtins cannot say
        pass
    return True


def _address(function: object) -> str:
    """module:name of a function, of what a partial holds, or of an object's class."""
    function = getattr(function, "func", function)
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"
