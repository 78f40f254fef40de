"""Which of captum's attributions are, number for number, explanations of ours.

| captum | ours |
|---|---|
| Saliency | Gradient |
| InputXGradient | GradientTimesInput |
| IntegratedGradients, but riemann_trapezoid, whose weights do not sum to 1 | IntegratedGradients |
| NoiseTunnel of Saliency with abs=False, smoothgrad | SmoothGrad, but for the noise drawn |

The last is equal in distribution only. Saliency's own default, abs=True, makes a NoiseTunnel a mean
of absolute gradients, which is no SmoothGrad.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from r2et.errors import InputError
from r2et.explain.base import Explainer
from r2et.explain.gradient import Gradient, GradientTimesInput
from r2et.explain.integrated_gradients import IntegratedGradients, Rule
from r2et.explain.smoothgrad import SmoothGrad

RULES: dict[str, Rule] = {
    "gausslegendre": "gauss_legendre",
    "riemann_left": "left",
    "riemann_middle": "midpoint",
    "riemann_right": "right",
}
# Keyword arguments of captum's attribute() by which no attribution changes.
UNIMPORTANT = {"internal_batch_size", "return_convergence_delta", "nt_samples_batch_size"}


def equivalent_of(
    attribution: Any, forward: nn.Module, settings: Mapping[str, Any], *, seed: int, **common: Any
) -> Explainer | None:
    """Our explainer with the scores of captum's attribution of `forward`; None if there is none.

    settings: keyword arguments of its attribute(). common: settings of our explainers.
    """
    import captum.attr

    given = {name: value for name, value in settings.items() if name not in UNIMPORTANT}
    tunnel = type(attribution) is captum.attr.NoiseTunnel
    kind = attribution.attribution_method if tunnel else attribution
    if kind.forward_func is not forward:  # a function of the caller's made something else of it
        return None
    try:
        if type(kind) is captum.attr.Saliency:
            absolute = given.pop("abs", True)
            return (
                _smooth(given, absolute, seed, common)
                if tunnel
                else _gradient(given, absolute, common)
            )
        if tunnel:
            return None
        if type(kind) is captum.attr.InputXGradient and not given:
            return GradientTimesInput(**common)
        if type(kind) is captum.attr.IntegratedGradients and kind.multiplies_by_inputs:
            return _integrated(given, common)
    except InputError:  # settings that ours do not take; what captum makes of them, captum says
        pass
    return None


def _gradient(given: dict[str, Any], absolute: object, common: dict[str, Any]) -> Explainer | None:
    summed = common["groups"] is not None or common["reduce"] in ("upper", "abs_upper")
    if given or (absolute and summed):
        return None
    if absolute and common["reduce"] == "signed":
        common = {**common, "reduce": "abs"}
    return Gradient(**common)


def _smooth(
    given: dict[str, Any], absolute: object, seed: int, common: dict[str, Any]
) -> Explainer | None:
    kind, samples = given.pop("nt_type", "smoothgrad"), given.pop("nt_samples", 5)
    sigma = given.pop("stdevs", 1.0)
    sigma = sigma[0] if isinstance(sigma, tuple) and len(sigma) == 1 else sigma
    if given or absolute or kind != "smoothgrad":
        return None
    return SmoothGrad(samples=samples, sigma=sigma, seed=seed, **common)


def _integrated(given: dict[str, Any], common: dict[str, Any]) -> Explainer | None:
    rule = RULES.get(given.pop("method", "gausslegendre"))
    points, start = given.pop("n_steps", 50), given.pop("baselines", None)
    start = start[0] if isinstance(start, tuple) and len(start) == 1 else start
    if isinstance(start, Tensor) and start.numel() == 1:
        start = start.item()
    if isinstance(start, Tensor) and len(start) == 1:
        start = tuple(start.detach().to(torch.float64).flatten().tolist())
    is_valid = start is None or isinstance(start, int | float | tuple)
    if given or rule is None or not is_valid:
        return None
    baseline = 0.0 if start is None else start
    return IntegratedGradients(points=points, baseline=baseline, rule=rule, **common)
