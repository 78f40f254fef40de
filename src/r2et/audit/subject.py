"""What is audited: a network, and what is known of its training."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from r2et.audit.settings import WHERE
from r2et.audit.statistics import UNKNOWN, Estimate
from r2et.data import DATASETS, Split, load
from r2et.errors import InputError, first_line, require
from r2et.explain import Explainer
from r2et.models.compiled import is_compiled, original_module
from r2et.train import Fit, Trained
from r2et.train.baselines import Baselines, FittedBoosting, Logistic
from r2et.train.seen_rows import SeenRows

EXPECTED = (
    "a torch.nn.Module, what fit or load_trained gave, or a fitted R2ETClassifier, skorch net or "
    "Pipeline that ends in one of these"
)

ONNX = (
    "a torch.nn.Module, whose gradients an attack and a proof follow (ONNX has none: convert it by"
    " r2et.audit.from_onnx, or give the PyTorch model that it was exported from)"
)
COMPILED = "the model was compiled by torch.compile: its original module is used, with its weights"
LIGHTNING = ("lightning.pytorch.core.module", "pytorch_lightning.core.module")


class Subject(NamedTuple):
    """A network, and its training where that is known.

    boosted: the boosting that was fitted on the same rows, where it was kept.
    steps: of a Pipeline, what its steps before the last make of the rows given.
    encode: of an estimator, what makes the network's inputs of these.
    by_schema: whether that is no more than reading them by the schema of its training.
    labels: the classes as y has them, where they are not numbers from 0 on.
    explainer: what its explanations are, where that was chosen with it.
    feature_names: of the inputs, where steps before the network name them.
    title: what it is called, if not by its network's class.
    notes: what was done to get at the network, in sentences.
    """

    model: nn.Module
    trained: Trained | None = None
    boosted: FittedBoosting | None = None
    steps: Callable[[Any], Any] | None = None
    encode: Callable[[Any], Any] | None = None
    by_schema: bool = False
    labels: tuple[Any, ...] | None = None
    explainer: Explainer | None = None
    feature_names: tuple[str, ...] | None = None
    title: str | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Any) -> Subject:
        """A module; what `fit`, `load_trained` or an estimator made of one; or a fitted Pipeline.

        Of a module that was compiled the original is taken. Estimators are known by what they hold,
        as scikit-learn knows them: `steps` of a Pipeline, `best_estimator_` of a search, `network_`
        of an R2ETClassifier, `module_` of a skorch net.
        """
        return model if isinstance(model, Subject) else cls._known(model)._opened()

    @classmethod
    def _known(cls, model: Any) -> Subject:
        trained = model.trained if isinstance(model, Fit) else model
        if isinstance(trained, Trained):
            return cls(trained.model, trained)
        module = model.model if isinstance(model, Fit) else model
        if isinstance(module, nn.Module):
            return cls(module)
        if hasattr(model, "best_estimator_"):
            return cls._known(model.best_estimator_)
        if isinstance(getattr(model, "steps", None), list):
            return cls._of_pipeline(model)
        network = getattr(model, "network_", getattr(model, "module_", None))
        _refuse_onnx(model)
        require(isinstance(network, nn.Module), WHERE, "model", EXPECTED, model)
        assert network is not None
        if not hasattr(model, "trained_"):
            return cls(network, title=type(model).__name__)
        own = getattr(model, "feature_names_in_", None)
        return cls(
            network,
            model.trained_,
            model.boosting_,
            encode=model.inputs,
            by_schema=model.reads_tables_,
            labels=tuple(model.classes_.tolist()),
            explainer=model.explainer,
            feature_names=None if own is None else tuple(map(str, model.get_feature_names_out())),
            title=type(model).__name__,
        )

    def _opened(self) -> Subject:
        """The same with a network that can be traced, and that computes something."""
        network = self.model
        written = type(network).forward is not nn.Module.forward
        # Lightning's own class passes the call on to torch's, which has none.
        written = written and type(network).forward.__module__ not in LIGHTNING
        expected = "one whose forward(x) gives logits (or give the network within it)"
        got = f"{type(network).__name__}, which has no forward of its own"
        require(written or is_compiled(network), WHERE, "model", expected, got)
        if not is_compiled(network):
            return self
        called = self.title or type(original_module(network)).__name__
        return self._replace(
            model=original_module(network), title=called, notes=(*self.notes, COMPILED)
        )

    @classmethod
    def _of_pipeline(cls, pipeline: Any) -> Subject:
        """The network of the last step, behind the steps before it."""
        last = cls._known(pipeline.steps[-1][1])
        before = [step for _, step in pipeline.steps[:-1] if step not in (None, "passthrough")]

        def transform(rows: Any) -> Any:
            try:
                for step in before:
                    rows = step.transform(rows)
            except (ValueError, TypeError, AttributeError) as error:
                if isinstance(error, InputError):
                    raise
                expected = "rows that the Pipeline's steps take"
                sentence = f"{WHERE}: x must be {expected}, got an error: {first_line(error)}."
                raise InputError(sentence) from error
            return rows.toarray() if last.encode is None and hasattr(rows, "toarray") else rows

        names = last.feature_names or _names_out(before)
        return last._replace(steps=transform, feature_names=names)

    def inputs(self, rows: Any) -> Any:
        """Rows as an estimator or a Pipeline takes them, as its network does."""
        prepared = self.prepared(rows)
        return prepared if self.encode is None else self.encode(prepared)

    def prepared(self, rows: Any) -> Any:
        """Rows as a Pipeline takes them, as its last step does."""
        return rows if self.steps is None else self.steps(rows)

    def classes_of(self, y: Any) -> Any:
        """Labels as numbers from 0 on, in the order of the outputs."""
        if self.labels is None or y is None:
            return y
        given = np.asarray(y)
        place = {label: i for i, label in enumerate(self.labels)}
        strange = sorted(set(given.tolist()) - set(place), key=str)
        require(not strange, WHERE, "y", f"of {', '.join(map(str, self.labels))}", strange[:1])
        return torch.tensor([place[label] for label in given.tolist()])

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


def _refuse_onnx(model: Any) -> None:
    """A model of ONNX, by its file or its package's classes, with what to do instead."""
    kind = type(model).__module__.partition(".")[0]
    named = isinstance(model, str | os.PathLike) and os.fspath(model).endswith(".onnx")
    is_onnx = kind in ("onnx", "onnx_ml_pb2", "onnxruntime") or named
    got = os.fspath(model) if named else f"{type(model).__name__} of {kind}"
    require(not is_onnx, WHERE, "model", ONNX, got)


def _names_out(steps: Sequence[Any]) -> tuple[str, ...] | None:
    """What the last of the steps calls its features; None where they do not say."""
    names: Any = None
    try:
        for step in steps:
            names = step.get_feature_names_out(names)
    except (AttributeError, ValueError, TypeError):
        return None
    return None if names is None else tuple(map(str, names))
