"""The same files with many more mutations."""

import pytest

from profiles import passes_thoroughly


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_mutations():
    passes_thoroughly("fuzz")
