"""The face for scikit-learn: a classifier whose explanations hold still."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from r2et.audit import Audit, audit
from r2et.data import Data, Origin, Split
from r2et.defaults import RADIUS, RECIPE, K
from r2et.errors import require
from r2et.explain import Explainer, Gradient
from r2et.models import MLP
from r2et.models.output import batched_logits
from r2et.rank import ranking
from r2et.region import L2
from r2et.train import Recipe, fit
from r2et.train import recipe as find_recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

WHERE = "R2ETClassifier"
FARTHEST = 1e6  # scaled features beyond it would make float32 and float64 networks disagree


class R2ETClassifier(ClassifierMixin, BaseEstimator):
    """A neural network for tables whose k strongest reasons hold still.

    X: numbers, as an array or a DataFrame, whose column names are kept. Each feature is scaled to
    0..1 over the rows of `fit`; radius, and everything about explanations, is in these units: a
    score is the change of the log-odds of the predicted class over a feature's whole range. A
    feature that is constant in the rows trained on has no influence, and score 0.

    k: how many reasons a person looks at; of n features at most n - 1 count.
    recipe: a name of r2et.train.RECIPES, or a Recipe.
    radius: how far a row may move.
    random_state: of weights, batches and rows set aside.
    hidden: widths of the hidden layers, by default the recipe's or 32.
    epochs: by default the recipe's.
    explainer: what `explain` says and, where it is given, what the recipe holds still; by default
        the gradient.
    validation_fraction: rows set aside to watch the training on (`history_`); 0 trains on all.
    progress: show a bar.

    After fit:
    classes_, n_features_in_, feature_names_in_ (of a DataFrame): as scikit-learn has them.
    k_: how many reasons count.
    network_: float64, takes `inputs(X)`.
    feature_low_, feature_range_: the scaling.
    history_: one entry per epoch.
    """

    def __init__(
        self,
        k: int = K,
        recipe: str | Recipe = RECIPE,
        radius: float = RADIUS,
        random_state: Any = None,
        *,
        hidden: Sequence[int] | None = None,
        epochs: int | None = None,
        explainer: Explainer | None = None,
        validation_fraction: float = 0.1,
        progress: bool = False,
    ) -> None:
        self.k = k
        self.recipe = recipe
        self.radius = radius
        self.random_state = random_state
        self.hidden = hidden
        self.epochs = epochs
        self.explainer = explainer
        self.validation_fraction = validation_fraction
        self.progress = progress

    def fit(self, X: ArrayLike, y: ArrayLike) -> R2ETClassifier:  # noqa: N803
        """Train on rows X (rows, features) and their labels y."""
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        whole = isinstance(self.k, int | np.integer) and not isinstance(self.k, bool)
        require(whole and self.k > 0, WHERE, "k", "a positive whole number", self.k)
        share = self.validation_fraction
        is_valid = isinstance(share, int | float) and 0 <= share < 1
        require(is_valid, WHERE, "validation_fraction", "in [0, 1)", share)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        only = f"one class, {self.classes_[0]}"
        require(len(self.classes_) > 1, WHERE, "y", "of two classes or more", only)
        chosen = find_recipe(self.recipe)
        n = rows.shape[1]
        self.k_ = max(1, min(int(self.k), n - 1))
        self._learn_scale(rows)
        if n == 1:  # one reason cannot change places: nothing to hold still
            chosen = find_recipe(chosen, weight=0.0)
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))
        y_codes = torch.from_numpy(codes.astype(np.int64))
        data = self._data(self._scaled(rows).float(), y_codes, random)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            widths = (chosen.hidden or (32,)) if self.hidden is None else self.hidden
            network = MLP(max(n, 2), widths, classes=len(self.classes_))
        constant = data.train.x.amax(0) == data.train.x.amin(0)
        for part in (data.train, data.val):  # one that only a row set aside tells apart is no bias
            part.x[:, constant] = 0
        _silence(network, constant)
        trained = fit(
            network,
            data,
            chosen,
            k=self.k_,
            radius=self.radius,
            epochs=self.epochs,
            seed=seed,
            explainer=self.explainer,
            progress=self.progress,
        )
        # In float64 a row's outcome does not depend on the rows it is computed with.
        self.network_ = trained.model.double()
        _silence(self.network_, constant)
        self.history_ = trained.history
        scores = self._explainer()(self.network_, data.train.x[:1].double())
        one_each = scores.shape[1] == max(n, 2)
        require(one_each, WHERE, "explainer", "one with a score per feature", self.explainer)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """(rows,) log-odds of classes_[1]; with more classes (rows, classes) logits."""
        logits = batched_logits(self._network(), self.inputs(X))
        logits = logits.diff(dim=1)[:, 0] if len(self.classes_) == 2 else logits
        return np.asarray(logits.numpy())

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """(rows, classes) probabilities."""
        return np.asarray(batched_logits(self._network(), self.inputs(X)).softmax(1).numpy())

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """(rows,) the most probable of classes_."""
        chosen = batched_logits(self._network(), self.inputs(X)).argmax(1).numpy()
        return np.asarray(self.classes_[chosen])

    def explain(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """(rows, features) scores of the predicted class; larger is a stronger reason.

        They are of the scaled features: divide by feature_range_ for the effect of one raw unit.
        """
        scores = self._explainer()(self._network(), self.inputs(X))
        return np.asarray(scores[:, : self.n_features_in_].numpy())

    def reasons(self, X: ArrayLike) -> list[list[str]]:  # noqa: N803
        """For each row the names of its k_ strongest features, strongest first.

        Without column names, features are called x0, x1, ...
        """
        order = ranking(torch.from_numpy(self.explain(X)))[:, : self.k_]
        numbered = [f"x{i}" for i in range(self.n_features_in_)]
        names = [str(name) for name in getattr(self, "feature_names_in_", numbered)]
        return [[names[i] for i in row] for row in order.tolist()]

    def audit(self, X: ArrayLike, y: ArrayLike | None = None, **settings: Any) -> Audit:  # noqa: N803
        """r2et.audit of the network on these rows, at this k, radius and explainer.

        A single feature has nothing to be ranked against, and cannot be audited.
        """
        self._network()
        several = self.n_features_in_ > 1
        require(several, f"{WHERE}.audit", "X", "of two features or more", "one")
        wanted = {
            "k": self.k_,
            "explainer": self._explainer(),
            "region": L2(self.radius),
            "names": getattr(self, "feature_names_in_", None),
            "classes": [str(label) for label in self.classes_],
        }
        labels = None if y is None else self._codes(y)
        return audit(self.network_, self.inputs(X), labels, **{**wanted, **settings})

    def inputs(self, X: ArrayLike) -> Tensor:  # noqa: N803
        """Rows as network_ takes them: (rows, n) float64, scaled to 0..1 over the rows of fit.

        A single feature gets a second one beside it that is always 0.
        """
        check_is_fitted(self)
        return self._scaled(validate_data(self, X, dtype=np.float64, reset=False))

    def _network(self) -> Any:
        check_is_fitted(self)
        return self.network_

    def _explainer(self) -> Explainer:
        return Gradient() if self.explainer is None else self.explainer

    def _codes(self, y: ArrayLike) -> Tensor:
        labels = np.asarray(y)
        strange = sorted(set(labels.tolist()) - set(self.classes_.tolist()), key=str)
        known = ", ".join(map(str, self.classes_))
        require(not strange, f"{WHERE}.audit", "y", f"of {known}", strange[:1])
        return torch.from_numpy(np.searchsorted(self.classes_, labels))

    def _learn_scale(self, rows: NDArray[np.float64]) -> None:
        """Least value and range of each feature; a constant one has range 1."""
        low, high = rows.min(0), rows.max(0)
        # Halves, since the difference of two huge numbers may be too large to be one.
        half = np.minimum(high / 2 - low / 2, np.finfo(np.float64).max / 2)
        self.feature_low_, self.feature_range_ = low, np.where(half > 0, 2 * half, 1.0)

    def _scaled(self, rows: NDArray[np.float64]) -> Tensor:
        moved = (rows / 2 - self.feature_low_ / 2) / (self.feature_range_ / 2)
        scaled = torch.from_numpy(moved.clip(-FARTHEST, FARTHEST))
        return scaled if scaled.shape[1] > 1 else torch.cat([scaled, torch.zeros_like(scaled)], 1)

    def _data(self, x: Tensor, y: Tensor, random: np.random.RandomState) -> Data:
        """Training and validation rows, split within each class; the rows of both if none are."""
        held = np.zeros(len(y), dtype=bool)
        for label in range(len(self.classes_)):
            own = random.permutation(np.flatnonzero(y.numpy() == label))
            held[own[: int(self.validation_fraction * len(own))]] = True
        val = torch.from_numpy(held if held.any() else ~held)
        train = torch.from_numpy(~held)
        names = tuple(f"x{i}" for i in range(x.shape[1]))
        return Data(
            name="table",
            train=Split(x[train], y[train]),
            val=Split(x[val], y[val]),
            test=Split(x[:0], y[:0]),
            names=names,
            groups=(),
            k=self.k_,
            source=Origin("rows given to fit"),
            classes=tuple(map(str, self.classes_)),
        )


def _silence(network: nn.Module, features: Tensor) -> None:
    """Weights 0 for features that are constant in training: whatever they are, they are no reason.

    A loss does not move these weights, the features being 0; left as drawn they would be part of
    every explanation, and a penalty may move them.
    """
    first = next(module for module in network.modules() if isinstance(module, nn.Linear))
    with torch.no_grad():
        first.weight[:, features] = 0
