"""Code in the README and in docs runs as it stands, page by page, and the site builds.

A block under `<!-- needs: PACKAGE -->` runs where the package is installed; one under
`<!-- not run: WHY -->` is only compiled. Budgets of attacks are cut, so that pages may say what a
reader should.
"""

import gzip
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from PIL import Image

from r2et.audit import audit
from r2et.audit.measures import MEASURES
from r2et.certify.operators import registry
from r2et.cli import app
from r2et.data import load
from r2et.models import MLP
from r2et.region import L2
from r2et.train import fit
from r2et.train.recipe import RECIPES
from r2et.version import __version__

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>needs|not run): (?P<what>[^>]*) -->\n)?```python\n(?P<code>.*?)^```",
    re.M | re.S,
)
SHELL = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text())]


def name(page):
    return str(page.relative_to(ROOT))


@pytest.fixture(autouse=True)
def operators(monkeypatch):
    """What a page adds to the proof ends with it."""
    monkeypatch.setattr(registry, "OPERATORS", dict(registry.OPERATORS))


@pytest.fixture
def materials(tmp_path, monkeypatch):
    """The files that pages speak of, small, in the current folder."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    loans = ["customer,pay,grade,zip,default"]
    for i in range(60):
        pay, grade, code = random.integers(1000, 9000), "ABC"[i % 3], 10000 + i % 4
        loans.append(f"c{i:04},{pay},{grade},{code},{'yes' if i % 5 == 0 else 'no'}")
    for file in ("loans.csv", "next_month.csv"):
        Path(file).write_text("\n".join(loans) + "\n")
    Path("rois_aal").mkdir()
    for person in range(3):
        np.savetxt(f"rois_aal/{person}_rois_aal.1D", random.normal(size=(20, 116)))
    np.save("diagnosis.npy", [0, 1, 0])
    for label in ("CNV", "DME", "DRUSEN", "NORMAL"):
        folder = Path("OCT2017/train", label)
        folder.mkdir(parents=True)
        Image.fromarray(random.integers(0, 255, (30, 40), dtype=np.uint8)).save(
            folder / f"{label}-7-1.jpeg"
        )


def digits(part, rows):
    """A few made-up pictures in the files of MNIST."""
    random = np.random.default_rng(0)
    Path("mnist").mkdir(exist_ok=True)
    pictures = random.integers(0, 255, (rows, 28, 28), dtype=np.uint8)
    for name, head, values in (
        ("images-idx3", 16, pictures),
        ("labels-idx1", 8, np.arange(rows, dtype=np.uint8) % 10),
    ):
        blob = gzip.compress(bytes(head) + values.tobytes())
        Path(f"mnist/{part}-{name}-ubyte.gz").write_bytes(blob)


def toured():
    """What the tour's commands leave behind, made of little."""
    data = load("adult")
    small = replace(data, train=type(data.train)(data.train.x[:300], data.train.y[:300]))
    done = fit(None, small, "vanilla", epochs=1, out="held", progress=False)
    for name, model in (("plain", MLP(28)), ("held", done.model)):
        x, y = data.test.x[:20], data.test.y[:20]
        found = audit(model, x, y, k=8, region=L2(0.3), budget="fast", name=name)
        found.to_json(f"{name}.json")


@pytest.fixture
def quick(short_attacks):  # noqa: ARG001
    """Attacks that look at few points, and audits without their slowest measures."""
    known = dict(MEASURES)
    for name in ("smallest", "curvature"):
        del MEASURES[name]
    yield
    MEASURES.clear()  # a page may have registered one
    MEASURES.update(known)


def run_by(page):
    """A page as a parameter; long ones are slow."""
    long = page.name in ("training.md", "tour.md")
    return pytest.param(page, id=name(page), marks=pytest.mark.slow if long else ())


@pytest.mark.parametrize("page", [run_by(page) for page in WITH_CODE])
def test_code_runs(page, materials, quick):  # noqa: ARG001
    if page.name == "tour.md":
        toured()
    if "mnist/" in page.read_text():
        digits("train", 20)
        digits("t10k", 2)
    space, lacking = {"__name__": "page"}, []
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for match in BLOCK.finditer(page.read_text()):
            code = compile(match["code"], str(page), "exec")
            if match["mark"] == "needs" and importlib.util.find_spec(match["what"]) is None:
                lacking.append(match["what"])
            elif match["mark"] == "needs":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of a package that is not ours
                    exec(code, space)
            elif match["mark"] != "not run":
                exec(code, space)
    if lacking:
        pytest.skip(f"all but the blocks that need {', '.join(lacking)} ran")


def commands():
    """Every line of a page that calls r2et, without its comment."""
    for page in PAGES:
        for block in SHELL.findall(page.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("r2et "):
                    yield pytest.param(
                        shlex.split(line, comments=True)[1:], id=f"{page.name}: {line}"
                    )


@pytest.mark.parametrize("words", list(commands()))
def test_commands_have_their_arguments_and_options(words):
    command = typer.main.get_command(app)
    context = command.make_context("r2et", words[:1], resilient_parsing=True)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, words, parent=context)


def test_every_method_has_a_page():
    from r2et import attack, certify, explain

    written = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    titles = set(re.findall(r"^# (.+)$", written, re.M))
    named = {word for title in titles for word in re.split(r"\W+(?:and\W+)?", title)}
    for package in (attack, certify, explain):
        base = {"Attack": attack, "Certifier": certify, "Explainer": explain}
        kinds = tuple(getattr(where, kind) for kind, where in base.items())
        for found in map(vars(package).get, package.__all__):
            if isinstance(found, type) and issubclass(found, kinds) and found not in kinds:
                assert found.__name__ in named | {"FeasibleSearch"}, found.__name__
    for recipe in RECIPES:
        page = recipe if not recipe.startswith("r2et-") or recipe == "r2et-ball" else "r2et"
        assert f"`{recipe}`" in written, recipe
        assert f"# {page}\n" in written, recipe


def test_every_package_has_its_reference():
    made = {path.stem for path in (ROOT / "docs" / "api").glob("*.md")}
    public = {path.parent.name for path in (ROOT / "src" / "r2et").glob("*/__init__.py")}
    assert public - {"cli"} <= made


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="the site needs the extra docs (make docs)")
    pytest.importorskip("mkdocstrings", reason="the site needs the extra docs (make docs)")
    pytest.importorskip("material", reason="the site needs the extra docs (make docs)")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    pages = list((tmp_path / "site").rglob("*.html"))
    for page in pages:
        loaded = re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=.?(https?:[^\s>]+)", page.read_text()
        )
        assert not loaded, page
    api = (tmp_path / "site" / "api" / "attack.html").read_text()
    assert "r2et.attack.StrongAttack" in api


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), link


def test_the_commands_of_readme_and_contributing_exist():
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for page in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text()
        named = re.findall(r"^make ([a-z-]+)", text, re.M) + re.findall(r"`make ([a-z-]+)`", text)
        assert {"test", "lint"} & set(named)
        assert set(named) <= made


def test_contributing_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:src|tests|docs|perf|checks)/[^`]*)`", text)
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]


def test_a_citation_is_of_this_version():
    version = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert version[1] == __version__
