"""R2ETClassifier: numbers or a table of any cells in, a network whose reasons hold still out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor

from r2et.audit import Audit, audit
from r2et.audit.subject import Subject
from r2et.data import Column, Data, Origin, Split
from r2et.data.column import Kind
from r2et.defaults import RADIUS, RECIPE, K
from r2et.errors import require
from r2et.estimator.encoded_rows import EncodedRowsMixin
from r2et.estimator.encoding import is_frame
from r2et.estimator.training_rows import WHERE, held_out, row_weights
from r2et.explain import Explainer, Gradient
from r2et.models import MLP
from r2et.models.output import batched_logits
from r2et.rank import ranking
from r2et.reason import Reasons
from r2et.reason import reasons as find_reasons
from r2et.region import L2
from r2et.train import Recipe, fit
from r2et.train import recipe as find_recipe
from r2et.train.baselines import fit_boosting
from r2et.train.defaults import silence
from r2et.train.seen_rows import SeenRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


class R2ETClassifier(ClassifierMixin, EncodedRowsMixin):
    """A neural network for tables whose k strongest reasons hold still.

    X: numbers, as an array, a DataFrame, whose column names are kept, or a sparse matrix small
    enough to be written out. Each feature is scaled to 0..1 over the rows of `fit`; radius, and
    everything about explanations, is in these units: a score is the change of the log-odds of the
    predicted class over a feature's whole range. A feature that is constant in the rows trained on
    has no influence, and score 0.

    Or a DataFrame with texts, categories, flags, dates or missing cells: its columns are then
    inferred and encoded as load_table does, categories one-hot, and later rows are read by the
    same schema. Features are those of the encoded rows (`get_feature_names_out`).

    k: how many reasons a person looks at; of n features at most n - 1 count.
    recipe: a name of r2et.train.RECIPES, or a Recipe.
    radius: how far a row may move.
    random_state: of weights, batches and rows set aside.
    hidden: widths of an MLP's hidden layers; by default the network that `r2et.train.fit` makes.
    epochs: by default the recipe's.
    explainer: what `explain` says and, where it is given, what the recipe holds still; by default
        the gradient.
    validation_fraction: rows set aside to watch the training on (`history_`); 0 trains on all.
    progress: show a bar.
    class_weight: what rows of each class count for in the loss, as {label: weight}; "balanced", as
        if every class had as many rows; None, all alike.
    baselines: fit logistic regression and boosting on the same rows too, for `audit` to compare.
    kinds: of a DataFrame, a kind ("category", "integer", ...) or a whole Column for columns that
        would be inferred wrongly; given, also one of numbers alone is read as a table.
    groups: of numbers, lists of features (names or places) that are the categories of one column,
        such as OneHotEncoder's; by default found by their names, () says that there are none.
    max_auc_drop: find the recipe's weight by what it may cost in AUC of the rows set aside, as in
        r2et.train.fit (`search_`).

    After fit:
    classes_, n_features_in_, feature_names_in_ (of a DataFrame): as scikit-learn has them.
    k_: how many reasons count.
    network_: float64, takes `inputs(X)`.
    feature_low_, feature_range_: the scaling of each encoded feature.
    schema_: the columns, with their kinds, units and categories, as Feasible takes it; None where
        numbers cannot be said as a table's (a single feature, names that are the same).
    groups_: features that are the categories of one column.
    encoding_: what makes features of rows.
    history_: one entry per epoch.
    search_: how the weight was found; None where it was given.
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
        kinds: Mapping[str, Kind | Column] | None = None,
        groups: Sequence[Sequence[int | str]] | None = None,
        max_auc_drop: float | None = None,
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
        self.kinds = kinds
        self.groups = groups
        self.max_auc_drop = max_auc_drop

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> R2ETClassifier:
        """Train on rows X (rows, features), or a table of any cells, and their labels y.

        sample_weight: (rows,) what each counts for in the loss; one of weight 0 is as if it were
        not there. Penalties look at all others alike.
        """
        rows, labels = self._table(X, y) if self._is_table(X) else self._numbers(X, y)
        check_classification_targets(labels)
        own: NDArray[np.float64] | None = None
        if sample_weight is not None:
            given = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
            counted = given > 0
            rows = rows.loc[counted] if is_frame(rows) else rows[counted]
            labels, own = labels[counted], given[counted]
        whole = isinstance(self.k, int | np.integer) and not isinstance(self.k, bool)
        require(whole and self.k > 0, WHERE, "k", "a positive whole number", self.k)
        share = self.validation_fraction
        is_valid = isinstance(share, int | float) and 0 <= share < 1
        require(is_valid, WHERE, "validation_fraction", "in [0, 1)", share)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        weights = row_weights(self.class_weight, self.classes_, codes, own)
        only = f"one class, {self.classes_[0]}"
        require(len(self.classes_) > 1, WHERE, "y", "of two classes or more", only)
        chosen = find_recipe(self.recipe)
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))
        held = held_out(codes, self.validation_fraction, random)
        self.encoding_ = self._encoding(rows, held)
        n = len(self.encoding_.names)
        of_reasons = chosen.penalty is not None and chosen.penalty.of_reasons
        ranked = self.encoding_.columns if of_reasons else n
        self.k_ = max(1, min(int(self.k), ranked - 1))
        if ranked == 1:  # one reason cannot change places: nothing to hold still
            chosen = find_recipe(find_recipe("vanilla") if of_reasons else chosen, weight=0.0)
        y_codes = torch.from_numpy(codes.astype(np.int64))
        data = self._data(self.encoding_(rows).float(), y_codes, held)
        weights = None if weights is None else weights[~held]
        seen = SeenRows.of(data if held.any() else _without_val(data))
        constant = data.train.x.amax(0) == data.train.x.amin(0)
        for part in (data.train, data.val):  # one that only a row set aside tells apart is no bias
            part.x[:, constant] = 0
        network: MLP | None = None  # that of `fit`
        if self.hidden is not None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                network = MLP(max(n, 2), self.hidden, classes=len(self.classes_))
            silence(network, constant)
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
            baselines=(self.max_auc_drop is not None or None) if self.baselines else False,
            sample_weight=weights,
            max_auc_drop=self.max_auc_drop,
        )
        # In float64 a row's outcome does not depend on the rows it is computed with.
        self.network_ = trained.model.double()
        silence(self.network_, constant)
        self.history_ = trained.history
        self.search_ = trained.search
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
        return np.asarray(scores[:, : len(self.encoding_.names)].numpy())

    def reasons(self, X: ArrayLike, **settings: Any) -> Reasons:  # noqa: N803
        """The few columns that pushed each row toward a class, in words and units: r2et.reasons.

        settings: those of r2et.reasons, such as region=Feasible(model.schema_, moves={"age": 2}).
        toward is one of classes_, reference are rows as X; k is by default the classifier's, which
        here counts columns.
        """
        self._network()
        wanted: dict[str, Any] = {"k": int(self.k), **settings}
        if wanted.get("toward") is not None:
            wanted["toward"] = int(self._codes([wanted["toward"]], f"{WHERE}.reasons", "toward"))
        # A tensor would be taken for encoded rows.
        rows = X.numpy(force=True) if isinstance(X, Tensor) else X
        return find_reasons(self, rows, **wanted)

    def top_features(self, X: ArrayLike) -> list[list[str]]:  # noqa: N803
        """For each row the names of its k_ strongest features by `explain`, strongest first.

        Without column names, features are called x0, x1, ...
        """
        order = ranking(torch.from_numpy(self.explain(X)))[:, : self.k_]
        names = self.get_feature_names_out().tolist()
        return [[names[i] for i in row] for row in order.tolist()]

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
        several = len(self.encoding_.names) > 1
        require(several, f"{WHERE}.audit", "X", "of two features or more", "one")
        wanted: dict[str, Any] = {
            "k": self.k_,
            "explainer": self._explainer(),
            "region": L2(self.radius),
            "classes": [str(label) for label in self.classes_],
            "name": WHERE,
        }
        labels = None if y is None else self._codes(y, f"{WHERE}.audit", "y")
        subject = Subject(self.network_, self.trained_, self.boosting_)
        wanted = {**wanted, **settings, "all_rows": all_rows}
        return audit(subject, self.inputs(X), labels, **wanted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _network(self) -> Any:
        check_is_fitted(self)
        return self.network_

    def _explainer(self) -> Explainer:
        return Gradient() if self.explainer is None else self.explainer

    def _codes(self, y: ArrayLike, where: str, name: str) -> Tensor:
        labels = np.asarray(y)
        strange = sorted(set(labels.tolist()) - set(self.classes_.tolist()), key=str)
        known = ", ".join(map(str, self.classes_))
        require(not strange, where, name, f"of {known}", strange[:1])
        return torch.from_numpy(np.searchsorted(self.classes_, labels))

    def _data(self, x: Tensor, y: Tensor, held: NDArray[np.bool_]) -> Data:
        """Training and validation rows; the training rows twice if none are set aside."""
        val = torch.from_numpy(held if held.any() else ~held)
        train = torch.from_numpy(~held)
        encoding = self.encoding_
        single = x.shape[1] != len(encoding.names)
        return Data(
            name="table",
            train=Split(x[train], y[train]),
            val=Split(x[val], y[val]),
            test=Split(x[:0], y[:0]),
            names=(*encoding.names, "nothing") if single else encoding.names,
            groups=encoding.groups,
            k=self.k_,
            source=Origin("rows given to fit"),
            classes=tuple(map(str, self.classes_)),
            schema=None if single else encoding.schema,
        )


def _without_val(data: Data) -> Data:
    """The same, its training rows not called validation rows too."""
    return replace(data, val=Split(data.val.x[:0], data.val.y[:0]))
