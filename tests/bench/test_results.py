"""docs/results.md says what the committed records say."""

import subprocess
import sys
from pathlib import Path

from r2et.bench.results import results

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_records_make():
    text = results(ROOT / "docs" / "records", "records")
    assert (ROOT / "docs" / "results.md").read_text() == text


def test_the_check_sees_a_page_that_is_out_of_date(tmp_path):
    for part in ("tools/results.py", "docs/results.md"):
        (tmp_path / part).parent.mkdir(exist_ok=True)
        (tmp_path / part).write_text((ROOT / part).read_text())
    (tmp_path / "docs/results.md").write_text("typed by hand")
    command = [sys.executable, str(tmp_path / "tools/results.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "must be made anew" in done.stderr
