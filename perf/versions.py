"""What installs, and whether the core tests pass there: `python perf/versions.py [NAME ...]`.

Wheel and source archive are built once, from a copy of the tree, and installed bare in a fresh
environment each: the newest of everything, and the lowest that pyproject.toml allows. torch is the
one of constraints.txt in both: other builds for x86 than that one bring gigabytes of CUDA.

`--also NAME=PYTHON` measures in an environment that has everything but r2et already, such as one
with the lowest torch (`python perf/versions.py --pins` prints what to install): the wheel is put
into it, without what it needs, and all is measured as in the others. Where the machine is another
one, under an emulator, only the tests that start no process are run. Environments that are not
measured keep what the record has of them. Of other Pythons is only known that they compile the
sources.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from recording import RECORDS, load_record, save

ROOT = Path(__file__).parents[1]
TORCH, OLDEST_TORCH = "torch==2.13.0", "torch==2.4.0"
# Lowest of pyproject.toml, or the lowest that installs beside it: see `raised` in the record.
LOWEST = (
    "captum==0.8.0", "clarabel==0.9.0", "filelock==3.30.0", "jinja2==3.1.2", "matplotlib==3.7.0",
    "numpy==1.24.0", "pandas==2.2.0", "pillow==9.3.0", "platformdirs==4.0.0", "pooch==1.8.0",
    "pyarrow==14.0.0", "requests==2.31.0", "rich==13.0.0", "safetensors==0.4.0",
    "scikit-learn==1.6.0", "scipy==1.11.0", "typer==0.16.0",
)  # fmt: skip
ENVIRONMENTS: dict[str, tuple[str, ...]] = {"newest": (), "lowest": LOWEST}
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
TESTS = (
    "tests/rank", "tests/region", "tests/metrics", "tests/results", "tests/models/test_storage.py",
    "tests/data/test_table_dataset.py", "tests/data/test_schema.py", "tests/explain/test_values.py",
    "tests/certify/test_interval.py", "tests/audit/test_summary.py",
)  # fmt: skip
# What starts no process of its own, which an emulator could not do.
PLAIN = (
    "tests/rank", "tests/region", "tests/metrics/test_statistics.py", "tests/results",
    "tests/explain/test_values.py", "tests/certify/test_interval.py", "tests/audit/test_summary.py",
)  # fmt: skip
NAMED = (
    "torch",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "scikit-learn",
    "matplotlib",
    "safetensors",
)
TIMER = "import time; a = time.perf_counter(); import {0}; print(time.perf_counter() - a)"


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command, with what it printed; nothing of ours is on its path."""
    env = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"}
    env["OMP_NUM_THREADS"] = "1"
    words = [str(c) for c in command]
    return subprocess.run(words, capture_output=True, text=True, env=env, **options)


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive of the tree."""
    tree = folder / "tree"
    archive = run(
        "git", "-C", ROOT, "archive", "--format=tar", f"--output={folder / 't.tar'}", "HEAD"
    )
    archive.check_returncode()
    tree.mkdir()
    run("tar", "-xf", folder / "t.tar", "-C", tree).check_returncode()
    python = environment(folder / "build")
    run(python, "-m", "pip", "install", "-q", "hatchling").check_returncode()
    run(python, "-m", "hatchling", "build", cwd=tree).check_returncode()
    (wheel,), (source,) = (tree / "dist").glob("*.whl"), (tree / "dist").glob("*.tar.gz")
    return wheel, source


def environment(place: Path) -> Path:
    """The Python of a fresh environment."""
    run(sys.executable, "-m", "venv", place).check_returncode()
    return place / "bin" / "python"


def installed(python: Path, package: Path, pins: tuple[str, ...]) -> tuple[list[str], str]:
    """Install a package and what it needs; a pin that cannot be had is left out, and said.

    Returns the pins left out, and what pip says of the rest, empty where all is well.
    """
    left_out: list[str] = []
    while True:
        wanted = [pin for pin in pins if pin not in left_out]
        wheels = ("--only-binary", ":all:", "--no-binary", "r2et")
        done = run(python, "-m", "pip", "install", "-q", *wheels, package, TORCH, *wanted)
        if done.returncode == 0:
            return left_out, ""
        text = done.stderr
        culprit = next((p for p in wanted if re.search(rf"\b{re.escape(p)}\b", text)), None)
        if culprit is None:
            return left_out, text[-600:]
        left_out.append(culprit)


def seconds(python: Path, module: str, times: int = 3) -> float:
    """The fastest of a few imports, each in a process of its own, after one that warms the disk."""
    runs = [run(python, "-c", TIMER.format(module)) for _ in range(times + 1)]
    return round(min(float(r.stdout) for r in runs[1:]), 3)


def measured(name: str, package: Path, folder: Path, wheel: Path) -> dict[str, Any]:
    """One fresh environment: what is in it, `pip check`, imports, and the core tests."""
    began, python = time.time(), environment(folder / name)
    left_out, trouble = installed(python, package, ENVIRONMENTS[name])
    if trouble:
        return {"installs": False, "said": trouble, "left_out": left_out}
    found = {"installs": True, "from": package.suffix.lstrip("."), "left_out": left_out}
    return {**found, **tried(python, wheel), "seconds": round(time.time() - began, 1)}


def tried(python: Path, wheel: Path) -> dict[str, Any]:
    """Where r2et is installed: what else is, `pip check`, imports, and the core tests."""
    check = run(python, "-m", "pip", "check")
    bare = {m: seconds(python, m) for m in ("torch", "r2et", "r2et.audit, torch")}
    help_text = run(python, "-m", "r2et", "--help")
    run(python, "-m", "pip", "install", "-q", "pytest", "pytest-timeout", "hypothesis")
    tree = wheel.parents[1]
    shutil.rmtree(tree / "src", ignore_errors=True)  # the installed package is tested, no other
    return {
        **described(python),
        "pip_check": check.stdout.strip(),
        "command_runs": help_text.returncode == 0,
        "import_seconds": bare,
        **core_tests(python, tree),
    }


def described(python: Path) -> dict[str, Any]:
    """An environment: Python, processor, the versions that matter, and today."""
    code = (
        "import json, platform, sys; from importlib.metadata import version;"
        " print(json.dumps({'python': platform.python_version(), 'machine': platform.machine(),"
        " 'versions': {n: version(n) for n in sys.argv[1:]}}))"
    )
    own: dict[str, Any] = json.loads(run(python, "-c", code, *NAMED).stdout)
    return {**own, "date": datetime.now(timezone.utc).date().isoformat()}


def core_tests(python: Path | str, tree: Path, *paths: str) -> dict[str, Any]:
    """The quick core tests in a tree, all by default; graphs need an extra."""
    done = run(
        python, "-m", "pytest", "-o", "addopts=--import-mode=importlib", "-m", "not slow",
        "-k", "not gcn", "-p", "no:cacheprovider", "--tb=line", "-W", "default",
        *(paths or TESTS), cwd=tree,
    )  # fmt: skip
    return {
        "tests": done.stdout.strip().splitlines()[-1].strip("= "),
        "failed": re.findall(r"^FAILED (\S+)", done.stdout, re.M),
        "passed": done.returncode == 0,
    }


def prepared(python: Path, wheel: Path) -> dict[str, Any]:
    """The same by a Python that has all but r2et; of an emulated one, the plain tests alone."""
    began = time.time()
    own = described(python)
    if own["machine"] == platform.machine():
        options = ("-q", "--no-deps", "--force-reinstall")
        run(python, "-m", "pip", "install", *options, wheel).check_returncode()
        own = {"installs": True, "from": "whl", "left_out": [], **tried(python, wheel)}
    else:
        own |= core_tests(python, ROOT, *PLAIN)
    return {**own, "seconds": round(time.time() - began, 1)}


def python_of(version: str) -> str | None:
    """A Python of this version, if there is one."""
    known = [shutil.which(f"python{version}")]
    known += [str(p) for p in (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")]
    return next((p for p in known if p and run(p, "-c", "").returncode == 0), None)


def compiled(version: str, folder: Path) -> dict[str, Any]:
    """Whether this Python reads every source file, where there is no torch for it."""
    python = python_of(version)
    if python is None:
        return {"python": None}
    place = folder / f"src-{version}"
    shutil.copytree(ROOT / "src", place)
    done = run(python, "-W", "error", "-m", "compileall", "-q", place)
    full = run(python, "-c", "import platform; print(platform.python_version())").stdout.strip()
    return {"python": full, "compiles": done.returncode == 0, "said": done.stdout[-300:]}


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ENVIRONMENTS))
    parser.add_argument("--also", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--pins", action="store_true", help="the lowest versions, for pip")
    given = parser.parse_args()
    if given.pins:
        print(*LOWEST, OLDEST_TORCH)
        return
    names = given.names or ([] if given.also else list(ENVIRONMENTS))
    before = load_record("versions") if (RECORDS / "versions.json").exists() else {}
    environments: dict[str, Any] = dict(before.get("environments", {}))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel, source = build(folder)
        for name in names:
            package = source if name == "lowest" else wheel
            environments[name] = measured(name, package, folder, wheel)
            print(name, json.dumps(environments[name], indent=1), flush=True)
        for text in given.also:
            name, _, python = text.partition("=")
            environments[name] = prepared(Path(python), wheel)
            print(name, json.dumps(environments[name], indent=1), flush=True)
        pythons = {version: compiled(version, folder) for version in PYTHONS}
        print(json.dumps(pythons))
        sizes = {"wheel_bytes": wheel.stat().st_size, "source_bytes": source.stat().st_size}
        save("versions", {**sizes, "environments": environments, "pythons": pythons})


if __name__ == "__main__":
    main()
