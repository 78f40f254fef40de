"""What is audited: a network, and what is known of its training."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import nn

from r2et.audit.settings import WHERE
from r2et.audit.statistics import UNKNOWN, Estimate
from r2et.data import DATASETS, Split, load
from r2et.errors import require
from r2et.train import Fit, Trained
from r2et.train.baselines import Baselines, FittedBoosting, Logistic
from r2et.train.seen_rows import SeenRows


class Subject(NamedTuple):
    """A network, and its training where that is known.

    boosted: the boosting that was fitted on the same rows, where it was kept.
    """

    model: nn.Module
    trained: Trained | None = None
    boosted: FittedBoosting | None = None

    @classmethod
    def of(cls, model: Any) -> Subject:
        """A module; or what `fit`, `load_trained` or an estimator made of one."""
        if isinstance(model, Subject):
            return model
        trained = model.trained if isinstance(model, Fit) else model
        if isinstance(trained, Trained):
            return cls(trained.model, trained)
        module = model.model if isinstance(model, Fit) else model
        expected = "a torch.nn.Module, or what fit or load_trained gave"
        require(isinstance(module, nn.Module), WHERE, "model", expected, module)
        return cls(module)

    @property
    def seen(self) -> SeenRows | None:
        """Fingerprints of the rows of its training, where they were kept."""
        return None if self.trained is None else self.trained.seen

    @property
    def logistic(self) -> Logistic | None:
        """The logistic regression that was fitted on the same rows."""
        return None if self._baselines is None else self._baselines.logistic

    @property
    def boosting(self) -> Estimate:
        """Test AUC of the boosting that was fitted on the same rows."""
        boosting = None if self._baselines is None else self._baselines.boosting
        if boosting is None or boosting.auc_test is None or self.seen is None:
            return UNKNOWN
        return Estimate(boosting.auc_test, None, None, len(self.seen.test.digest))

    @property
    def _baselines(self) -> Baselines | None:
        return None if self.trained is None else self.trained.baselines

    def test_rows(self, where: str = WHERE, name: str = "x") -> Split:
        """The test part of its training: kept in its folder, or that of a named data set."""
        kept = None if self.seen is None else self.seen.held_out
        if kept is not None:
            return kept
        known = self.trained is not None and self.trained.data in DATASETS
        expected = "given for a model whose training has kept no test rows"
        require(known, where, name, expected, "nothing")
        assert self.trained is not None
        return load(self.trained.data).test
