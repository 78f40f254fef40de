"""The task of training one network on one dataset by one recipe with one seed."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from safetensors.torch import load as parse_weights
from safetensors.torch import save as format_weights
from torch import nn

from r2et.bench.benchmark_config import BenchmarkConfig, Changes, content_hash, has_checksums
from r2et.bench.method import Method, method, source_of, title_of
from r2et.bench.networks import papers_network
from r2et.bench.papers import OTHER_METHODS, R2ET_VARIANTS
from r2et.bench.registry import find_benchmark
from r2et.bench.task import BenchTask, TaskInput, TaskResult, task_config
from r2et.data import Data, Split
from r2et.errors import R2ETError, require
from r2et.metrics import split_auc
from r2et.models import smooth
from r2et.models.weights import copied_weights
from r2et.train import RECIPES, Recipe, fit, recipe
from r2et.train.step import resting_modules

# Changes that `fit` takes, not the recipe: AT's step, how a retraining stops, the length, and
# whether Vanilla's weights are a retraining's start alone, from which it may go anywhere.
FIT_CHANGES = ("radius", "agree", "epochs", "free")
AGREE = 0.9  # P@k with Vanilla's rankings, below which a retraining stops
BATCHES, FEWEST_EPOCHS, MOST_EPOCHS = 3000, 10, 200  # of the long regime
PAPERS_PENALTIES = (*R2ET_VARIANTS, *OTHER_METHODS)


@final
@dataclass(frozen=True)
class TrainTask(BenchTask):
    """One training.

    data: the dataset's name.
    recipe: a name of RECIPES, or module:name of a Recipe or Method of yours.
    changes: settings of the recipe that differ from its own, and those of FIT_CHANGES.
    seed: of the network and the training.
    retrain: whether it starts from Vanilla's weights.
    epochs: None for the usual number.
    regime: of the benchmark's config.
    """

    data: str
    recipe: str
    changes: Changes = ()
    seed: int = 0
    retrain: bool = False
    epochs: int | None = None
    regime: str = "long"

    @property
    def benchmark(self) -> BenchmarkConfig:
        return find_benchmark(self.data, self.regime)

    @property
    def vanilla(self) -> TrainTask:
        """The plain training that this one is compared with."""
        return replace(self, recipe="vanilla", changes=(), retrain=False)

    @property
    def needs(self) -> tuple[BenchTask, ...]:
        if self.recipe == "vanilla":
            return ()
        return (self.vanilla,) if self.retrain or self.benchmark.keep == "above" else ()

    @property
    def held(self) -> bool:
        """Whether this is a retraining that stops where it leaves Vanilla."""
        return self.retrain and not dict(self.changes).get("free", False)

    @property
    def title(self) -> str:
        return f"{self.data}-{title_of(self.recipe)}-{'retrain' if self.retrain else 'train'}"

    def config(self) -> dict[str, Any]:
        benchmark, own = self.benchmark, method(self.recipe)
        settings = self.settings(own) if isinstance(own, Recipe) else own
        written = own if isinstance(own, Method) else own.penalty
        foreign = written is not None and not type(written).__module__.startswith("r2et.")
        return task_config(
            "train",
            1,
            data=self.data,
            recipe=self.recipe,
            settings=settings,
            seed=self.seed,
            retrain=self.retrain,
            k=benchmark.k,
            radius=self.radius,
            epochs=self.asked_epochs,
            explainer=benchmark.judged,
            rows=benchmark.train_rows,
            width=benchmark.width,
            edge_width=benchmark.edge_width,
            keep=benchmark.keep,
            slack=benchmark.slack,
            penalised=None if benchmark.is_table else benchmark.explainer,
            regime=None if self.regime == "long" else self.regime,
            agree=dict(self.changes).get("agree"),
            check_every=benchmark.check_every if self.held else None,
            free=None if self.held == self.retrain else True,
            norms="rest" if self.retrain and benchmark.retrained else None,
            augment=None if self.retrain else benchmark.augment or None,
            source=source_of(written) if foreign else None,
            content=None if has_checksums(self.data) else content_hash(self.data),
        )

    @property
    def asked_epochs(self) -> int | None:
        """Those of a quick look, of the setting that is tried, or of the regime."""
        asked: int | None = self.epochs or dict(self.changes).get("epochs")
        if asked is None and self.retrain and self.benchmark.retrained:
            return self.benchmark.retrain_epochs
        return asked or self.benchmark.epochs

    @property
    def radius(self) -> float:
        return float(dict(self.changes).get("radius", self.benchmark.radius))

    def widths(self, settings: Recipe) -> tuple[int, ...] | None:
        """Of the hidden layers, where the recipe has its own; a retraining has Vanilla's."""
        return None if self.retrain else settings.hidden

    def settings(self, own: Recipe) -> Recipe:
        """The recipe with its changes, and the batches and steps that go with the data.

        A retraining that is held to Vanilla takes steps of a tenth: whole ones leave its rankings
        at once, and then nothing but Vanilla is kept.
        """
        benchmark = self.benchmark
        changed = {n: v for n, v in self.changes if n not in FIT_CHANGES}
        if self.recipe in PAPERS_PENALTIES:
            changed = {**dict(benchmark.schedule), **changed}
        if not benchmark.is_table:
            changed = {"batch": benchmark.batch, "lr": benchmark.lr, **changed}
        if self.held:
            changed["lr"] = changed.get("lr", own.lr) / 10
        if self.recipe in RECIPES:  # the length of training is the regime's
            changed["patience"] = None
        return recipe(own, **changed)

    def length(self, settings: Recipe, rows: int) -> int:
        """Epochs of this training: as asked for, the regime's, or about 3000 batches."""
        usual = math.ceil(BATCHES / math.ceil(rows / settings.batch))
        return self.asked_epochs or settings.epochs or min(max(usual, FEWEST_EPOCHS), MOST_EPOCHS)

    def do(self, inputs: tuple[TaskInput, ...]) -> TaskResult:
        own = method(self.recipe)
        if isinstance(own, Method):
            return self._train_method(own)
        return self._fit(self.settings(own), inputs)

    def _train_method(self, own: Method) -> TaskResult:
        benchmark, data = self.benchmark, self.benchmark.load()
        start = self._start(own, data)
        with undisturbed():
            trained = own.train(
                start, own_copy(data), k=benchmark.k, radius=self.radius, seed=self.seed
            )
        expected = f"a torch.nn.Module from {self.recipe}.train"
        require(isinstance(trained, nn.Module), "bench", "the result", expected, trained)
        measured = {"auc_validation": split_auc(trained, data.val)}
        return TaskResult(measured, network=format_weights(copied_weights(trained)))

    def _fit(self, settings: Recipe, inputs: tuple[TaskInput, ...]) -> TaskResult:
        benchmark, data = self.benchmark, self.benchmark.load_to_train(self.retrain)
        start, threshold = self._unsmoothed(settings, data), None
        if self.retrain and inputs:
            start.load_state_dict(parse_weights(_weights(inputs[0])))
        if self.retrain and not self.held:
            rest_norms(start)
        if inputs and not self.held:
            threshold = inputs[0].record.measured["auc_validation"] - benchmark.slack
        plain = benchmark.is_table or self.recipe == "vanilla"
        # Everything is said: what `fit` does by default may change, a benchmark may not.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            trained = fit(
                start,
                data,
                replace(settings, linear=False, hidden=None),
                k=benchmark.k,
                radius=self.radius,
                epochs=self.length(settings, len(data.train.y)),
                seed=self.seed,
                explainer=None if plain else benchmark.explainer,
                retrain=self.held,
                agree=dict(self.changes).get("agree", AGREE),
                check_every=benchmark.check_every if self.held else None,
                keep="last" if threshold is None else "above",
                threshold=threshold,
                class_weight=None,
                region=None,
                max_auc_drop=None,
                heavier=True,
                progress=False,
                baselines=False,
            )
        measured = {
            "auc_validation": trained.record["auc"],
            "epochs_done": trained.record["epochs_done"],
            "epoch_kept": trained.record["epoch_kept"],
            "stopped": trained.record["stopped"],
        }
        doubts = tuple(dict.fromkeys(str(warning.message) for warning in caught))
        return TaskResult(measured, doubts, format_weights(copied_weights(trained.model)))

    def _start(self, own: Method, data: Data) -> nn.Module:
        """A method's own network, or the one that recipes get here."""
        if type(own).network is Method.network:
            return self.benchmark.network(data, self.seed)
        with undisturbed():
            return own.network(own_copy(data), self.seed)

    def rebuild(self, trained: TaskInput) -> nn.Module:
        """The trained network, from its stored weights."""
        own = method(self.recipe)
        if isinstance(own, Method):
            network = self._start(own, self.benchmark.load())
        else:
            network = self._untrained(self.settings(own))
        network.load_state_dict(parse_weights(_weights(trained)))
        return network.eval()

    def _untrained(self, settings: Recipe) -> nn.Module:
        network = self._unsmoothed(settings, self.benchmark.load())
        return network if settings.rho is None else smooth(network, settings.rho)

    def _unsmoothed(self, settings: Recipe, data: Data) -> nn.Module:
        """The network as it is before `fit` puts softplus into it."""
        if settings.linear:
            return papers_network(data, (), self.seed)
        return self.benchmark.network(data, self.seed, self.widths(settings))


def rest_norms(network: nn.Module) -> None:
    """Batch normalisation keeps the statistics it has while the rest of the network is trained."""
    network.train()
    for module in resting_modules(network, retrain=True):
        module.eval()


def own_copy(data: Data) -> Data:
    """Data that a method may do anything with, without the test part."""
    train, val = (Split(part.x.clone(), part.y.clone()) for part in (data.train, data.val))
    return replace(data, train=train, val=val, test=Split(data.test.x[:0], data.test.y[:0]))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Somebody's code: what it prints is no result, what it sets is set back."""
    kind, graph = torch.get_default_dtype(), torch.is_grad_enabled()
    try:
        with redirect_stdout(sys.stderr), torch.random.fork_rng(devices=()):
            yield
    finally:
        torch.set_default_dtype(kind)
        torch.set_grad_enabled(graph)


def _weights(trained: TaskInput) -> bytes:
    if trained.network is None:
        raise R2ETError(f"bench: {trained.record.name} must have a network, got none.")
    return trained.network
