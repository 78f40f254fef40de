"""Tasks: what is asked, as settings that name it, what it needs first, and how it is done."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any, final

import torch
from safetensors.torch import load as parse_weights
from safetensors.torch import save as format_weights
from torch import nn

from r2et.bench.case import Case, Changes, checked, content
from r2et.bench.cases import case
from r2et.bench.measures import MEASURES
from r2et.bench.method import Method, method, source_of, title_of
from r2et.bench.papers import reported, where
from r2et.bench.record import OF_NETWORK, Record, digest
from r2et.data import Data, Split
from r2et.errors import R2ETError, require
from r2et.metrics import split_auc
from r2et.models import smooth
from r2et.train import Recipe, fit, recipe
from r2et.train.checkpoint import copied
from r2et.train.defaults import default_network

Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Done:
    """What a task gives: what was measured, what is wrong with it, and a network's weights."""

    measured: dict[str, Any]
    unreliable: tuple[str, ...] = ()
    network: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Given:
    """What a task gets from those it needs: the record, and the network where there is one."""

    record: Record
    network: bytes | None = field(default=None, repr=False)


class Task(ABC):
    """Something to be done once. `here`: it is so cheap that no worker is asked."""

    here = False

    @property
    @abstractmethod
    def needs(self) -> tuple[Task, ...]:
        """What must be done before."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Everything that the result hangs on, as JSON can hold it."""

    @abstractmethod
    def do(self, given: tuple[Given, ...]) -> Done:
        """Do it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The readable part of its name."""

    @property
    def name(self) -> str:
        """Of its record: what it is about, and a hash of its settings."""
        return f"{self.title}-{digest(self.settings())}"

    def reported(self) -> dict[str, Any] | None:
        """The papers' figures for the same thing."""
        return None


@final
@dataclass(frozen=True)
class Train(Task):
    """One training. recipe: a name of RECIPES, or module:name of a Recipe or Method of yours."""

    data: str
    recipe: str
    changes: Changes = ()
    seed: int = 0
    retrain: bool = False
    epochs: int | None = None

    @property
    def case(self) -> Case:
        return case(self.data)

    @property
    def needs(self) -> tuple[Task, ...]:
        if self.recipe == "vanilla":
            return ()
        if self.retrain:
            return (Train(self.data, "vanilla", seed=self.seed, epochs=self.epochs),)
        above = self.case.keep == "above"
        return (Train(self.data, "vanilla", seed=self.seed, epochs=self.epochs),) if above else ()

    @property
    def title(self) -> str:
        return f"{self.data}-{title_of(self.recipe)}-{'retrain' if self.retrain else 'train'}"

    def settings(self) -> dict[str, Any]:
        own = self.case
        found = method(self.recipe)
        shown = repr(self.chosen(found)) if isinstance(found, Recipe) else repr(found)
        return {
            "kind": "train",
            "data": self.data,
            "recipe": self.recipe,
            "settings": shown,
            "changes": dict(self.changes),
            "seed": self.seed,
            "retrain": self.retrain,
            "k": own.k,
            "radius": self.radius,
            "epochs": self.epochs or own.epochs,
            "explainer": repr(own.judged),
            "rows": own.most,
            "width": own.width,
            "keep": own.keep,
            "slack": own.slack,
            **self._more(found),
        }

    def _more(self, found: Recipe | Method) -> dict[str, Any]:
        """What some trainings hang on beside."""
        told: dict[str, Any] = {}
        written = found if isinstance(found, Method) else found.penalty
        if written is not None and not type(written).__module__.startswith("r2et."):
            told["source"] = source_of(written)
        if not self.case.table:
            told["penalised"] = repr(self.case.explainer)
        if not checked(self.data):
            told["content"] = content(self.data)
        return told

    @property
    def radius(self) -> float:
        return float(dict(self.changes).get("radius", self.case.radius))

    def widths(self, chosen: Recipe) -> tuple[int, ...] | None:
        """Of the hidden layers, where the recipe has its own; a retraining has Vanilla's."""
        return None if self.retrain else chosen.hidden

    def chosen(self, found: Recipe) -> Recipe:
        """The recipe with its changes, and the batches and steps that go with the data.

        A retraining takes steps of a tenth: whole ones leave Vanilla's rankings at once, and then
        nothing but Vanilla is kept.
        """
        told = {n: v for n, v in self.changes if n != "radius"}
        if not self.case.table:
            told = {"batch": self.case.batch, "lr": self.case.lr, **told}
        if self.retrain:
            told["lr"] = told.get("lr", found.lr) / 10
        return recipe(found, **told)

    def do(self, given: tuple[Given, ...]) -> Done:
        own, found = self.case, method(self.recipe)
        data = own.load()
        if isinstance(found, Method):
            start = self._start(found, data)
            with undisturbed():
                trained = found.train(
                    start, own_copy(data), k=own.k, radius=self.radius, seed=self.seed
                )
            what = f"a torch.nn.Module from {self.recipe}.train"
            require(isinstance(trained, nn.Module), "bench", "the result", what, trained)
            told = {"auc_validation": split_auc(trained, data.val)}
            return Done(told, network=format_weights(copied(trained.state_dict())))
        start, threshold = own.network(data, self.seed, self.widths(self.chosen(found))), None
        if self.retrain and given:
            start.load_state_dict(parse_weights(_weights(given[0])))
        elif given:
            threshold = given[0].record.measured["auc_validation"] - own.slack
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", UserWarning)
            done = fit(
                start,
                data,
                self.chosen(found),
                k=own.k,
                radius=self.radius,
                epochs=self.epochs or own.epochs,
                seed=self.seed,
                explainer=None if own.table or self.recipe == "vanilla" else own.explainer,
                retrain=self.retrain,
                keep="last" if threshold is None else "above",
                threshold=threshold,
                progress=False,
            )
        record = done.record
        measured = {
            "auc_validation": record["auc"],
            "epochs_done": record["epochs_done"],
            "epoch_kept": record["epoch_kept"],
            "stopped": record["stopped"],
        }
        said = tuple(dict.fromkeys(str(w.message) for w in heard))
        return Done(measured, said, format_weights(copied(done.model.state_dict())))

    def _start(self, found: Method, data: Data) -> nn.Module:
        """A method's own network, or the one that recipes get here."""
        if type(found).network is Method.network:
            return self.case.network(data, self.seed)
        with undisturbed():
            return found.network(own_copy(data), self.seed)

    def rebuild(self, given: Given) -> nn.Module:
        """The trained network, from its stored weights."""
        data, found = self.case.load(), method(self.recipe)
        if isinstance(found, Method):
            network = self._start(found, data)
        else:
            chosen = self.chosen(found)
            network = _untrained(self, chosen)
        network.load_state_dict(parse_weights(_weights(given)))
        return network.eval()


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


