"""How tight and fast certificates are: writes perf/records/certify.json.

`python perf/certify.py` takes about ten minutes of one core; `--only
tightness,images,speed` measures some parts anew and leaves the others' figures in the record;
`--quick` a minute, unrecorded. How sound they are is the matter of hunt.py.
Bank and COMPAS come from R2ET_DATA, the cache or their sources (see `r2et data`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from gap_training import K
from r2et.certify import IntervalCertifier
from r2et.data import load
from r2et.explain import Gradient
from r2et.models import MLP
from r2et.penalty import CertifiedRanking
from recording import RECORDS, load_record, save
from tightness import image_networks, table_networks, tightness, train


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
        "tightness": lambda: tightness(table_networks(5 if quick else 40, names)),
        "images": lambda: tightness(image_networks(2 if quick else 60, 1 if quick else 6)),
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
