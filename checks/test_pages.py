"""The pages hold what the records hold."""

import subprocess
import sys
from pathlib import Path

from recording import load_record

ROOT = Path(__file__).parents[1]


def test_pages_hold_what_was_measured():
    command = [sys.executable, "tools/measured.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_page_of_feasible_changes_shows_what_was_recorded():
    page = (ROOT / "docs" / "feasible.md").read_text()
    cases = load_record("feasible")["cases"]
    assert cases
    for case in cases:
        cells = (
            f"{case['points']:.0f} | {case['changed']:.1%} | {case['precision']:.1%} | "
            f"{case['lowest']:.0%} | {case['seconds']:.1f} | {case['search_finds']:.1%} | "
            f"{case['search_seconds']:.1f} |"
        )
        assert cells in page
