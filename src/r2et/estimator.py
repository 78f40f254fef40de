"""The face for scikit-learn: a classifier whose explanations hold still."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor, nn

from r2et.audit import Audit, audit
from r2et.audit.subject import Subject
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
from r2et.train.baselines import fit_boosting
from r2et.train.seen_rows import SeenRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

WHERE = "R2ETClassifier"
DENSE = 2**26  # numbers that a sparse X is written out to: half a gigabyte
FARTHEST = 1e6  # scaled features beyond it would make float32 and float64 networks disagree


class R2ETClassifier(ClassifierMixin, BaseEstimator):
    """A neural network for tables whose k strongest reasons hold still.

    X: numbers, as an array, a DataFrame, whose column names are kept, or a sparse matrix small
    enough to be written out. Each feature is scaled to 0..1 over the rows of `fit`; radius, and
    everything about explanations, is in these units: a score is the change of the log-odds of the
    predicted class over a feature's whole range. A feature that is constant in the rows trained on
    has no influence, and score 0.

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
    class_weight: what rows of each class count for in the loss, as {label: weight}; "balanced", as
        if every class had as many rows; None, all alike.
    baselines: fit logistic regression and boosting on the same rows too, for `audit` to compare.

    After fit:
    classes_, n_features_in_, feature_names_in_ (of a DataFrame): as scikit-learn has them.
    k_: how many reasons count.
    network_: float64, takes `inputs(X)`.
    feature_low_, feature_range_: the scaling.
    history_: one entry per epoch.
    trained_: the network with fingerprints of the rows it was trained on, for `audit`.
    boosting_: the boosting to compare with; None without baselines, or of very many classes.
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
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        baselines: bool = True,
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
        self.class_weight = class_weight
        self.baselines = baselines

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> R2ETClassifier:
        """Train on rows X (rows, features) and their labels y.

        sample_weight: (rows,) what each counts for in the loss; one of weight 0 is as if it were
        not there. Penalties look at all others alike.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, accept_sparse="csr")  # noqa: N806
        rows, labels = _dense(X), np.asarray(y)
        check_classification_targets(labels)
        own: NDArray[np.float64] | None = None
        if sample_weight is not None:
            given = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
            counted = given > 0
            rows, labels, own = rows[counted], labels[counted], given[counted]
        whole = isinstance(self.k, int | np.integer) and not isinstance(self.k, bool)
        require(whole and self.k > 0, WHERE, "k", "a positive whole number", self.k)
        share = self.validation_fraction
        is_valid = isinstance(share, int | float) and 0 <= share < 1
        require(is_valid, WHERE, "validation_fraction", "in [0, 1)", share)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        weights = self._weights(codes, own)
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
        data, trained_on = self._data(self._scaled(rows).float(), y_codes, random)
        weights = None if weights is None else weights[trained_on]
        seen = SeenRows.of(data if trained_on.sum() < len(codes) else _without_val(data))
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
            baselines=None if self.baselines else False,
            sample_weight=weights,
        )
        # In float64 a row's outcome does not depend on the rows it is computed with.
        self.network_ = trained.model.double()
        _silence(self.network_, constant)
        self.history_ = trained.history
        assert trained.trained is not None
        self.trained_ = replace(trained.trained, model=self.network_, seen=seen)
        self.boosting_ = None
        if self.baselines:
            x, y_trained = data.train.x.double().numpy(), data.train.y.numpy()
            count = len(self.classes_)
            self.boosting_ = fit_boosting(x, y_trained, weights, seed=seed, count=count)
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
        names = self.get_feature_names_out().tolist()
        return [[names[i] for i in row] for row in order.tolist()]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of what `explain` scores, those of the features; a Pipeline asks it last of all.

        input_features: by default feature_names_in_, or else x0, x1, ...
        """
        check_is_fitted(self)
        own = getattr(self, "feature_names_in_", None)
        if input_features is None:
            numbered = [f"x{i}" for i in range(self.n_features_in_)]
            return np.asarray(numbered if own is None else own, dtype=object)
        names = np.asarray(input_features, dtype=object)
        is_valid = names.shape == (self.n_features_in_,)
        where, name = f"{WHERE}.get_feature_names_out", "input_features"
        require(is_valid, where, name, f"{self.n_features_in_} names", f"shape {names.shape}")
        same = own is None or list(own) == list(names)
        require(same, where, name, "equal to feature_names_in_", names[:3].tolist())
        return names

    def audit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike | None = None,
        *,
        all_rows: bool = False,
        **settings: Any,
    ) -> Audit:
        """r2et.audit of the network on these rows, at this k, radius and explainer.

        Rows that it was trained or validated on are recognised, said in the first line and left
        out; all_rows=True audits them too. Beside it stand the logistic regression and the boosting
        that were fitted on the same rows. A single feature has nothing to be ranked against, and
        cannot be audited.
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
            "name": WHERE,
        }
        labels = None if y is None else self._codes(y)
        subject = Subject(self.network_, self.trained_, self.boosting_)
        wanted = {**wanted, **settings, "all_rows": all_rows}
        return audit(subject, self.inputs(X), labels, **wanted)

    def inputs(self, X: ArrayLike) -> Tensor:  # noqa: N803
        """Rows as network_ takes them: (rows, n) float64, scaled to 0..1 over the rows of fit.

        A single feature gets a second one beside it that is always 0.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)  # noqa: N806
        return self._scaled(_dense(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

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

    def _weights(
        self, codes: NDArray[np.int64], sample_weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """(rows,) what each row counts for, of its own and of its class; None: all alike."""
        given = self.class_weight
        if given is None:
            return sample_weight
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        name, expected = "class_weight", "None, 'balanced' or {label: weight}"
        if isinstance(given, str):
            require(given == "balanced", WHERE, name, expected, given)
            masses = np.bincount(codes, weights=weights)
            by_class = weights.sum() / (len(masses) * masses)
            return np.asarray(weights * by_class[codes])
        require(isinstance(given, Mapping), WHERE, name, expected, given)
        known = self.classes_.tolist()
        strange = [label for label in given if label not in known]
        labels = ", ".join(map(str, known))
        require(not strange, WHERE, name, f"of the labels {labels}", strange[:1])
        by_class = np.array([given.get(label, 1.0) for label in known], dtype=np.float64)
        is_valid = bool((np.isfinite(by_class) & (by_class >= 0)).all() and by_class.any())
        require(is_valid, WHERE, name, "of finite weights from 0 on, not all 0", given)
        return np.asarray(weights * by_class[codes])

    def _data(
        self, x: Tensor, y: Tensor, random: np.random.RandomState
    ) -> tuple[Data, NDArray[np.bool_]]:
        """Training and validation rows, split within each class; the rows of both if none are.

        With it (rows,), which are to train on.
        """
        held = np.zeros(len(y), dtype=bool)
        for label in range(len(self.classes_)):
            own = random.permutation(np.flatnonzero(y.numpy() == label))
            held[own[: int(self.validation_fraction * len(own))]] = True
        val = torch.from_numpy(held if held.any() else ~held)
        train = torch.from_numpy(~held)
        names = tuple(f"x{i}" for i in range(x.shape[1]))
        data = Data(
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
        return data, ~held


def _dense(rows: Any) -> NDArray[np.float64]:
    """Rows as an array; a sparse matrix is written out where that is not too much."""
    if not issparse(rows):  # in one layout: sums of another differ in their last bits
        return np.ascontiguousarray(rows)
    size = rows.shape[0] * rows.shape[1]
    expected = f"dense, or a sparse matrix of at most {DENSE} numbers with its zeros"
    got = f"{rows.shape[0]} rows of {rows.shape[1]} features"
    require(size <= DENSE, WHERE, "X", expected, got)
    return np.asarray(rows.toarray())


def _without_val(data: Data) -> Data:
    """The same, its training rows not called validation rows too."""
    return replace(data, val=Split(data.val.x[:0], data.val.y[:0]))


def _silence(network: nn.Module, features: Tensor) -> None:
    """Weights 0 for features that are constant in training: whatever they are, they are no reason.

    A loss does not move these weights, the features being 0; left as drawn they would be part of
    every explanation, and a penalty may move them.
    """
    first = next(module for module in network.modules() if isinstance(module, nn.Linear))
    with torch.no_grad():
        first.weight[:, features] = 0
