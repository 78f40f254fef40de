"""A stored network, for tests of what becomes of it."""

import pytest
import torch

from r2et.models import MLP, save_model


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    save_model(MLP(3, (4,)), tmp_path / "model", extra={"names": ["a", "b", "c"]})
    return tmp_path / "model"
