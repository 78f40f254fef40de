"""The rows of an estimator: numbers or a table of any cells, read alike in fit and later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from r2et.data import Schema
from r2et.errors import require
from r2et.estimator.encoding import (
    Encoding,
    NumberEncoding,
    TableEncoding,
    is_frame,
    is_table,
)
from r2et.estimator.training_rows import WHERE, dense

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class EncodedRowsMixin(BaseEstimator):
    """How X becomes the features of a network, and what these are called.

    encoding_: what `fit` found. Of the constructor's settings `kinds` and `groups` are read.
    """

    encoding_: Encoding
    kinds: Any
    groups: Any
    n_features_in_: int

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of what `explain` scores, one per encoded feature; a Pipeline asks it last of all.

        input_features: by default feature_names_in_, or else x0, x1, ...
        """
        check_is_fitted(self)
        own = getattr(self, "feature_names_in_", None)
        encoded = np.asarray(self.encoding_.names, dtype=object)
        if input_features is None:
            return encoded
        names = np.asarray(input_features, dtype=object)
        is_valid = names.shape == (self.n_features_in_,)
        where, name = f"{WHERE}.get_feature_names_out", "input_features"
        require(is_valid, where, name, f"{self.n_features_in_} names", f"shape {names.shape}")
        same = own is None or list(own) == list(names)
        require(same, where, name, "equal to feature_names_in_", names[:3].tolist())
        return encoded if isinstance(self.encoding_, TableEncoding) else names

    def inputs(self, X: ArrayLike) -> Tensor:  # noqa: N803
        """Rows as network_ takes them: (rows, n) float64, scaled to 0..1 over the rows of fit.

        A single feature gets a second one beside it that is always 0.
        """
        check_is_fitted(self)
        if isinstance(self.encoding_, TableEncoding):
            got = type(X).__name__
            require(is_frame(X), WHERE, "X", "a DataFrame with the columns of fit", got)
            return self.encoding_(validate_data(self, X, reset=False, skip_check_array=True))
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)  # noqa: N806
        return self.encoding_(dense(X))

    @property
    def schema_(self) -> Schema | None:
        """The columns in words and units."""
        return self.encoding_.schema

    @property
    def reads_tables_(self) -> bool:
        """Whether rows are read by schema_, and not as numbers."""
        return isinstance(self.encoding_, TableEncoding)

    @property
    def groups_(self) -> tuple[tuple[int, ...], ...]:
        """Features that are the categories of one column."""
        return self.encoding_.groups

    @property
    def feature_low_(self) -> NDArray[np.float64]:
        """Raw value of each feature that is 0 for the network."""
        return self.encoding_.low

    @property
    def feature_range_(self) -> NDArray[np.float64]:
        """Raw units between 0 and 1."""
        return self.encoding_.size

    def _is_table(self, X: Any) -> bool:  # noqa: N803
        """Whether rows are read by a schema: cells that are no numbers, gaps, or kinds given."""
        if self.kinds is not None:
            require(is_frame(X), WHERE, "kinds", "left out unless X is a DataFrame", self.kinds)
            return True
        return is_table(X)

    def _table(self, X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:  # noqa: N803
        """A DataFrame as it is, and labels (rows,)."""
        expected = "None for a table of other cells than numbers, whose columns are known"
        require(self.groups is None, WHERE, "groups", expected, self.groups)
        rows, labels = validate_data(self, X, y, skip_check_array=True)
        checked = check_array(labels, ensure_2d=False, dtype=None, input_name="y", estimator=self)
        labels = column_or_1d(checked, warn=True)
        check_consistent_length(rows, labels)
        # By place from here on: an index may name several rows.
        return rows.reset_index(drop=True), np.asarray(labels)

    def _numbers(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, NDArray[Any]]:  # noqa: N803
        """Rows (rows, features) float64, and labels (rows,)."""
        X, y = validate_data(self, X, y, dtype=np.float64, accept_sparse="csr")  # noqa: N806
        return dense(X), np.asarray(y)

    def _encoding(self, rows: Any, held: NDArray[np.bool_]) -> Encoding:
        """What the rows of fit teach about columns, scales and categories."""
        if is_frame(rows):
            return TableEncoding.of(WHERE, rows, self.kinds, np.flatnonzero(held))
        own = getattr(self, "feature_names_in_", None)
        names = [f"x{i}" for i in range(rows.shape[1])] if own is None else list(own)
        return NumberEncoding.of(WHERE, rows, names, self.groups)
