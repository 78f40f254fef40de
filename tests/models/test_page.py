"""The page about the networks keeps its word."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def test_its_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    names = {}
    exec(block, names)
    assert names["columns"] == ["age", "income"]
    assert [p.shape for p in (names["same"], names["first"], names["second"])] == [(4, 2)] * 3
