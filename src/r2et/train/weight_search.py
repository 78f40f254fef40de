"""The weight of a recipe, found by what its penalty may cost in AUC: a search over trainings."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from r2et.data import Data
from r2et.errors import InputError, R2ETError, require
from r2et.files import write
from r2et.models.folder import folder_path, make_folder
from r2et.models.output import batched_logits
from r2et.train.checkpoint import NAME
from r2et.train.fit_arguments import check_data
from r2et.train.linear_floor import without_warning
from r2et.train.recipe import Recipe
from r2et.train.trial_measures import FEW, NORMAL, auc_drop, can_tell, stability
from r2et.wording import finite

FACTOR = 4.0  # between weights, while the search goes in one direction
REACH = 4  # steps by this factor, either way
HALVINGS = 2  # of the last interval, in logarithms
TIE = 0.02  # of proved plus attacked share: as stable, on so few rows
MEASURED = ("proved", "attacked", "distinct")
TRIALS, TRIAL = "search", "trial.json"


@dataclass(frozen=True)
class WeightTrial:
    """One training of the search, on validation rows.

    weight: of the penalty; 0 is the training that the others are compared with.
    auc: of all validation rows.
    drop: how far it is below that of weight 0; half_width: of its 95 % interval, on the same rows.
    met: whether the drop is within what was allowed; where no heavier weight is tried than the
        recipe's own, beyond it by at most one standard error.
    proved: share of rows whose top k cannot change at the radius; None where nothing is proved.
    attacked: P@k under attack; None where there is no attack. distinct: different top-k sets.
    seconds: of the training. One whose loss became no number has AUC 0 and took no time.
    """

    weight: float
    auc: float
    drop: float
    half_width: float
    met: bool
    proved: float | None
    attacked: float | None
    distinct: int | None
    seconds: float

    @property
    def stability(self) -> float | None:
        """Proved plus attacked share, by which the choice is made; None where neither is known."""
        if self.proved is None and self.attacked is None:
            return None
        return (self.proved or 0.0) + (self.attacked or 0.0)


@dataclass(frozen=True)
class WeightSearch:
    """The front of a search: accuracy against stability, and where the choice lies.

    max_auc_drop: what was allowed.
    trials: by weight, 0 first.
    chosen: the weight taken. met: whether it keeps to what was allowed.
    plain_trainings: what the trainings cost, in plain ones; without proofs and attacks.
    """

    max_auc_drop: float
    trials: tuple[WeightTrial, ...]
    chosen: float
    met: bool
    plain_trainings: float

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{'weight':>10}  AUC     drop              proved  attacked  sets"]
        for t in self.trials:
            shares = ("-" if s is None else f"{100 * s:.1f} %" for s in (t.proved, t.attacked))
            proved, attacked = shares
            drop = f"{t.drop:+.4f} ± {t.half_width:.4f}"
            sets = "-" if t.distinct is None else str(t.distinct)
            mark = " <- chosen" if t.weight == self.chosen else ""
            lines.append(
                f"{t.weight:>10.4g}  {t.auc:.4f}  {drop}  {proved:>6}  {attacked:>8}  {sets}{mark}"
            )
        (reached,) = (t.drop for t in self.trials if t.weight == self.chosen)
        within = "within" if self.met else "NOT within"
        if self.met and reached > self.max_auc_drop:
            within = "within a standard error of a drop of"
        lines.append(
            f"Validation rows; the choice is {within} {self.max_auc_drop:g} of weight 0. "
            f"Cost: {self.plain_trainings:.1f} plain trainings."
        )
        return "\n".join(lines)


def has_weight(chosen: Recipe) -> bool:
    """Whether a penalty is weighed against the loss."""
    return chosen.penalty is not None and chosen.loss_weight > 0 and not chosen.linear


def check_budget(max_auc_drop: Any, chosen: Recipe, data: Data, **fixed: Any) -> None:
    """What a search asks for; fixed: arguments of fit that it sets itself."""
    number = isinstance(max_auc_drop, int | float | np.floating)
    is_valid = number and not isinstance(max_auc_drop, bool) and 0 <= max_auc_drop < 0.5
    require(is_valid, "fit", "max_auc_drop", "None or a number in [0, 0.5)", max_auc_drop)
    expected = f"left out for {chosen.name}, which has no weight to find"
    require(has_weight(chosen), "fit", "max_auc_drop", expected, max_auc_drop)
    for name, value in fixed.items():
        require(value in (None, False), "fit", name, "left out with max_auc_drop", value)
    check_data(data, labelled=True)


def fit_within(
    fit: Callable[..., Any],
    model: nn.Module | None,
    data: Data,
    chosen: Recipe,
    max_auc_drop: float,
    *,
    heavier: bool = True,
    out: str | os.PathLike[str] | None,
    resume: bool,
    baselines: bool | None,
    **settings: Any,
) -> Any:
    """Fit with the weight that keeps validation AUC within the drop and is the most stable.

    The drop is from the same recipe at weight 0. From the recipe's own weight the search goes up by
    factors of 4 while the drop is kept to, or down until it is, then halves the last interval twice
    in logarithms. Trainings go to `out`/search and are not repeated by a later call. Without
    `heavier`, and of recipes whose stability is not measured here (reasons), no weight beyond the
    recipe's own is tried; without it that is given up only for a drop that is larger than allowed
    by more than a standard error, so that noise does not choose the weight.
    """
    usual = chosen.prepared(data.k, float(settings["radius"])).weight
    middle = usual if usual else 0.1
    with _place(out, resume) as root:
        doubt = 0.0 if heavier else 1.0
        runs = _Runs(fit, model, data, chosen, max_auc_drop, doubt, root, resume, settings)
        runs.at(0.0)
        own = runs.at(middle)
        up = heavier and own.stability is not None  # else nothing says what a heavier one gains
        if up or not own.met:
            for weight in _weights(middle, lambda weight: runs.at(weight).met):
                runs.at(weight)
        trials = tuple(sorted(runs.trials.values(), key=lambda trial: trial.weight))
        penalised = [trial for trial in trials if trial.weight > 0]
        lowest = penalised[0].weight
        expected = f"below {lowest:.2g} (the loss is no number from there on)"
        trained = any(trial.auc > 0 for trial in penalised)
        require(trained, "fit", "weight", expected, middle)
        met = [trial for trial in penalised if trial.met]
        best = _stablest(met) if met else max(penalised, key=lambda trial: trial.auc)
        plain = max(trials[0].seconds, 1e-9)
        cost = sum(trial.seconds for trial in trials) / plain
        search = WeightSearch(max_auc_drop, trials, best.weight, bool(met), round(cost, 2))
        target = root / "chosen" if out is None else folder_path("fit", out)
        make_folder("fit", target)
        shutil.copyfile(runs.folder(best.weight) / NAME, target / NAME)
        done = fit(
            model,
            data,
            replace(chosen, weight=best.weight),
            out=target,
            baselines=baselines if out is not None or baselines is not None else False,
            **settings,
        )
    _warn(search, trials[0], best, data.val.y.cpu())
    record = {**done.record, "search": search.to_json()}
    if out is not None:
        text = json.dumps(record, indent=1, allow_nan=False) + "\n"
        write(folder_path("fit", out) / "fit.json", text.encode())
    return replace(done, record=record, search=search)


def _stablest(met: list[WeightTrial]) -> WeightTrial:
    """The lightest that is as stable as any up to TIE; the heaviest where stability is not known.

    A lighter penalty leaves rows more reasons of their own.
    """
    known = [trial.stability for trial in met if trial.stability is not None]
    if not known:
        return max(met, key=lambda trial: trial.weight)
    tied = [t for t in met if t.stability is not None and t.stability >= max(known) - TIE]
    return min(tied, key=lambda trial: trial.weight)


def _weights(middle: float, met: Callable[[float], bool]) -> Iterator[float]:
    """Weights to try, one after the other: see fit_within."""
    up = met(middle)
    low, high = (middle, None) if up else (None, middle)
    weight = middle
    for _ in range(REACH):
        weight = weight * FACTOR if up else weight / FACTOR
        yield weight
        if met(weight):
            low = weight
        else:
            high = weight
        if met(weight) != up:
            break
    if low is None or high is None:
        return
    for _ in range(HALVINGS):
        weight = math.sqrt(low * high)
        yield weight
        low, high = (weight, high) if met(weight) else (low, weight)


class _Runs:
    """Trainings of one search, each in its folder, each once."""

    def __init__(
        self,
        fit: Callable[..., Any],
        model: nn.Module | None,
        data: Data,
        chosen: Recipe,
        allowed: float,
        doubt: float,
        root: Path,
        resume: bool,
        settings: dict[str, Any],
    ) -> None:
        self.fit, self.model, self.data, self.chosen = fit, model, data, chosen
        self.allowed, self.doubt = allowed, doubt  # a drop, and standard errors beyond it
        self.root, self.resume, self.settings = root, resume, settings
        self.trials: dict[float, WeightTrial] = {}
        self.odds: Any = None  # of the validation rows, at weight 0

    def folder(self, weight: float) -> Path:
        return self.root / f"{weight:.6g}"

    def at(self, weight: float) -> WeightTrial:
        if weight in self.trials:
            return self.trials[weight]
        recipe = replace(self.chosen, weight=weight, name=f"{self.chosen.name} {weight:.3g}")
        folder = self.folder(weight)
        try:
            with without_warning():
                done = self.fit(
                    self.model,
                    self.data,
                    recipe,
                    out=folder,
                    resume=self.resume,
                    baselines=False,
                    **self.settings,
                )
        except InputError:
            raise
        except R2ETError:  # a loss that is no number: such a weight is too heavy
            if weight == 0:
                raise
            broken = WeightTrial(weight, 0.0, 1.0, 0.0, False, None, None, None, 0.0)
            return self.trials.setdefault(weight, broken)
        y = self.data.val.y.cpu()
        logits = batched_logits(done.model, self.data.val.x)
        if weight == 0:
            self.odds = logits
        drop, half_width = auc_drop(self.odds, logits, y)
        self.trials[weight] = WeightTrial(
            weight=weight,
            auc=done.record["auc"],
            drop=drop,
            half_width=half_width,
            met=drop - self.doubt * half_width / NORMAL <= self.allowed,
            **self._stability(done, folder / TRIAL),
            seconds=done.record["seconds"],
        )
        return self.trials[weight]

    def _stability(self, done: Any, known: Path) -> dict[str, Any]:
        """Proved and attacked share of validation rows; read where it was measured before."""
        key = f"{done.record['k']} {done.record['radius']} {done.record['epoch_kept']}"
        if self.resume and known.is_file():
            stored = _trial(known)
            if stored.get("key") == key:
                return {name: stored[name] for name in MEASURED}
        explainer = self.settings["explainer"] or self.chosen.explainer
        measured = stability(
            done.model,
            self.data,
            explainer,
            done.record["k"],
            done.record["radius"],
            of_reasons=self.chosen.penalty is not None and self.chosen.penalty.of_reasons,
        )
        write(known, json.dumps({"key": key, **measured}).encode())
        return measured


def _trial(path: Path) -> dict[str, Any]:
    """What was measured before; nothing where the file is broken: it is measured again."""
    try:
        stored = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return {}
    whole = isinstance(stored, dict) and set(MEASURED) <= set(stored)
    known = whole and all(stored[n] is None or finite(stored[n]) is not None for n in MEASURED)
    return stored if known else {}


@contextmanager
def _place(out: str | os.PathLike[str] | None, resume: bool) -> Iterator[Path]:
    """Where the trainings of a search lie: beside the model, or for as long as it takes."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="r2et-search-") as folder:
            yield Path(folder)
        return
    path = folder_path("fit", out)
    other = resume and (path / NAME).is_file() and not (path / TRIALS).is_dir()
    expected = "another folder, or start anew with resume=False (--no-resume)"
    require(not other, "fit", "out", expected, f"{path}, with a training of a given weight")
    make_folder("fit", path / TRIALS)
    yield path / TRIALS


