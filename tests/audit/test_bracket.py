"""The bracket: proved below, broken above, and nothing claimed in between."""

import pytest
import torch

from r2et.audit import Bracket, bracket
from r2et.audit.bracket import draw
from r2et.errors import InputError
from r2et.models import MLP
from r2et.train import fit
from training_data import small

GIVEN = Bracket(
    certified=torch.tensor([0.1, 0.2, 0.0, 0.5], dtype=torch.float64),
    attacked=torch.tensor([0.3, 0.2000001, 0.05, torch.inf], dtype=torch.float64),
    norm="l2",
    k=2,
    limit=1.0,
    method="",
    assumptions="",
    distinct_top_k=3,
    largest_top_k_share=0.5,
)


def test_shares_by_hand():
    assert GIVEN.shares(0.01) == (0.75, 0.25, 0.0)
    assert GIVEN.shares(0.2) == (0.5, 0.25, 0.25)
    assert GIVEN.shares(0.3) == (0.25, 0.0, 0.75)
    assert GIVEN.shares(1.0) == (0.0, 0.25, 0.75)
    assert GIVEN.radii() == [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
    told = GIVEN.to_dict()
    assert told["attacked"][3] is None
    assert told["attacked_quantiles"]["95%"] is None
    assert told["certified_quantiles"]["50%"] == pytest.approx(0.15)


@pytest.fixture(scope="module")
def data():
    return small()


@pytest.fixture(scope="module")
def model(data):
    torch.manual_seed(0)
    return fit(MLP(8), data, "vanilla", epochs=30, progress=False).model


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_proved_is_below_broken(model, data, norm):
    found = bracket(model, data.test.x[:24], k=3, norm=norm, limit=1.0, budget="fast")
    assert bool((found.certified <= found.attacked).all())
    assert float(found.certified.median()) > 0
    assert bool(found.attacked.isfinite().any())
    for radius in found.radii():
        assert sum(found.shares(radius)) == pytest.approx(1.0)


def test_a_linear_model_is_proved_everywhere():
    torch.manual_seed(0)
    found = bracket(MLP(6, ()).eval(), torch.randn(5, 6), k=2, limit=2.0)
    assert found.shares(2.0) == (1.0, 0.0, 0.0)
    assert found.distinct_top_k == 1


def test_the_curve_as_a_picture(tmp_path):
    draw(GIVEN, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    draw(GIVEN, tmp_path / "curve.svg")
    assert "<svg" in (tmp_path / "curve.svg").read_text()
    with pytest.raises(InputError, match=r"a name that ends in \.png or \.svg, got"):
        draw(GIVEN, tmp_path / "curve.gif")
    with pytest.raises(InputError, match="figure must be a file that can be written, got"):
        draw(GIVEN, tmp_path / "curve.svg" / "curve.png")


def test_bad_input():
    model, x = MLP(6), torch.randn(3, 6)
    for changes, message in [
        ({"norm": "l1"}, "bracket: norm must be l2 or linf, got l1."),
        ({"limit": 0}, "bracket: limit must be positive, at most 1e+06, got 0."),
        ({"k": 6}, "k must be in 1..5 for 6 features, got 6."),
        ({"budget": "none"}, "budget must be fast, standard or thorough, got none."),
    ]:
        with pytest.raises(InputError) as caught:
            bracket(model.eval(), x, **{"k": 2, **changes})
        assert message in str(caught.value)
