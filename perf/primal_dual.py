"""One training that adapts its weight to a budget of AUC, beside the search of fit(max_auc_drop=).

`python perf/primal_dual.py FOLDER NAME ...` writes perf/records/primal_dual.json, case by case, and
goes on where an earlier call stopped. FOLDER is that of perf/tables.py. A case, of a table, recipe
and seed, is a training at weight 0, a search, and for each rule one training whose weight is, after
every epoch, weight * 2^s: s in -1..1 is what the budget has left on validation rows.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from r2et.attack import StrongAttack
from r2et.certify import IntervalCertifier
from r2et.data import Data
from r2et.explain import Gradient
from r2et.metrics import auc_of_logits
from r2et.models import load_model
from r2et.models.output import batched_logits
from r2et.models.weights import copied_weights
from r2et.penalty.adversarial import row_losses
from r2et.rank import distinct_top_k
from r2et.region import L2
from r2et.train import Recipe, fit, recipe
from r2et.train.defaults import scheduled, table_network
from r2et.train.distributed import SingleProcess
from r2et.train.linear_floor import keep_above, linear_weights
from r2et.train.loop import Loop, TrainingSettings
from r2et.train.trial_measures import ATTACKED_ROWS, NORMAL, PROVED_ROWS, auc_drop
from recording import RECORDS, load_record, save
from tables import loaded

ALLOWED, RADIUS, EPOCHS, RANGE = 0.005, 0.1, 30, 256.0  # RANGE: of weights, either way
RECIPES, SEEDS = ("certified", "r2et-ball"), (0, 1)


@dataclass(frozen=True)
class Rule:
    """How a weight follows its budget.

    observes: the AUC, in DeLong's standard errors of the drop, or the log-loss, of which the budget
        is the same share of what weight 0 gains over chance.
    start: the first weight, in the recipe's own. From 1 the recipe's warm-up comes first; a smaller
        one is a warm-up by itself.
    """

    observes: Literal["AUC", "log-loss"]
    start: float


RULES = {
    "AUC": Rule("AUC", 1.0),
    "AUC, from below": Rule("AUC", 1 / 64),
    "log-loss": Rule("log-loss", 1.0),
    "log-loss, from below": Rule("log-loss", 1 / 64),
}


class PlainLoop(Loop):
    """A training that remembers its validation logits, epoch by epoch."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.outputs: list[Tensor] = []

    def _decide(self, validation_auc: float | None) -> None:
        self.outputs.append(batched_logits(self.model, self.data.val.x))
        super()._decide(validation_auc)

    @property
    def output(self) -> Tensor:
        """Validation logits of the epoch kept."""
        return self.outputs[self.state.kept_epoch - 1]


