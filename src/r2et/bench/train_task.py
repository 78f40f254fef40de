"""The task of training one network on one dataset by one recipe with one seed."""

from __future__ import annotations

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
from r2et.bench.registry import find_benchmark
from r2et.bench.task import BenchTask, TaskInput, TaskResult, task_config
from r2et.data import Data, Split
from r2et.errors import R2ETError, require
from r2et.metrics import split_auc
from r2et.models import smooth
from r2et.models.weights import copied_weights
from r2et.train import Recipe, fit, recipe
from r2et.train.defaults import default_network


@final
@dataclass(frozen=True)
class TrainTask(BenchTask):
    """One training.

    data: the dataset's name.
    recipe: a name of RECIPES, or module:name of a Recipe or Method of yours.
    changes: settings of the recipe that differ from its own, and `radius`.
    seed: of the network and the training.
    retrain: whether it starts from Vanilla's weights.
    epochs: None for the usual number.
    """

    data: str
    recipe: str
    changes: Changes = ()
    seed: int = 0
    retrain: bool = False
    epochs: int | None = None

    @property
    def benchmark(self) -> BenchmarkConfig:
        return find_benchmark(self.data)

    @property
    def vanilla(self) -> TrainTask:
        """The plain training that this one is compared with."""
        return TrainTask(self.data, "vanilla", seed=self.seed, epochs=self.epochs)

    @property
    def needs(self) -> tuple[BenchTask, ...]:
        if self.recipe == "vanilla":
            return ()
        return (self.vanilla,) if self.retrain or self.benchmark.keep == "above" else ()

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
            epochs=self.epochs or benchmark.epochs,
            explainer=benchmark.judged,
            rows=benchmark.train_rows,
            width=benchmark.width,
            keep=benchmark.keep,
            slack=benchmark.slack,
            penalised=None if benchmark.is_table else benchmark.explainer,
            source=source_of(written) if foreign else None,
            content=None if has_checksums(self.data) else content_hash(self.data),
        )

    @property
    def radius(self) -> float:
        return float(dict(self.changes).get("radius", self.benchmark.radius))

    def widths(self, settings: Recipe) -> tuple[int, ...] | None:
        """Of the hidden layers, where the recipe has its own; a retraining has Vanilla's."""
        return None if self.retrain else settings.hidden

    def settings(self, own: Recipe) -> Recipe:
        """The recipe with its changes, and the batches and steps that go with the data.

        A retraining takes steps of a tenth: whole ones leave Vanilla's rankings at once, and then
        nothing but Vanilla is kept.
        """
        changed = {n: v for n, v in self.changes if n != "radius"}
        if not self.benchmark.is_table:
            changed = {"batch": self.benchmark.batch, "lr": self.benchmark.lr, **changed}
        if self.retrain:
            changed["lr"] = changed.get("lr", own.lr) / 10
        return recipe(own, **changed)

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
        benchmark, data = self.benchmark, self.benchmark.load()
        start, threshold = benchmark.network(data, self.seed, self.widths(settings)), None
        if self.retrain and inputs:
            start.load_state_dict(parse_weights(_weights(inputs[0])))
        elif inputs:
            threshold = inputs[0].record.measured["auc_validation"] - benchmark.slack
        plain = benchmark.is_table or self.recipe == "vanilla"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            trained = fit(
                start,
                data,
                settings,
                k=benchmark.k,
                radius=self.radius,
                epochs=self.epochs or benchmark.epochs,
                seed=self.seed,
                explainer=None if plain else benchmark.explainer,
                retrain=self.retrain,
                keep="last" if threshold is None else "above",
                threshold=threshold,
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
        data = self.benchmark.load()
        if settings.linear:
            return default_network(data, (), self.seed)
        network = self.benchmark.network(data, self.seed, self.widths(settings))
        return network if settings.rho is None else smooth(network, settings.rho)


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
