"""Code in the README and in docs runs as it stands."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
BLOCKS = [
    pytest.param(page, match[1], id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, match in enumerate(BLOCK.finditer(page.read_text()))
]


@pytest.mark.parametrize(("page", "code"), BLOCKS)
def test_code_blocks_run(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        exec(compile(code, str(page), "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), link


def test_the_readmes_commands_exist():
    made = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert {"demo", "test", "lint", "perf"} <= made