def _warn(search: WeightSearch, plain: WeightTrial, best: WeightTrial, y: Tensor) -> None:
    """y: (B,) the classes of the validation rows."""
    if not search.met:
        lowest = min(trial.weight for trial in search.trials if trial.weight > 0)
        warnings.warn(
            f"fit: no weight down to {lowest:.2g} keeps the validation AUC within "
            f"{search.max_auc_drop:g} of {plain.auc:.4f}; the model is the most accurate, of "
            f"weight {best.weight:.2g} and AUC {best.auc:.4f}.",
            stacklevel=4,
        )
    elif not can_tell(y):
        fewest = int(torch.unique(y, return_counts=True)[1].min())
        warnings.warn(
            f"fit: the validation part is too small to measure a drop of {search.max_auc_drop:g}: "
            f"it has {fewest} of one class, and {FEW} are the least that says anything.",
            stacklevel=4,
        )
    elif best.half_width > search.max_auc_drop:
        warnings.warn(
            f"fit: the validation part is too small to measure a drop of {search.max_auc_drop:g}: "
            f"that of the chosen weight, {best.weight:.2g}, is {best.drop:+.4f} within "
            f"{best.drop - best.half_width:+.4f} to {best.drop + best.half_width:+.4f}.",
            stacklevel=4,
        )
