"""A tiny benchmark for tests to kill: python bench_run.py FOLDER [ENGINE] [ADDRESS]"""

import sys

from r2et.bench.grid import Grid
from r2et.bench.run import Runner, run_table

GRID = Grid(("adult",), ("vanilla", "wd"), seeds=2, epochs=1, rows=8, steps=5)


def main(out, kind="here", address=None, grid=GRID, name="table9"):
    # One worker: what a process costs to start is most of what this costs.
    return run_table(name, grid, Runner(out, kind, 1 if address is None else None, address))


if __name__ == "__main__":
    main(*sys.argv[1:])
    print("finished", flush=True)
