"""Explanations: a model and a batch in, one score per feature out."""

from r2et.explain.base import Explainer
from r2et.explain.callable_explainer import CallableExplainer, as_explainer
from r2et.explain.captum_adapter import Captum
from r2et.explain.concept import Concept
from r2et.explain.gradient import Gradient, GradientTimesInput
from r2et.explain.integrated_gradients import IntegratedGradients
from r2et.explain.quantus_adapter import quantus_explain
from r2et.explain.smoothgrad import SmoothGrad

__all__ = [
    "CallableExplainer",
    "Captum",
    "Concept",
    "Explainer",
    "Gradient",
    "GradientTimesInput",
    "IntegratedGradients",
    "SmoothGrad",
    "as_explainer",
    "quantus_explain",
]
