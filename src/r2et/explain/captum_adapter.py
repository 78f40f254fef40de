"""Any attribution of captum, as an explainer for evaluation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from r2et.errors import InputError, first_line, require
from r2et.explain.base import OF, Explainer, Of, seeded
from r2et.explain.captum_equivalents import equivalent_of
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
        around: for NoiseTunnel, the attribution that it smooths, given as a method is:
            Captum("NoiseTunnel", around="Saliency"). All rows get the same noise, as in SmoothGrad:
            each has the values that captum gives it alone.
    """

    method: str | Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True, hash=False)
    layer: str | None = field(default=None, kw_only=True)
    of: Of = field(default="log_odds", kw_only=True)
    seed: int = field(default=0, kw_only=True)
    around: str | Callable[..., Any] | None = field(default=None, kw_only=True)

    differentiable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.of in OF, "Captum", "of", f"one of {', '.join(OF)}", self.of)
        expected = 'a name in captum.attr such as "Saliency", or its class (not an instance)'
        is_valid = isinstance(self.method, str) or callable(self.method)
        require(is_valid, "Captum", "method", expected, type(self.method).__name__)
        is_valid = self.around is None or isinstance(self.around, str) or callable(self.around)
        require(is_valid, "Captum", "around", expected, type(self.around).__name__)
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
        explained = _Explained(model, self.of)
        layer = () if self.layer is None else (find_layer("Captum", model, self.layer),)
        with seeded(self.seed), _clean(model), warnings.catch_warnings():
            # DeepLift announces hooks that are gone when it returns; Lime, that it loops over rows.
            warnings.filterwarnings("ignore", message="Setting forward, backward hooks")
            warnings.filterwarnings("ignore", message="You are providing multiple inputs for Lime")
            try:
                attribution = self._build(explained, *layer)
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

    def equivalent(self) -> Explainer | None:
        """One of our explainers with the same scores (see r2et.explain.captum_equivalents)."""
        if self.layer is not None:
            return None
        forward = _Explained(nn.Identity(), self.of)
        try:
            attribution = self._build(forward)
        except Exception:  # a function of the caller's, which may want the real model
            return None
        common = {item.name: getattr(self, item.name) for item in fields(Explainer)}
        return equivalent_of(
            attribution, forward, self.settings, seed=self.seed, of=self.of, **common
        )

    def _build(self, forward: nn.Module, *layer: nn.Module) -> Any:
        """Captum's attribution of a forward function."""
        import captum.attr

        make = _method("method", self.method)
        tunnel = make is captum.attr.NoiseTunnel
        if tunnel:
            expected = 'what it smooths, as in Captum("NoiseTunnel", around="Saliency")'
            require(self.around is not None, "Captum", "around", expected, None)
        elif self.around is not None:
            require(False, "Captum", "around", "None but for NoiseTunnel", self.around)
        try:
            if self.around is None:
                attribution = make(forward, *layer)
            else:
                attribution = make(_method("around", self.around)(forward, *layer))
        except AttributeError as error:
            expected = "one that explains a forward function (not one that wraps another)"
            raise InputError(
                f"Captum: method must be {expected}, got {first_line(error)}."
            ) from error
        if isinstance(attribution, captum.attr.NoiseTunnel):
            newer = "one of a newer captum (pip install -U captum)"
            known = hasattr(captum.attr.NoiseTunnel, "_add_noise_to_input")
            require(known, "Captum", "method", newer, f"NoiseTunnel of {captum.__version__}")
            # Drawn for each row, it would say that a row changed when only its place did.
            attribution._add_noise_to_input = _same_noise
        return attribution


def _method(name: str, method: str | Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(method, str):
        return method
    import captum.attr

    attribution: Any = getattr(captum.attr, method, None)
    known = hasattr(attribution, "attribute")
    require(known, "Captum", name, "the name of an attribution in captum.attr", method)
    return attribution  # type: ignore[no-any-return]


def _same_noise(x: Tensor, stdev: float, samples: int) -> Tensor:
    """Rows (B, ...) with captum's noise of a single row, (B * samples, ...), a row's together."""
    from captum.attr import NoiseTunnel

    noise: Tensor = NoiseTunnel._add_noise_to_input(torch.zeros_like(x[:1]), stdev, samples)
    return (x[:, None] + noise).flatten(0, 1).detach()


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
