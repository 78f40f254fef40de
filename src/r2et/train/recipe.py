"""Recipes: the papers' methods and ours, each as settings of one training loop."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from r2et.config import Configurable
from r2et.errors import InputError, require
from r2et.explain import Explainer, Gradient, GradientTimesInput
from r2et.penalty import (
    R2ET,
    SSR,
    AdversarialTraining,
    BallR2ET,
    CertifiedRanking,
    CertifiedRatio,
    EstimatedHessian,
    ExactHessian,
    Penalty,
    ReasonGaps,
)
from r2et.region import Region


@dataclass(frozen=True)
class Recipe(Configurable):
    """How a network is trained: loss + weight * penalty, by Adam.

    penalty: its k, and radius where it has one, are filled in by `fit`.
    weight: the penalty's factor l; None for the default of a penalty that has one.
    adaptive: scale the penalty to the loss first, weight * |(loss + 1) / penalty| (the papers).
    every: evaluate the penalty on every n-th batch only, n times as heavy.
    warm_up: share of the training in which the penalty's radius grows from 0, or its weight if it
        has no radius.
    cool_down: share of it, at the end, in which lr falls to 0.
    loss_weight: 0 where the penalty replaces the loss.
    rho: train a softplus_rho copy of the network.
    linear: train a linear model instead.
    epochs: by default as many as make 3000 batches, within 10..200.
    batch: rows per step.
    lr: Adam's step size.
    weight_decay: Adam's.
    patience: stop after so many epochs without a better validation AUC.
    hidden: widths of the hidden layers where the network is left to the recipe; None for the
        defaults of the data. Not in the repr: a record has the network itself.
    about: what it is, in a few words.
    """

    # A name changes nothing; `fit` and the benchmark tell it beside.
    config_excluded: ClassVar[tuple[str, ...]] = ("name", "about")

    name: str
    penalty: Penalty | None = None
    weight: float | None = 1.0
    adaptive: bool = False
    every: int = 1
    warm_up: float = 0.0
    cool_down: float = 0.0
    loss_weight: float = 1.0
    rho: float | None = None
    linear: bool = False
    epochs: int | None = None
    batch: int = 256
    lr: float = 0.01
    weight_decay: float = 0.0
    patience: int | None = None
    hidden: tuple[int, ...] | None = field(default=None, repr=False)
    about: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        where = "recipe"
        is_valid = self.penalty is None or isinstance(self.penalty, Penalty)
        require(is_valid, where, "penalty", "None or a Penalty", self.penalty)
        for name in ("every", "batch"):
            value = getattr(self, name)
            require(type(value) is int and value > 0, where, name, "a positive whole number", value)
        for name in ("epochs", "patience"):
            value = getattr(self, name)
            is_valid = value is None or (type(value) is int and value > 0)
            require(is_valid, where, name, "None or a positive whole number", value)
        is_valid = self.hidden is None or (
            isinstance(self.hidden, tuple) and all(type(w) is int and w > 0 for w in self.hidden)
        )
        require(is_valid, where, "hidden", "None or a tuple of positive whole numbers", self.hidden)
        for name in ("loss_weight", "weight_decay"):
            require(_number(getattr(self, name), 0), where, name, "0 or more", getattr(self, name))
        usual = None if self.penalty is None else self.penalty.usual_weight
        is_valid = _number(self.weight, 0) or (self.weight is None and usual is not None)
        expected = "0 or more" if usual is None else "None, or 0 or more"
        require(is_valid, where, "weight", expected, self.weight)
        require(_number(self.lr, 0) and self.lr > 0, where, "lr", "positive", self.lr)
        for name in ("warm_up", "cool_down"):
            value = getattr(self, name)
            require(_number(value, 0) and value <= 1, where, name, "in 0..1", value)
        is_valid = self.rho is None or (_number(self.rho, 0) and self.rho > 0)
        require(is_valid, where, "rho", "None or positive", self.rho)
        for name in ("adaptive", "linear"):
            value = getattr(self, name)
            require(isinstance(value, bool), where, name, "True or False", value)

    def prepared(
        self,
        k: int,
        radius: float,
        explainer: Explainer | None = None,
        region: Region | None = None,
    ) -> Recipe:
        """This recipe with its penalty set for k, a radius, an explanation, and a region."""
        if self.penalty is None:
            return self
        own = {f.name for f in fields(self.penalty)}
        wanted = {"k": k, "radius": radius, "explainer": explainer, "region": region}
        if self.penalty.of_reasons:  # its ball is in units of the region
            wanted["radius"] = None
        changes: dict[str, Any] = {n: v for n, v in wanted.items() if n in own and v is not None}
        penalty = replace(self.penalty, **changes)
        weight = penalty.usual_weight if self.weight is None else self.weight
        return replace(self, penalty=penalty, weight=weight)

    @property
    def explainer(self) -> Explainer:
        """The explanation that is held still; the gradient where none is."""
        return Gradient() if self.penalty is None else self.penalty.explainer

    @property
    def active(self) -> bool:
        """Whether there is a penalty that weighs anything."""
        return self.penalty is not None and self.weight != 0


def _number(value: object, low: float) -> bool:
    is_valid = isinstance(value, int | float) and not isinstance(value, bool)
    return is_valid and math.isfinite(float(value)) and float(value) >= low  # type: ignore[arg-type]


def _ramped(name: str, penalty: Penalty, *, every: int = 1, about: str) -> Recipe:
    """From the start, a penalty on curvature keeps a deep network from learning anything."""
    return Recipe(name, penalty, 0.01, every=every, warm_up=0.5, about=about)


_ALL = (
    Recipe("vanilla", about="the loss alone"),
    Recipe("wd", weight_decay=1e-3, about="weight decay"),
    Recipe("sp", rho=1.0, about="softplus in place of ReLU"),
    _ramped("est-h", EstimatedHessian(), about="curvature along the gradient's signs"),
    _ramped("exact-h", ExactHessian(), about="norm of the whole Hessian; tables"),
    _ramped("ssr", SSR(), about="largest eigenvalue of the Hessian; tables"),
    Recipe("at", AdversarialTraining(), loss_weight=0.0, about="the loss at an attacked input"),
    Recipe("cl", CertifiedRatio(), 0.01, about="the radius of Prop. 4.5, estimated; retraining"),
    _ramped("r2et", R2ET(), every=4, about="eq. (6): gaps and curvature"),
    _ramped("r2et-mm", R2ET(pairs="closest"), every=4, about="the k closest pairs, and curvature"),
    _ramped("r2et-nh", R2ET(l2=0.0), every=4, about="gaps alone"),
    _ramped(
        "r2et-mm-nh", R2ET(pairs="closest", l2=0.0), every=4, about="the k closest pairs alone"
    ),
    Recipe("r2et-ball", BallR2ET(), 0.1, warm_up=0.5, about="scale-free, across the whole ball"),
    Recipe(
        "certified",
        CertifiedRanking(),
        None,
        every=2,
        warm_up=0.5,
        about="gaps that are proved throughout the ball",
    ),
    Recipe(
        "certified-individual",
        CertifiedRanking(individuality=0.015),
        1.5,
        every=3,
        warm_up=0.5,
        cool_down=0.5,
        hidden=(256,),
        about="the same, and rows far apart with sets of their own; radius 0.1, wide networks",
    ),
    Recipe(
        "r2et-reasons",
        ReasonGaps(),
        0.3,
        every=2,
        warm_up=0.5,
        hidden=(64,),
        about="gaps of the reasons that people are given: one per column, over real changes",
    ),
    Recipe(
        "certified-reasons",
        CertifiedRanking(
            explainer=GradientTimesInput(reduce="signed"), radius=2.0, individuality=0.02
        ),
        1.0,
        every=2,
        warm_up=0.5,
        about="the same against the proof, over twice the region's moves of numbers",
    ),
    Recipe("linear", linear=True, about="logistic regression, the honest baseline"),
)
RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _ALL}


def recipe(name: str | Recipe, **changes: Any) -> Recipe:
    """A recipe by its name, changed: recipe("r2et", weight=0.1, l2=0.0).

    A change may name a field of the recipe or one of its penalty.
    """
    chosen = name if isinstance(name, Recipe) else RECIPES.get(str(name))
    if chosen is None:
        near = difflib.get_close_matches(str(name), RECIPES, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        require(False, "recipe", "name", f"one of {', '.join(RECIPES)}{hint}", name)
    assert chosen is not None
    own = {f.name for f in fields(chosen)} - {"name", "about"}
    for name_of_fit in ("k", "radius"):
        given = name_of_fit in changes
        require(not given, "recipe", name_of_fit, "given to fit, not to a recipe", changes)
    inner = set() if chosen.penalty is None else {f.name for f in fields(chosen.penalty)}
    for change in changes:
        known = ", ".join(sorted(own | inner))
        require(change in own | inner, "recipe", "a change", f"one of {known}", change)
    deep = {n: v for n, v in changes.items() if n in inner and n not in own}
    flat = {n: v for n, v in changes.items() if n in own}
    try:
        if deep and chosen.penalty is not None:
            flat = {"penalty": replace(chosen.penalty, **deep), **flat}
        return replace(chosen, **flat)
    except TypeError as error:
        raise InputError(f"recipe: {error}.") from error
