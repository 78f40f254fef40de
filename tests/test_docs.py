"""Code in the README and in docs runs as it stands, page by page."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text())]


def name(page):
    return str(page.relative_to(ROOT))


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


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_code_runs(page, materials):  # noqa: ARG001
    space = {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for match in BLOCK.finditer(page.read_text()):
            exec(compile(match[1], str(page), "exec"), space)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), link


def test_the_readmes_commands_exist():
    made = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert {"demo", "test", "lint", "perf"} <= made
