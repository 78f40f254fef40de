import pytest
import torch
from torch import nn
from torch.nn import functional as F

from r2et.errors import InputError
from r2et.models import ResNet18


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_the_parameter_counts_are_the_published_ones():
    assert count(ResNet18()) == 11_173_962  # the usual CIFAR-10 variant
    assert count(ResNet18(stem="large", classes=1000)) == 11_689_512  # the ImageNet original


def test_it_has_18_layers_of_weights():
    model = ResNet18(width=4)
    layers = [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    projections = [m for m in layers if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1)]
    assert len(layers) - len(projections) == 18
    assert len(projections) == 3


def test_every_relu_is_its_own_and_works_on_a_copy():
    relus = [m for m in ResNet18(width=4).modules() if isinstance(m, nn.ReLU)]
    assert len(relus) == 1 + 8 * 2
    assert not any(m.inplace for m in relus)


@pytest.mark.parametrize(
    ("stem", "size", "last"), [("small", 32, 4), ("large", 64, 2), ("large", 77, 3)]
)
def test_the_stem_decides_the_resolution(stem, size, last):
    model = ResNet18(channels=1, width=2, stem=stem).eval()
    x = torch.randn(2, 1, size, size)
    assert model.stages(model.stem(x)).shape == (2, 16, last, last)
    concepts = model.pool(model.stages(model.stem(x)))
    assert concepts.shape == (2, 16)
    torch.testing.assert_close(model(x), model.classifier(concepts))


@pytest.mark.parametrize(
    ("shape", "settings"),
    [
        ((4, 3, 32, 32), {"width": 64}),
        ((2, 1, 64, 64), {"width": 16, "channels": 1, "classes": 5, "stem": "large"}),
    ],
)
def test_a_training_step_lowers_the_loss(shape, settings):
    torch.manual_seed(0)
    model = ResNet18(**settings)
    x, y = torch.randn(shape), torch.arange(shape[0])
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    before = F.cross_entropy(model(x), y)
    before.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    optimizer.step()
    with torch.no_grad():
        assert F.cross_entropy(model(x), y) < before


def test_a_block_is_the_identity_plus_its_branch():
    torch.manual_seed(0)
    block = ResNet18(width=3).stages[0][0].double().eval()
    x = torch.rand(1, 3, 5, 5, dtype=torch.float64)
    nn.init.zeros_(block.branch[-1].weight)
    assert torch.equal(block(x), x)  # the branch is 0 and x is not negative


def test_bad_settings_and_inputs_are_refused_in_one_sentence():
    with pytest.raises(InputError, match=r"^ResNet18: stem must be small or large, got huge\.$"):
        ResNet18(stem="huge")
    with pytest.raises(InputError, match=r"^ResNet18: width must be a whole number, at least 1"):
        ResNet18(width=0)
    message = r"^ResNet18: x must be pictures of shape \(B, 3, H, W\), got float32 tensor"
    with pytest.raises(InputError, match=message):
        ResNet18(width=1)(torch.zeros(1, 1, 32, 32))
