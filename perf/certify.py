"""How tight and fast certificates are: writes perf/records/certify.json.

`python perf/certify.py` takes about half an hour on one core; `--only tightness,speed` measures
one part anew and leaves the other's figures in the record; `--quick` a minute, unrecorded. How
sound they are is the matter of hunt.py.
Bank and COMPAS come from R2ET_DATA, the cache or their sources (see `r2et data`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from gap_training import K, fitted
from r2et.attack import MinimumNorm
from r2et.certify import HessianCertifier, IntervalCertifier
from r2et.data import Data, load
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.penalty import CertifiedRanking
from r2et.region import L2
from r2et.train import fit
from recording import RECORDS, load_record, save


def train(
    data: Data, activation: str, widths: tuple[int, ...], weight: float = 0.0, epochs: int = 5
) -> nn.Module:
    """A network for tables; with a weight, also trained for large gaps without regard to scale."""
    torch.manual_seed(0)
    model = MLP(len(data.names), widths, activation=activation)
    return fitted(model, data.train.x, data.train.y, weight, epochs)


def made(kind: str, data: Data, activation: str, widths: tuple[int, ...]) -> nn.Module:
    """A network of one of three kinds: plain, by the papers' recipe, or for gaps alone."""
    if kind != "r2et":
        return train(data, activation, widths, 0.1 if kind == "gap" else 0.0)
    torch.manual_seed(0)
    network = MLP(len(data.names), widths, activation=activation)
    return fit(network, data, "r2et", k=K, radius=1.0, progress=False).model.requires_grad_(False)


def cnn(activation: type[nn.Module]) -> nn.Module:
    """Two convolutions for digits of 8 * 8, 3 against 8."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        activation(),
        nn.Conv2d(4, 4, 3, stride=2, padding=1),
        activation(),
        nn.Flatten(),
        nn.Linear(64, 2),
    )


def digits() -> tuple[Tensor, Tensor]:
    """scikit-learn's digits 3 and 8, in 0..1."""
    from sklearn.datasets import load_digits

    found = load_digits()
    chosen = (found.target == 3) | (found.target == 8)
    x = torch.tensor(found.images[chosen], dtype=torch.float32)[:, None] / 16
    return x, torch.tensor((found.target[chosen] == 8).astype(int))


def tightness(rows: int, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Median of certified / attacked radius, for each kind of bound."""
    cases: list[tuple[dict[str, Any], nn.Module, Tensor]] = []
    for name in names:
        data = load(name)
        x = data.test.x[:rows]
        for activation in ("leaky_relu", "softplus"):
            for depth in (1, 2, 3):
                for kind in ("vanilla", "r2et", "gap") if depth == 1 else ("vanilla",):
                    entry = {"data": name, "activation": activation, "layers": depth, "kind": kind}
                    cases.append((entry, made(kind, data, activation, (32,) * depth), x))
    images, labels = digits()
    for layer in (nn.ReLU, nn.Softplus):
        torch.manual_seed(0)
        model = fitted(cnn(layer), images[60:], labels[60:], 0.0, 40)
        entry = {"data": "digits", "activation": layer.__name__.lower(), "layers": 2, "kind": "cnn"}
        cases.append((entry, model, images[: min(rows, 20)]))
    found = []
    for entry, model, x in cases:
        smooth = entry["activation"] == "softplus" and entry["kind"] != "cnn"
        attacked = MinimumNorm(L2(4.0))(model, Gradient(), x, k=K).radius
        certifiers = {
            "interval": IntervalCertifier(relaxation="interval"),
            "linear": IntervalCertifier(splits=0),
            "split": IntervalCertifier(splits=8 if entry["kind"] != "cnn" else 4),
        }
        if smooth:
            certifiers["hessian"] = HessianCertifier()
        entry |= {"rows": len(x), "attacked": round(float(attacked.median()), 5), "ratio": {}}
        for title, certifier in certifiers.items():
            radius = certifier(model, Gradient(), x, k=K).radius
            ratio = radius / attacked
            if bool((ratio >= 1).any()):
                raise SystemExit(f"{entry}: {title} is beaten by the attack")
            entry["ratio"][title] = round(float(ratio.median()), 4)
        found.append(entry)
        print(entry, flush=True)
    return found


def seconds(function: Callable[[], Any]) -> float:
    """Processor time of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def speed(rows: int) -> dict[str, Any]:
    """Processor time of certificates, and of a certified step in plain steps."""
    data = load("adult")
    found: dict[str, Any] = {"certify": []}
    for activation in ("leaky_relu", "softplus"):
        model = train(data, activation, (32,), epochs=2)
        for count in (rows // 4, rows):
            x = data.test.x[:count]
            taken = seconds(lambda m=model, z=x: IntervalCertifier()(m, Gradient(), z, k=K))
            entry = {"activation": activation, "rows": count, "seconds": round(taken, 3)}
            found["certify"].append(entry)
            print(entry, flush=True)
    x, y = data.train.x[:256], data.train.y[:256]
    model = MLP(len(data.names))
    optimizer = torch.optim.Adam(model.parameters())

    def step(penalised: int) -> None:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        if penalised:
            loss = loss + CertifiedRanking(k=K, radius=0.3)(model, x[:penalised]).mean()
        loss.backward()
        optimizer.step()

    taken = {}
    for penalised in (0, 64, 256):
        for _ in range(20):
            step(penalised)
        times = [seconds(lambda p=penalised: step(p)) for _ in range(300)]
        taken[penalised] = sorted(times)[len(times) // 2]
    found["step"] = {
        "plain_ms": round(1e3 * taken[0], 3),
        "ratio_64_rows": round(taken[64] / taken[0], 2),
        "ratio_256_rows": round(taken[256] / taken[0], 2),
    }
    print(found["step"], flush=True)
    return found


def main() -> None:
    """Measure, print, record."""
    torch.set_num_threads(1)
    quick = "--quick" in sys.argv[1:]
    only = sys.argv[sys.argv.index("--only") + 1].split(",") if "--only" in sys.argv else []
    names = ("compas",) if quick else ("adult", "compas")
    parts: dict[str, Callable[[], Any]] = {
        "tightness": lambda: tightness(10 if quick else 100, names),
        "speed": lambda: speed(200 if quick else 1000),
    }
    found = {"k": K}
    if (RECORDS / "certify.json").exists():
        before = load_record("certify")
        found |= {name: before[name] for name in parts if name in before}
    for name, part in parts.items():
        if not only or name in only:
            found[name] = part()
            if not quick:
                save("certify", found)


if __name__ == "__main__":
    main()
