"""The training loop: batches, steps, validation, and state that survives anything."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn

from r2et.config import Configurable
from r2et.data import Data
from r2et.errors import InputError, R2ETError, first_line
from r2et.explain import Explainer
from r2et.metrics import auc_of_logits, split_auc
from r2et.models.output import batched_logits
from r2et.models.weights import copied_weights
from r2et.penalty.adversarial import row_losses
from r2et.progress import Advance, bar
from r2et.train.checkpoint import Folder
from r2et.train.distributed import Distributed
from r2et.train.protocol import reaches
from r2et.train.recipe import Recipe
from r2et.train.reference import ReferenceModel
from r2et.train.runtime import mixed, patient_interrupt, seed_everything
from r2et.train.step import Terms, TrainingStep, alike_in_both_modes, resting_modules
from r2et.train.watched_thickness import watched_thickness

Keep: TypeAlias = Literal["last", "best", "above"]
SMALLEST = 8  # a rest of fewer rows joins the batch before it
NEARLY = 0.002  # of AUC: a penalised epoch this near to the best is kept if it comes later


@dataclass(frozen=True)
class TrainingSettings(Configurable):
    """What a training is told, beside its recipe. See `fit`."""

    config_excluded: ClassVar[tuple[str, ...]] = ("save_every", "progress")

    k: int
    radius: float
    epochs: int
    seed: int
    keep: Keep
    threshold: float | None
    retrain: bool
    agree: float
    save_every: float
    progress: bool
    check_every: int | None = None


@dataclass
class State:
    """Where a training stands. Everything else follows from the settings."""

    step: int = 0
    epoch: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])  # loss, penalty, its count
    history: list[dict[str, Any]] = field(default_factory=list)
    best: float = -math.inf
    best_loss: float = math.inf  # of the validation rows, where the AUC was the best
    kept_epoch: int = -1
    seconds: float = 0.0
    stopped: str = ""
    met: bool = False  # an epoch has reached the threshold
    kept_auc: float | None = None  # of weights kept in the middle of an epoch


class Loop:
    """One training of one model."""

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        recipe: Recipe,
        settings: TrainingSettings,
        distributed: Distributed,
        folder: Folder | None,
        explainer: Explainer | None = None,
        weights: Tensor | None = None,
        shares: Tensor | None = None,
    ) -> None:
        self.weights, self.shares = weights, shares
        self.model, self.data, self.recipe, self.settings = model, data, recipe, settings
        self.distributed, self.folder = distributed, folder
        self.state = State()
        self.kept = copied_weights(model)
        self.explainer = explainer or recipe.explainer
        self.resting = resting_modules(model, settings.retrain)
        self.reference: ReferenceModel | None = None
        if settings.retrain:
            self.reference = ReferenceModel(
                model.to(distributed.device), self.explainer, data, settings.k
            )
        shared = recipe.active and alike_in_both_modes(
            model.to(distributed.device), data.train.x[:64].to(distributed.device), self.resting
        )
        self.learned = [p for p in model.parameters() if p.requires_grad]
        step = TrainingStep(model, recipe, distributed, shared)
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay
        )
        self.call, self.optimizer = distributed.setup(step, self.optimizer)  # type: ignore[assignment]
        self.saved_at = time.monotonic()

    @property
    def finished(self) -> bool:
        """All epochs done, or stopped for a reason."""
        return self.state.epoch >= self.settings.epochs or bool(self.state.stopped)

    def run(self) -> None:
        """From wherever the state is to the end."""
        settings, state = self.settings, self.state
        if self.finished:
            return
        steps = self._batches(0)
        total = settings.epochs * len(steps)
        began = time.perf_counter() - state.seconds
        show = settings.progress and self.distributed.rank == 0
        devices = [self.distributed.device] if self.distributed.device.type == "cuda" else []
        with (
            torch.random.fork_rng(devices=devices),
            bar(self.recipe.name, state.step, total, show=show) as advance,
            patient_interrupt() as interrupted,
        ):
            while not self.finished:
                batches = self._batches(state.epoch)
                first = state.step - state.epoch * len(batches)
                self.model.train()
                for module in self.resting:
                    module.training = False
                for batch in batches[first:]:
                    self._step(batch, total)
                    state.step += 1
                    state.seconds = time.perf_counter() - began
                    advance(1)
                    if interrupted():
                        self.save()
                        raise KeyboardInterrupt
                    if self._leaves_within_epoch():
                        break
                    if time.monotonic() - self.saved_at >= settings.save_every:
                        self.save()
                if not state.stopped:
                    self._end_epoch(advance)
                state.seconds = time.perf_counter() - began
            self.save()
            if interrupted():
                raise KeyboardInterrupt

    def _step(self, batch: Tensor, total: int) -> None:
        state, recipe, data = self.state, self.recipe, self.data
        rank, size, device = self.distributed.rank, self.distributed.size, self.distributed.device
        penalised = recipe.active and state.step % recipe.every == 0
        noise = (
            self._noise(batch) if penalised and recipe.penalty and recipe.penalty.random else None
        )
        mine = batch[rank::size]
        share = len(mine) * size / len(batch)
        seed_everything(mixed(self.settings.seed, state.step, 1 + rank), device)
        self.optimizer.zero_grad()
        try:
            terms: Terms = self.call(
                data.train.x[mine].to(device),
                data.train.y[mine].to(device),
                share,
                penalised,
                *self._warmth(total),
                None if self.reference is None else self.reference.order(mine).to(device),
                None if noise is None else noise[rank::size].to(device),
                None if self.weights is None else self.weights[mine].to(device),
                None if self.shares is None else self.shares[mine].to(device),
            )
        except InputError as error:
            if state.step == 0:  # nothing has been learned: the input itself is at fault
                raise
            raise self._broken("penalty", f"the error '{error}'") from error
        except (RuntimeError, ValueError, TypeError) as error:
            if state.step:
                raise
            cause = f"{type(error).__name__}: {first_line(error)}"
            raise InputError(f"fit: model must be one that can be trained, got {cause}.") from error
        self._check(terms)
        # Without a penalty nothing but weights has a gradient, and checkpoints may be reentrant.
        weights = None if terms.penalty is None else self.learned
        self.distributed.backward(terms.total, weights)
        if recipe.cool_down:
            for group in self.optimizer.param_groups:
                group["lr"] = recipe.lr * self._coolness(total)
        try:
            self.optimizer.step()
        except OverflowError as error:
            raise self._broken("step", f"the error '{first_line(error)}'") from error
        state.sums[0] += float(terms.loss)
        if terms.penalty is not None:
            state.sums[1] += float(terms.penalty)
            state.sums[2] += 1

    def _check(self, terms: Terms) -> None:
        """Stop before a loss that is no number reaches the weights."""
        parts = {"loss": terms.loss, "penalty": terms.penalty, "total": terms.total}
        for name, value in parts.items():
            number = 0.0 if value is None else float(self.distributed.mean(value))
            if not math.isfinite(number):
                raise self._broken(name, str(number))

    def _broken(self, name: str, value: str) -> R2ETError:
        state, kept = self.state, ""
        if self.folder is not None and self.folder.holds_checkpoint:
            kept = f" (the last checkpoint in {self.folder.path} is good)"
        at = f"the {name} at step {state.step + 1}, epoch {state.epoch + 1}"
        advice = "lower lr or weight" if self.recipe.active else "lower lr"
        return R2ETError(f"fit: training must stay finite, got {value} in {at}{kept}; {advice}.")

    def _warmth(self, total: int) -> tuple[float, float | None]:
        """While the penalty warms up: the factor of its weight, or its radius if it has one."""
        recipe = self.recipe
        share = (self.state.step + 1) / (recipe.warm_up * total) if recipe.warm_up else 1.0
        if share >= 1:
            return 1.0, None
        radius: float | None = getattr(recipe.penalty, "radius", None)
        return (share, None) if radius is None else (1.0, share * radius)

    def _coolness(self, total: int) -> float:
        """The factor of lr: 1, and from where the end begins down to 1 / (its steps)."""
        return min(1.0, (total - self.state.step) / (self.recipe.cool_down * total))

    def _noise(self, batch: Tensor) -> Tensor:
        """Standard normal numbers for a whole batch: the same for any number of processes."""
        numbers = torch.Generator().manual_seed(mixed(self.settings.seed, self.state.step, 0))
        x = self.data.train.x
        return torch.randn((len(batch), *x.shape[1:]), generator=numbers, dtype=x.dtype)

    def _batches(self, epoch: int) -> list[Tensor]:
        rows = len(self.data.train.y)
        numbers = torch.Generator().manual_seed(mixed(self.settings.seed, epoch, -1))
        order = torch.randperm(rows, generator=numbers)
        batches = list(torch.split(order, self.recipe.batch))
        if len(batches) > 1 and len(batches[-1]) < SMALLEST:
            batches[-2:] = [torch.cat(batches[-2:])]
        return batches

    def _end_epoch(self, advance: Advance) -> None:
        state, settings = self.state, self.settings
        val, steps = self.data.val, len(self._batches(state.epoch))
        device = self.distributed.device
        try:
            out = batched_logits(self.model, val.x)
        except InputError as error:
            raise self._broken("weights", f"the error '{error}'") from error
        validation_auc = auc_of_logits(out, val.y.cpu())
        thick = watched_thickness(
            self.model, self.explainer, val.x.to(device), settings.k, settings.radius
        )
        sums = torch.tensor(state.sums, dtype=torch.float64, device=device)
        loss, penalty, count = self.distributed.mean(sums).tolist()
        entry = {
            "epoch": state.epoch + 1,
            "loss": loss / steps,
            "penalty": penalty / count if count else None,
            "auc": validation_auc,
            "log_loss": float(row_losses(out.double(), val.y.cpu(), "mean")),
            "thickness_probability": thick,
        }
        state.history.append(entry)
        state.sums = [0.0, 0.0, 0.0]
        shown = "-" if validation_auc is None else f"{validation_auc:.3f}"
        advance(0, f"loss {loss / steps:.3f}  AUC {shown}  thickness {thick:.3f}")
        self._decide(validation_auc)
        state.epoch += 1

    def _leaves_within_epoch(self) -> bool:
        """Whether a retraining, looked at in the middle of an epoch, has left its reference."""
        every, state = self.settings.check_every, self.state
        if self.reference is None or every is None or state.step % every:
            return False
        alike, auc = self.reference.agreement(self.model), split_auc(self.model, self.data.val)
        state.stopped = self.reference.left(alike, auc, self.settings.agree)
        if not state.stopped:
            self.kept, state.kept_epoch = copied_weights(self.model), state.epoch + 1
            state.kept_auc = auc
        return bool(state.stopped)

    def _decide(self, validation_auc: float | None) -> None:
        """Keep this epoch's weights, or stop, as the settings say."""
        state, settings = self.state, self.settings
        if self.reference is not None:
            alike = self.reference.agreement(self.model)
            state.history[-1]["agreement"] = alike
            state.stopped = self.reference.left(alike, validation_auc, settings.agree)
            if state.stopped:
                return
        ready = self._warmed_up
        best, better = self._compare(validation_auc, state.history[-1]["log_loss"], ready)
        above = reaches(validation_auc, settings.threshold)
        state.met = state.met or (settings.keep == "above" and above)
        # Until an epoch reaches the threshold, the best so far stands in.
        wanted = {"last": True, "best": best, "above": above or (better and not state.met)}
        if wanted[settings.keep]:
            self.kept, state.kept_epoch = copied_weights(self.model), state.epoch + 1
        patience = self.recipe.patience
        if patience is not None and validation_auc is not None and ready:
            aucs = [-math.inf if e["auc"] is None else float(e["auc"]) for e in state.history]
            aucs = aucs[self._warm_epochs :]
            if len(aucs) - 1 - aucs.index(max(aucs)) >= patience:
                state.stopped = f"no better validation AUC in {patience} epochs"

    @property
    def _warm_epochs(self) -> int:
        """How many epochs end before the penalty has its full strength; never all of them."""
        if not self.recipe.active:
            return 0
        return max(0, math.ceil(self.recipe.warm_up * self.settings.epochs) - 1)

    @property
    def _warmed_up(self) -> bool:
        """Whether this epoch's weights have seen the whole penalty: earlier ones are nobody's."""
        return self.state.epoch >= self._warm_epochs

    def _compare(self, auc: float | None, loss: float, ready: bool) -> tuple[bool, bool]:
        """Whether this epoch is the one to keep as the best so far, and whether its AUC is higher.

        Of equal AUCs the lower log-loss is better. Where a penalty is at work, the last epoch whose
        AUC is within 0.002 of the best: it has been penalised for longest.
        """
        state = self.state
        higher = auc is not None and auc > state.best
        if self.settings.keep != "best":
            state.best = float(auc or 0.0) if higher else state.best
            return False, higher
        if auc is None or not ready:
            return False, False
        near = self.recipe.active and auc >= state.best - NEARLY
        equal = auc == state.best and loss < state.best_loss
        if higher or equal:
            state.best, state.best_loss = float(auc), loss
        return higher or equal or near, higher

    def save(self) -> None:
        """Write the checkpoint, from the first process."""
        self.saved_at = time.monotonic()
        if self.folder is None or self.distributed.rank:
            return
        self.folder.save(
            {
                "model": copied_weights(self.model),
                "kept": self.kept,
                "optimizer": self.optimizer.state_dict(),
                "state": vars(self.state),
            }
        )

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue where a checkpoint was written."""
        assert self.folder is not None
        with self.folder.restoring():
            self.model.load_state_dict(saved["kept"])  # of the same names and shapes
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.kept, self.state = saved["kept"], State(**saved["state"])
            for name, usual in vars(State()).items():
                value = getattr(self.state, name)
                kind: Any = type(usual) if isinstance(usual, str | list) else float | int
                if not isinstance(value, kind) and not (usual is None and value is None):
                    raise TypeError(name)
