"""The examples run, and are as alike as they say."""

import difflib
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PAIR = ("train_plain.py", "train_r2et.py")


def test_the_pair_differs_by_one_line():
    plain, stable = ((EXAMPLES / name).read_text().splitlines() for name in PAIR)
    changes = [line for line in difflib.ndiff(plain, stable) if line[0] in "+-?"]
    assert len(changes) == 1
    assert re.match(r"\+ +loss \+= .*r2et\.penalty\.", changes[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIR)
def test_examples_run(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert float(re.fullmatch(r"test AUC (0\.\d+)", lines[0])[1]) > 0.85
    assert 0 < float(re.fullmatch(r"P@8 under attack, radius 0\.3: (.+)%", lines[1])[1]) <= 100
    assert int(re.fullmatch(r"different top-8 sets among 200 rows: (\d+)", lines[2])[1]) >= 1
