"""The hunt for counter-examples to certificates: writes perf/records/hunt.json as it goes.

`python perf/hunt.py` takes about an hour on one core and goes on where it was stopped; what was
hunted with other code (by a digest of what claims and judgements are made with) is hunted anew.
`--jobs N`: N networks at a time, each in a process of one thread; the record is the same.
`--quick`: about one network of each kind, unrecorded.

Two of three networks are explained by something else than the gradient, half of these by column,
and half of all regions have scales, frozen features and bounds. Every network gets a million random
points (gradients, where an explanation takes several) in the claimed regions, points down the
gradient of the gap, MinimumNorm (fast) at each row and StrongAttack at some, thorough for every
other network; with up to three features also a dense grid. Every fifth row is explained for a class
that is not predicted, and attacks need not keep the prediction where it can be held in place. What
an attack returns is judged again, from scratch, and so is precision_at beyond the radius. The hunt
fails where a claim was broken, and where a network had none to break.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from itertools import count
from multiprocessing import get_context
from typing import Any

import torch
from torch import Tensor, nn

from hunted import KINDS, Case, case
from hunted import ROWS as ROWS_OF
from r2et.attack import MinimumNorm, StrongAttack
from r2et.certify import Certificate
from r2et.errors import InputError
from r2et.rank import precision_at_k, ranking
from r2et.region import Linf, NormBall
from recording import RECORDS, digest, load_record, save

# What claims and judgements are made with.
CODE = ("certify", "explain", "models", "rank", "region")
ROWS = 100_000
POINTS = 1_050_000  # a few of which fall outside by rounding
BATCH = 2**21  # numbers of points held at once
STRONG_ROWS = 24
NEARLY = 1.25  # StrongAttack's ball is no smaller than a row's own radius over this


class Pinned(nn.Module):
    """The network with its prediction held at a class; gradients of log-odds and logit are its."""

    def __init__(self, model: nn.Module, target: int) -> None:
        super().__init__()
        self.model, self.target = model, target

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.model(x)
        if out.shape[1] == 1:
            return out + (1e3 if self.target else -1e3)
        push = torch.zeros(out.shape[1], dtype=out.dtype)
        push[self.target] = 1e3
        return out + push


class Hunt:
    """One network: what is claimed, and how often it is broken."""

    def __init__(self, given: Case, seed: int) -> None:
        self.case, self.model, self.x, self.k = given, given.model, given.x, given.k
        self.region, self.square = given.region, isinstance(given.region, Linf)
        self.unit = replace(given.region, radius=1.0, bounds=None)
        held = torch.zeros(given.x[0].numel(), dtype=torch.bool)
        held[list(given.region.frozen)] = True
        self.held = held.view(given.x.shape[1:])
        scale = torch.ones(1) if given.region.scale is None else torch.tensor(given.region.scale)
        self.scale = scale.expand(len(held)).double().view(given.x.shape[1:])
        self.generator = torch.Generator().manual_seed(seed)
        settings = {"k": given.k, "target": self._targets()}
        self.certificate: Certificate = given.certifier(
            given.model, given.explainer, given.x, **settings
        )
        self.radius = self.certificate.radius
        self.hessian = 0
        if given.also is not None:
            other = given.also(given.model, given.explainer, given.x, **settings).radius
            self.hessian = int((other > 0).sum())
            self.radius = torch.maximum(self.radius, other)
        self.clean = given.explainer(given.model, given.x, settings["target"])
        self.counts: dict[str, Any] = {"points": 0, "grid_points": 0, "partial_points": 0}
        self.beaten, self.closest = 0, 0.0

    def ball(self, radius: float) -> NormBall:
        """The region with another radius."""
        return replace(self.region, radius=radius)

    def _targets(self) -> Tensor:
        """The predicted classes, and any other for every fifth row."""
        with torch.no_grad():
            out = self.model(self.x)
        count = max(2, out.shape[1])
        own = (out[:, 0] > 0).long() if out.shape[1] == 1 else out.argmax(1)
        other = torch.arange(len(own)) % 5 == 4
        self.target = torch.where(other, (own + 1) % count, own)
        return self.target

    def judge(self, points: Tensor, rows: Tensor, claimed: Tensor, at: Tensor) -> int:
        """How many points (m, ...) of rows (m,) are within `at` and below the P@k claimed."""
        inside = self.unit.distance(points.double(), self.x[rows].double()) <= at[rows]
        scores = self.case.explainer(self.model, points, self.target[rows])
        kept = precision_at_k(self.clean[rows], scores, self.k).double()
        wrong = inside & (kept < claimed[rows] - 1e-6)
        if bool(wrong.any()):
            self.beaten += 1
            print("BEATEN", rows[wrong][:5].tolist(), at[rows][wrong][:5].tolist(), flush=True)
        return int(inside.sum())

    def scatter(self, total: int, claimed: Tensor, at: Tensor, name: str) -> None:
        """Random points of each row's ball, inside and on the edge."""
        few = (at > 0).nonzero().flatten()
        if not len(few):
            return
        rows_at_once = max(1, BATCH // self.x[0].numel())
        shape = (-1, *[1] * (self.x.ndim - 1))
        for start in range(0, total, rows_at_once):
            rows = few[torch.arange(start, min(total, start + rows_at_once)) % len(few)]
            move = self.unit.sample(
                torch.zeros(len(rows), *self.x.shape[1:]), generator=self.generator
            )[0]
            far = self.unit.distance(move, torch.zeros_like(move)).clamp(min=1e-12).view(shape)
            edge = (torch.arange(len(rows)) // len(few) % 2 == 1).view(shape)
            corner = move.sign() * self.scale if self.square else move / far
            move = torch.where(edge, corner, move).double()
            here = self.x[rows].double() + (1 - 1e-6) * at[rows].view(shape) * move
            self.counts[name] += self.judge(self.within(here, rows, at), rows, claimed, at)

    def within(self, points: Tensor, rows: Tensor, at: Tensor) -> Tensor:
        """In the model's precision; what its rounding carries out of the ball is drawn in again."""
        x, there = self.x[rows], points.to(self.x)
        there = torch.where(self.held, x, there)
        if self.region.bounds is not None:
            low, high = (torch.tensor(b).to(x).view(x.shape[1:]) for b in self.region.bounds)
            there = torch.minimum(torch.maximum(there, low), high)
        far = self.unit.distance(there.double(), x.double()) > at[rows]
        return torch.where(far.view(-1, *[1] * (x.ndim - 1)), torch.nextafter(there, x), there)

    def downhill(self) -> None:
        """Points at the edge of each row's ball, down the gradient of the gaps at the border."""
        rows = torch.arange(len(self.x))
        shape = (-1, *[1] * (self.x.ndim - 1))
        top = torch.zeros_like(self.clean, dtype=torch.bool)
        top.scatter_(1, ranking(self.clean)[:, : self.k], True)
        move = torch.zeros_like(self.x)
        for step in range(12):
            here = (self.x + (self.radius.view(shape) * move).to(self.x)).requires_grad_()
            found = self.case.explainer(self.model, here, self.target, create_graph=True)
            low = found.masked_fill(~top, torch.inf).sort(dim=1).values[:, step % min(self.k, 3)]
            high = found.masked_fill(top, -torch.inf).amax(1)
            (slope,) = torch.autograd.grad((low - high).sum() + 0 * here.sum(), here)
            move = -self.unit.steepest(slope.double()).to(self.x)
            there = self.x.double() + (1 - 1e-6) * self.radius.view(shape) * move.double()
            inside = self.within(there, rows, self.radius)
            count = self.judge(inside, rows, torch.ones(len(rows)), self.radius)
            self.counts["points"] += count

    def grid(self) -> None:
        """A dense grid around a few rows, where there are two or three features."""
        n = self.x[0].numel()
        if n > 3:
            return
        line = torch.linspace(-1, 1, 401 if n == 2 else 51, dtype=torch.float64)
        move = torch.cartesian_prod(*[line] * n)
        for row in (self.radius > 0).nonzero().flatten()[:4].tolist():
            there = (self.x[row].double() + self.radius[row] * self.scale * move).to(self.x)
            rows = torch.full((len(there),), row)
            claimed = torch.ones(len(self.x))
            there = self.within(there.double(), rows, self.radius)
            self.counts["grid_points"] += self.judge(there, rows, claimed, self.radius)

    def attack(self, which: Any, rows: Tensor, claimed: Tensor, at: Tensor) -> None:
        """An attack on rows, that may change the prediction where it can be held in place."""
        explainer = self.case.explainer
        free = explainer.of in ("log_odds", "logit") and len(rows) > 0
        groups = [rows[self.target[rows] == t] for t in self.target[rows].unique()]
        for group in groups if free else [rows]:
            model = Pinned(self.model, int(self.target[group[0]])) if free else self.model
            target = self.target[group]
            found = which(model, explainer, self.x[group], k=self.k, target=target)
            self.judge(found.x_adv, group, claimed, at)
            flipped = found.precision < 1
            near = (self.radius[group] / found.distance.double().clamp(min=1e-30))[flipped]
            self.closest = max(self.closest, float(near.max()) if len(near) else 0.0)

    def run(self, seed: int) -> dict[str, Any]:
        """Everything; what was done, and how many claims were broken."""
        ones, every = torch.ones(len(self.x)), torch.arange(len(self.x))
        explainer = self.case.explainer
        self.gradients = len(explainer.weights())  # that each point takes
        self.scatter(POINTS // self.gradients, ones, self.radius, "points")
        self.downhill()
        self.grid()
        self.attack(MinimumNorm(self.ball(3.0), budget="fast"), every, ones, self.radius)
        done: dict[str, Any] = {"minimum_norm_rows": len(every), "standard_minimum_norm_rows": 0}
        positive = self.radius[self.radius > 0]
        done |= {"strong_rows": 0, "standard_strong_rows": 0, "partial_rows": 0}
        if len(positive):
            share = (0.3, 0.5, 0.7)[seed % 3]
            middle = float(positive.quantile(share, interpolation="higher"))
            near = (self.radius >= middle) & (self.radius <= NEARLY * middle)
            near &= self.target == self.target[near].mode().values
            thorough = seed % 2 == 0
            near_rows = near.nonzero().flatten()[: STRONG_ROWS // (2 if thorough else 1)]
            strong = StrongAttack(self.ball(middle), budget="thorough" if thorough else "standard")
            self.attack(strong, near_rows, ones, self.radius)
            done["strong_rows" if thorough else "standard_strong_rows"] = len(near_rows)
            self._beyond(min(3.0, (1.2, 1.7, 3.0)[seed % 3] * middle), done)
        if seed % 5 == 0:
            some = every[:STRONG_ROWS]
            closest = MinimumNorm(self.ball(min(3.0, 2 * float(self.radius.max()) + 1e-3)))
            self.attack(closest, some, ones, self.radius)
            done["standard_minimum_norm_rows"] = len(some)
        given = self.case
        return {
            "seed": seed,
            "network": f"{given.kind}, {given.title}",
            "features": given.x[0].numel(),
            "k": self.k,
            "explains": f"{given.explainer.reduce} {given.explainer.of}",
            "explainer": type(given.explainer).__name__,
            "columns": given.explainer.groups is not None,
            "norm": "linf" if self.square else "l2",
            "region": "scale" * (given.region.scale is not None)
            + " bounds" * (given.region.bounds is not None),
            "dtype": str(given.x.dtype).removeprefix("torch."),
            "rows": len(given.x),
            "with_a_radius": int((self.radius > 0).sum()),
            "with_one_by_the_hessian": self.hessian,
            **self.counts,
            **done,
            "closest": round(self.closest, 5),
            "broken": self.beaten,
        }

    def _beyond(self, radius: float, done: dict[str, Any]) -> None:
        """What precision_at claims beyond the certified radius."""
        claimed = self.certificate.precision_at(radius)
        at = torch.full_like(self.radius, radius)
        self.scatter(POINTS // 5 // self.gradients, claimed, at, "partial_points")
        rows = (claimed > 0).nonzero().flatten()
        if len(rows):
            self.attack(StrongAttack(self.ball(radius), budget="fast"), rows, claimed, at)
        done["partial_rows"] = len(rows)


SUMS = (
    *("rows", "with_a_radius", "with_one_by_the_hessian", "points", "grid_points"),
    *("partial_points", "minimum_norm_rows", "standard_minimum_norm_rows", "strong_rows"),
    *("standard_strong_rows", "partial_rows", "broken"),
)


def failures(cases: list[dict[str, Any]]) -> list[str]:
    """Why the hunt fails: claims that were broken, and networks without a claim to break."""
    broken = [f"seed {case['seed']}: a claim is broken" for case in cases if case["broken"]]
    idle = [case for case in cases if "refused" not in case and not case["with_a_radius"]]
    return broken + [f"seed {case['seed']}: every radius is 0" for case in idle]


def totals(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Over all networks."""
    sums = {name: sum(case[name] for case in found) for name in SUMS}
    return {"networks": len(found), **sums, "closest": max(case["closest"] for case in found)}


def entry_of(seed: int) -> dict[str, Any]:
    """One network, hunted."""
    torch.set_num_threads(1)
    start = time.process_time()
    try:
        entry = Hunt(case(seed), seed).run(seed)
    except InputError as error:
        entry = {"seed": seed, "refused": str(error), **dict.fromkeys(SUMS, 0), "closest": 0}
    entry["seconds"] = round(time.process_time() - start, 1)
    return entry


def first_of(entries: dict[int, dict[str, Any]], enough: int) -> list[dict[str, Any]]:
    """The entries of seeds 0, 1, ... up to where there are enough rows, or one is missing."""
    chosen: list[dict[str, Any]] = []
    while len(chosen) in entries and sum(entry["rows"] for entry in chosen) < enough:
        chosen.append(entries[len(chosen)])
    return chosen


def hunt_all(
    entries: dict[int, dict[str, Any]], enough: int, jobs: int
) -> Iterator[dict[str, Any]]:
    """Hunt seed after seed, up to `jobs` at a time, until the first ones have enough rows."""
    seeds = (seed for seed in count() if seed not in entries)

    def missing() -> int:
        return enough - sum(entry["rows"] for entry in first_of(entries, enough))

    if jobs == 1:
        while missing() > 0:
            yield entry_of(next(seeds))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        going: dict[Future[dict[str, Any]], int] = {}
        while missing() > 0:
            planned = sum(ROWS_OF[KINDS[seed % len(KINDS)]] for seed in going.values())
            planned += sum(entry["rows"] for entry in entries.values())
            while len(going) < jobs and (not going or planned < enough):
                seed = next(seeds)
                going[pool.submit(entry_of, seed)] = seed
                planned += ROWS_OF[KINDS[seed % len(KINDS)]]
            done, _ = wait(going, return_when=FIRST_COMPLETED)
            for future in done:
                del going[future]
                yield future.result()


def main() -> None:
    """Hunt, print, record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="about one network of each kind, unrecorded"
    )
    parser.add_argument("--jobs", type=int, default=1, help="networks at a time")
    settings = parser.parse_args()
    torch.set_num_threads(1)
    code = digest(*CODE)
    entries: dict[int, dict[str, Any]] = {}
    if not settings.quick and (RECORDS / "hunt.json").exists():
        before = load_record("hunt")
        if before["code"] == code:
            entries = {entry["seed"]: entry for entry in before["cases"]}
    enough = sum(ROWS_OF[kind] for kind in KINDS) if settings.quick else ROWS
    for entry in hunt_all(entries, enough, settings.jobs):
        entries[entry["seed"]] = entry
        print(entry, flush=True)
        if not settings.quick:
            known = [entries[seed] for seed in sorted(entries)]
            save("hunt", {"code": code, "totals": totals(known), "cases": known})
    cases = first_of(entries, enough)
    if not settings.quick:
        save("hunt", {"code": code, "totals": totals(cases), "cases": cases})
    print(totals(cases), flush=True)
    if failures(cases):
        sys.exit("\n".join(failures(cases)))


if __name__ == "__main__":
    main()
