"""Any attribution of captum, as an explainer for evaluation."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from r2et.errors import InputError, first_line, require
from r2et.explain.base import OF, Explainer, Of
from r2et.explain.concept import find_layer
from r2et.models.output import class_logit, log_odds, logits, target_classes


@final
@dataclass(frozen=True)
class Captum(Explainer):
    """An attribution of captum.attr, by its name or class: Captum("IntegratedGradients").

    Values only: captum's Saliency detaches its result and its IntegratedGradients drops the
    second-order term without a word, so asking for a graph is refused. DeepLift and LRP see only
    modules: with three classes or more give of="logit", or the log-odds are not theirs. Settings
    beside these are those of Explainer.

    Args:
        method: a name in captum.attr, a class, or a function from a forward function to an
            attribution.
        settings: keyword arguments of its attribute().
        layer: for captum's layer methods, a name as in model.named_modules().
        of: the quantity explained, as in Gradient.
        seed: for methods that draw random numbers.
    """

    method: str | Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True, hash=False)
    layer: str | None = field(default=None, kw_only=True)
    of: Of = field(default="log_odds", kw_only=True)
    seed: int = field(default=0, kw_only=True)

    differentiable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.of in OF, "Captum", "of", f"one of {', '.join(OF)}", self.of)
        is_valid = isinstance(self.method, str) or callable(self.method)
        expected = 'a name in captum.attr such as "Saliency", or its class (not an instance)'
        require(is_valid, "Captum", "method", expected, type(self.method).__name__)
        mapping = isinstance(self.settings, Mapping)
        require(mapping, "Captum", "settings", "keyword arguments by name", self.settings)
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    def attribute(
        self, model: nn.Module, x: Tensor, target: Tensor | None, *, create_graph: bool
    ) -> Tensor:
        require(
            not create_graph,
            "Captum",
            "create_graph",
            "False (captum's attributions cannot be differentiated correctly; "
            "use the explainers of r2et.explain, which can)",
            create_graph,
        )
        with torch.no_grad():
            index = target_classes("Captum", target, logits(model, x, "Captum"))
        make = self._method()
        explained = _Explained(model, self.of)
        layer = () if self.layer is None else (find_layer("Captum", model, self.layer),)
        with _seeded(self.seed), _clean(model), warnings.catch_warnings():
            # DeepLift announces hooks that are gone when it returns; Lime, that it loops over rows.
            warnings.filterwarnings("ignore", message="Setting forward, backward hooks")
            warnings.filterwarnings("ignore", message="You are providing multiple inputs for Lime")
            try:
                attribution = make(explained, *layer)
                raw = attribution.attribute(
                    x.detach().clone().requires_grad_(),
                    additional_forward_args=(index,),
                    **self.settings,
                )
            except (TypeError, AssertionError) as error:
                expected = "settings (and a layer, if it is a layer method) that captum accepts"
                raise InputError(
                    f"Captum: method must be given {expected}, got {first_line(error)}."
                ) from error
        raw = raw[0] if isinstance(raw, tuple) else raw
        is_valid = isinstance(raw, Tensor) and len(raw) == len(x)
        require(is_valid, "Captum", "method", f"one that attributes to {len(x)} rows", raw)
        scores: Tensor = raw.to(x.dtype)
        return scores

    def _method(self) -> Callable[..., Any]:
        if not isinstance(self.method, str):
            return self.method
        import captum.attr

        method: Any = getattr(captum.attr, self.method, None)
        known = hasattr(method, "attribute")
        require(known, "Captum", "method", "the name of an attribution in captum.attr", self.method)
        return method  # type: ignore[no-any-return]


class _Explained(nn.Module):
    """The explained quantity as the scalar output that captum attributes."""

    def __init__(self, model: nn.Module, of: Of) -> None:
        super().__init__()
        self.model, self.of = model, of
        self.training = model.training

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        out = logits(self.model, x, "Captum")
        if self.of == "logit":
            return class_logit(out, target)
        odds = log_odds(out, target)
        if self.of == "probability":
            return odds.sigmoid()
        return F.softplus(-odds) if self.of == "loss" else odds


@contextmanager
def _clean(model: nn.Module) -> Iterator[None]:
    """Take off the model what captum's methods leave on it (DeepLift when interrupted, LRP)."""
    before = [(module, set(vars(module))) for module in model.modules()]
    try:
        yield
    finally:
        for module, names in before:
            for name in set(vars(module)) - names:
                delattr(module, name)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Captum draws from the global generators: seed them, and put them back as they were."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(python_state)
