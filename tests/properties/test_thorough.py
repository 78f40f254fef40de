"""The same properties with many more examples."""

import pytest

from profiles import passes_thoroughly


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_examples():
    passes_thoroughly("properties")
