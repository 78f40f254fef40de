"""A dataset as the papers test on it: its network, its explanation, its attack (B.1, Table 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from torch import nn

from r2et.attack import Attack, ERAttack, MSEAttack
from r2et.attack.constraints import Constraint
from r2et.bench.augmentation import augmented
from r2et.bench.networks import edge_network, papers_network
from r2et.config import Configurable
from r2et.data import DATASETS, Data, Split, load
from r2et.data.sources.supplied import Supplied
from r2et.explain import Explainer, Gradient, IntegratedGradients, SmoothGrad
from r2et.region import L2, Region

Changes = tuple[tuple[str, Any], ...]


def changes(**settings: Any) -> Changes:
    """Settings of a recipe as something that can be compared and sorted."""
    return tuple(sorted(settings.items()))


@dataclass(frozen=True)
class BenchmarkConfig(Configurable):
    """How one dataset is trained on and attacked.

    data: the dataset's name.
    paper: the papers' name of it, None for others, stand-ins among them.
    explainer: the papers' scores, by which ERAttack and the selection of a model go.
    judged: the same ranking from log-odds, which StrongAttack and proofs take.
    region, k, radius, steps, norm, flip_below: of the papers' attacks.
    ks: those of Table 7.
    sigma: of SmoothGrad, Table 2.
    width, epochs, batch, lr: of the network and its training; None: the usual ones.
    edge_width: of a SiameseMLP, which takes the place of the papers' network; None: theirs.
    slack: how far below Vanilla's a validation AUC may lie.
    train_rows: how many rows to train on; None: all.
    keep: "above" keeps the last epoch whose AUC is not below the threshold.
    rows, strong_rows, certified_rows: of the test part, under the papers' attacks, under
        StrongAttack, and to be proved.
    candidates: the settings of each recipe that are tried.
    regime: "long", about 3000 batches, or "papers", as short as makes Vanilla like the papers'.
    published: AUC of the papers' Vanilla and their threshold (Table 4), both absolute.
    schedule: settings that the papers' own recipes have in this regime.
    attack_keep: which point the papers' attacks keep; None: the best.
    retrained: whether recipes start from Vanilla's weights in every table (the papers' ResNet).
    retrain_candidates: the settings of a retraining that are tried; by default the candidates.
    check_every: batches after which a retraining is compared with Vanilla; None: an epoch.
    retrain_epochs: of a retraining, at most.
    augment: copies of every training picture, flipped and shifted, that a training from scratch
        sees beside it.
    validation_rows: on which settings are selected, at most.
    """

    data: str
    paper: str | None = None
    explainer: Explainer = field(default=Gradient(of="probability"))
    judged: Explainer = field(default=Gradient())
    region: Region = field(default=L2(1.0))
    k: int = 8
    ks: tuple[int, ...] = (2, 5, 8)
    radius: float = 1.0
    steps: int = 1000
    norm: str = "l2"
    flip_below: float = 1.0
    sigma: float = 0.5**0.5
    width: tuple[int, ...] | None = None
    epochs: int | None = None
    batch: int = 256
    lr: float = 0.01
    edge_width: int | None = None
    slack: float = 0.01
    train_rows: int | None = None
    keep: str = "last"
    rows: int = 500
    strong_rows: int = 200
    certified_rows: int = 200
    candidates: Mapping[str, tuple[Changes, ...]] = field(default_factory=dict, hash=False)
    regime: str = "long"
    published: tuple[float, float] | None = None
    schedule: Changes = ()
    attack_keep: str | None = None
    retrained: bool = False
    retrain_candidates: Mapping[str, tuple[Changes, ...]] = field(default_factory=dict, hash=False)
    check_every: int | None = None
    retrain_epochs: int = 10
    augment: int = 0
    validation_rows: int = 300

    @property
    def is_table(self) -> bool:
        """Whether this is a table, on which exact Hessians and proofs are to be had."""
        return self.norm == "l2"

    def load(self) -> Data:
        """The data, with as many rows to train on as are taken; without copies."""
        data = _loaded(self.data)
        if self.train_rows is None:
            return data
        few = slice(self.train_rows)
        train, val = (Split(part.x[few], part.y[few]) for part in (data.train, data.val))
        return replace(data, train=train, val=val)

    def load_to_train(self, retrain: bool) -> Data:
        """The data of a training: from scratch with copies of pictures, where there are to be."""
        data = self.load()
        return augmented(data, self.augment) if self.augment and not retrain else data

    def network(self, data: Data, seed: int, hidden: tuple[int, ...] | None = None) -> nn.Module:
        """An untrained network, from a seed; hidden: the widths a recipe asks for in a table."""
        if self.edge_width is not None:
            return edge_network(data, self.edge_width, seed)
        return papers_network(data, hidden if self.width is None else self.width, seed)

    def attack(
        self, kind: str, steps: int | None = None, *, through: bool = False, **more: Any
    ) -> Attack:
        """The papers' ERAttack or MSE attack on this data; fewer steps are longer."""
        count = self.steps if steps is None else steps
        size = self.region.radius / count if self.is_table else self.region.radius / 5  # type: ignore[attr-defined]
        cls = {"er": ERAttack, "mse": MSEAttack}[kind]
        settings: dict[str, Any] = {"flip_below": self.flip_below, "step_size": size, **more}
        if self.attack_keep is not None:
            settings = {"keep": self.attack_keep, **settings}
        if through:
            settings["through"] = self.explainer
        return cls(self.region, steps=count, norm=self.norm, **settings)  # type: ignore[arg-type]

    def explained_by(self, name: str) -> Explainer:
        """Grad, SG or IG, Table 2, from the probability as in the papers."""
        own = self.explainer
        common: dict[str, Any] = {"reduce": own.reduce, "normalize": own.normalize}
        common |= {"of": "probability", "part": getattr(own, "part", None)}
        if name == "gradient":
            return self.explainer
        if name == "smoothgrad":
            return SmoothGrad(sigma=self.sigma, **common)
        return IntegratedGradients(**common)


@lru_cache
def has_checksums(name: str) -> bool:
    """Whether a dataset's files are checked when they are read."""
    return not any(isinstance(file, Supplied) for file in DATASETS[name].files)


@lru_cache
def content_hash(name: str) -> str:
    """A hash of data whose files somebody supplies."""
    digest = hashlib.sha256()
    for part in _loaded(name).parts:
        for tensor in part:
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


CONSTRAINED: tuple[Constraint, ...] = ("none", "uniform", "gda", "hedge", "qp")


@lru_cache(maxsize=3)  # some take hundreds of megabytes
def _loaded(name: str) -> Data:
    return load(name)
