"""The papers' network for pictures."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn

from r2et.errors import require
from r2et.models.network import Network, check_counts


def _conv(a: int, b: int, size: int, stride: int = 1) -> list[nn.Module]:
    """A convolution without bias (the normalisation has one) that keeps H and W up to stride."""
    conv = nn.Conv2d(a, b, size, stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return [conv, nn.BatchNorm2d(b)]


class _Block(nn.Module):
    """relu(x' + conv(relu(conv(x)))), with x' = x or, where the shape changes, its projection."""

    def __init__(self, a: int, b: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(*_conv(a, b, 3, stride), nn.ReLU(), *_conv(b, b, 3))
        same = a == b and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*_conv(a, b, 1, stride))
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.activation(self.shortcut(x) + self.branch(x))
        return out


@final
class ResNet18(Network):
    """The residual network with 18 layers of weights, in any width.

    x: (B, channels, H, W). Returns (B, classes) logits. Four stages of two blocks, of width,
    2, 4 and 8 times width channels; the mean over positions leaves the 8 * width concepts (512)
    that the last linear layer sees. Every ReLU is a module of its own and none works in place, so
    that `smooth` can replace each.

    Args:
        channels: of a picture.
        classes: how many logits.
        width: channels of the first stage.
        stem: "small" (3*3, full resolution, for 32*32 pictures) or "large" (7*7 of stride 2 and a
            max-pool, for 64*64 and up).
    """

    def __init__(
        self, *, channels: int = 3, classes: int = 10, width: int = 64, stem: str = "small"
    ) -> None:
        super().__init__()
        check_counts("ResNet18", channels=channels, classes=classes, width=width)
        require(stem in ("small", "large"), "ResNet18", "stem", "small or large", stem)
        self.settings = {"channels": channels, "classes": classes, "width": width, "stem": stem}
        if stem == "small":
            first = [*_conv(channels, width, 3), nn.ReLU()]
        else:
            pool = nn.MaxPool2d(3, stride=2, padding=1)
            first = [*_conv(channels, width, 7, 2), nn.ReLU(), pool]
        self.stem = nn.Sequential(*first)
        stages, a = [], width
        for i, b in enumerate([width, 2 * width, 4 * width, 8 * width]):
            stages.append(nn.Sequential(_Block(a, b, 1 if i == 0 else 2), _Block(b, b, 1)))
            a = b
        self.stages = nn.Sequential(*stages)
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(a, classes)

    def forward(self, x: Tensor) -> Tensor:
        channels = self.settings["channels"]
        is_valid = x.ndim == 4 and x.shape[1] == channels
        require(is_valid, "ResNet18", "x", f"pictures of shape (B, {channels}, H, W)", x)
        out: Tensor = self.classifier(self.pool(self.stages(self.stem(x))))
        return out