class PrimalDualLoop(Loop):
    """A training whose weight falls where it costs more than allowed, and rises where less.

    The cost is against the same epoch at weight 0: an early one is not yet accurate, whatever its
    weight. Kept is the epoch of the largest weight within the budget of what weight 0 ends with;
    where there is none, the most accurate.
    """

    def __init__(self, rule: Rule, plain: PlainLoop, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rule, self.plain, self.factor = rule, plain, rule.start
        self.factors: list[float] = []
        self.kept_as = (False, -math.inf)  # whether within the budget; then weight, else AUC

    def _warmth(self, total: int) -> tuple[float, float | None]:
        warmth, radius = super()._warmth(total)
        return self.factor * warmth, radius

    def _decide(self, validation_auc: float | None) -> None:
        self.factors.append(self.factor)
        if not self._warmed_up:
            return
        out, y = batched_logits(self.model, self.data.val.x), self.data.val.y
        met = auc_drop(self.plain.output, out, y)[0] <= ALLOWED
        reached = (met, self.factor if met else float(validation_auc or 0.0))
        if reached >= self.kept_as:
            self.kept_as, self.kept = reached, copied_weights(self.model)
            self.state.kept_epoch = self.state.epoch + 1
        left = min(max(self._left(out, self.plain.outputs[self.state.epoch], y), -1.0), 1.0)
        self.factor = min(max(self.factor * 2**left, 1 / RANGE), RANGE)

    def _left(self, out: Tensor, plain: Tensor, y: Tensor) -> float:
        """What the budget has left: 0 where it is used up, about 1 where nothing of it is used."""
        if self.rule.observes == "AUC":
            drop, half_width = auc_drop(plain, out, y)
            return (ALLOWED - drop) / max(half_width / NORMAL, ALLOWED)
        best = self.plain.output
        losses = [float(row_losses(o.double(), y, "mean")) for o in (out, plain, best)]
        share = y.double().mean()
        chance = float(-share * share.log() - (1 - share) * (1 - share).log())
        over_chance = float(auc_of_logits(best, y) or 0.5) - 0.5
        allowed = ALLOWED / max(over_chance, ALLOWED) * max(chance - losses[2], ALLOWED)
        return 1 - (losses[0] - losses[1]) / allowed


def started(data: Data, chosen: Recipe, seed: int) -> tuple[Any, ...]:
    """Arguments of a Loop, as fit(None, data, chosen) would give them."""
    network = table_network(data, chosen, seed=seed)
    settings = TrainingSettings(
        k=data.k,
        radius=RADIUS,
        epochs=EPOCHS,
        seed=seed,
        keep="best",
        threshold=None,
        retrain=False,
        agree=0.9,
        save_every=math.inf,
        progress=False,
    )
    alone = SingleProcess(torch.device("cpu"))
    return network, data, scheduled(chosen, network), settings, alone, None


def finished(loop: Loop) -> nn.Module:
    """The network that a training ends with."""
    if loop.recipe.active:
        linear = linear_weights(loop.model, loop.data, None)
        assert linear is not None
        loop.run()
        keep_above(loop, linear)
    else:
        loop.run()
    loop.model.load_state_dict(loop.kept)
    return loop.model.eval()


def measured(model: nn.Module, plain: nn.Module, data: Data) -> dict[str, Any]:
    """Whether the budget is kept on validation rows; and on test rows the drop and what holds."""
    x = data.test.x
    drops = []
    for part in (data.val, data.test):
        before, after = (batched_logits(m, part.x) for m in (plain, model))
        drops.append(auc_drop(before, after, part.y))
    certificate = IntervalCertifier(limit=RADIUS * 1.01, splits=0)
    radius = certificate(model, Gradient(), x[:PROVED_ROWS], k=data.k).radius
    attack = StrongAttack(L2(RADIUS), budget="fast", progress=False)
    return {
        "met": drops[0][0] <= ALLOWED,
        "drop": drops[1][0],
        "half_width": drops[1][1],
        "proved": float((radius >= RADIUS).double().mean()),
        "attacked": float(attack(model, Gradient(), x[:ATTACKED_ROWS], k=data.k).precision.mean()),
        "sets": distinct_top_k(Gradient()(model, x), data.k),
    }


def case(data: Data, name: str, seed: int) -> dict[str, Any]:
    """Every way to a weight, measured on test rows; cost: processor time, in plain trainings."""
    own = recipe(name).prepared(data.k, RADIUS)
    start = time.process_time()
    plain_loop = PlainLoop(*started(data, replace(own, weight=0.0), seed))
    plain = finished(plain_loop)
    second = time.process_time() - start
    ways: dict[str, Any] = {"weight 0": {"weight": 0.0, "cost": 1.0}}
    ways["weight 0"] |= measured(plain, plain, data)
    settings: dict[str, Any] = {"radius": RADIUS, "seed": seed, "epochs": EPOCHS}
    with tempfile.TemporaryDirectory() as out:
        start = time.process_time()
        settings |= {"max_auc_drop": ALLOWED, "progress": False, "baselines": False}
        done = fit(None, data, name, out=out, **settings)
        cost = (time.process_time() - start) / second
        search = done.search
        assert search is not None
        assert own.weight is not None
        ways["search"] = {"weight": search.chosen, "cost": cost}
        ways["search"] |= {"trainings": search.plain_trainings}
        ways["search"] |= measured(done.model, plain, data)
        usual = load_model(Path(out) / "search" / f"{own.weight:.6g}")
    usual_cost = next(t.seconds for t in search.trials if t.weight == own.weight)
    ways["own weight"] = {"weight": own.weight, "cost": usual_cost / search.trials[0].seconds}
    ways["own weight"] |= measured(usual, plain, data)
    for title, rule in RULES.items():
        start = time.process_time()
        chosen = own if rule.start == 1 else replace(own, warm_up=0.0)
        loop = PrimalDualLoop(rule, plain_loop, *started(data, chosen, seed))
        model = finished(loop)
        cost = 1 + (time.process_time() - start) / second
        kept = loop.factors[max(loop.state.kept_epoch, 1) - 1]
        ways[title] = {"weight": own.weight * kept, "cost": cost, **measured(model, plain, data)}
        ways[title] |= {"epoch": loop.state.kept_epoch, "factors": loop.factors}
    return {"recipe": name, "seed": seed, "plain_seconds": second, "ways": ways}


def main() -> None:
    """Measure on one thread what the record lacks, of the tables named."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of budgets that nothing keeps: recorded as met
    folder, named = Path(sys.argv[1]), sys.argv[2:]
    tables = json.loads((folder / "tables.json").read_text())
    known = load_record("primal_dual")["cases"] if (RECORDS / "primal_dual.json").is_file() else []
    first = loaded(folder, named[0], tables[named[0]])
    for name in RECIPES:  # what only the first training pays for
        fit(None, first, name, epochs=2, radius=RADIUS, progress=False, baselines=False)
    for seed in SEEDS:
        for table in named:
            data = loaded(folder, table, tables[table])
            for name in RECIPES:
                if any((c["table"], c["recipe"], c["seed"]) == (table, name, seed) for c in known):
                    continue
                known.append({"table": table, **case(data, name, seed)})
                print(table, name, seed, json.dumps(known[-1]["ways"]), flush=True)
                settings = {"max_auc_drop": ALLOWED, "radius": RADIUS, "epochs": EPOCHS}
                rows = {"proved_rows": PROVED_ROWS, "attacked_rows": ATTACKED_ROWS}
                save("primal_dual", {**settings, **rows, "cases": known})


if __name__ == "__main__":
    main()
