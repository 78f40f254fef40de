"""How many examples hypothesis draws: few in `make test`, many in `make test-slow`.

`pytest tests/properties tests/fuzz --hypothesis-profile thorough` draws as many as the slow tests.
"""

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

# The same examples each time: a failure that comes and goes helps nobody; no folder is written.
COMMON = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "print_blob": True,
    "suppress_health_check": list(HealthCheck),
}
settings.register_profile("quick", max_examples=12, **COMMON)
settings.register_profile("thorough", max_examples=150, **COMMON)
# To hunt for many at once: without looking for the smallest of each.
settings.register_profile("hunt", max_examples=60, phases=[Phase.generate], **COMMON)
settings.load_profile("quick")


def passes_thoroughly(folder: str) -> None:
    """Run the quick tests of a folder of tests with the profile "thorough"."""
    here = Path(__file__).parent
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "not slow",
        "--timeout",
        "0",
        "-p",
        "no:cacheprovider",
    ]
    ran = subprocess.run(
        [*command, "--hypothesis-profile", "thorough", str(here / folder)],
        cwd=here.parent,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-5000:]
    assert " passed" in ran.stdout