def _untrained(task: Train, chosen: Recipe) -> nn.Module:
    own = task.case
    data = own.load()
    if chosen.linear:
        return default_network(data, (), task.seed)
    network = own.network(data, task.seed, task.widths(chosen))
    return network if chosen.rho is None else smooth(network, chosen.rho)


def _weights(given: Given) -> bytes:
    if given.network is None:
        raise R2ETError(f"bench: {given.record.name} must have a network, got none.")
    return given.network


@final
@dataclass(frozen=True)
class Measure(Task):
    """Something measured of a trained network: one of MEASURES, with its options."""

    of: Train
    kind: str
    options: Options = ()

    @property
    def needs(self) -> tuple[Task, ...]:
        return (self.of,)

    @property
    def title(self) -> str:
        return f"{self.of.data}-{title_of(self.of.recipe)}-{self.kind}"

    def settings(self) -> dict[str, Any]:
        told = dict(self.options)
        said = MEASURES[self.kind].settings(self.of.case, **told)
        return {"kind": self.kind, "of": self.of.settings(), "options": told, **said}

    def reported(self) -> dict[str, Any] | None:
        own, told = self.of.case, dict(self.options)
        place = where(self.kind, told, self.of.retrain, own.k, own.ks)
        return None if place is None else reported(own.paper, self.of.recipe, *place)

    def do(self, given: tuple[Given, ...]) -> Done:
        own = self.of.case
        found = MEASURES[self.kind](
            own, self.of.rebuild(given[0]), own.load(), **dict(self.options)
        )
        found[OF_NETWORK] = given[0].record.measured["network_sha256"]
        return Done(found, (*given[0].record.unreliable, *doubts(found)))


def doubts(measured: dict[str, Any]) -> tuple[str, ...]:
    """What a measurement says against itself."""
    ties, rows = measured.get("tied_rows", 0), measured.get("rows", 0)
    if not ties:
        return ()
    return (f"{ties} of {rows} rows have equal scores at the border, ranked by feature number",)
