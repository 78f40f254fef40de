"""Inputs and explanations as small PNG pictures that live inside the page."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LARGEST = 128  # pixels per side; larger pictures are averaged down
PLANES = 4  # pictures side by side, of an input that is neither grey nor colour
# Dark to light, in steps that stay in order in grey and for every kind of colour vision.
HEAT = (
    (10, 19, 50),
    (35, 62, 108),
    (84, 106, 118),
    (152, 146, 109),
    (216, 192, 84),
    (255, 236, 140),
)
# Blue for less, orange for more, white for unchanged.
SIGNED = ((8, 69, 148), (107, 160, 211), (250, 250, 250), (240, 157, 92), (166, 60, 0))
Numbers = NDArray[np.float64]


def is_map(scores_shape: Sequence[int]) -> bool:
    """Whether scores have the layout of a picture: (H, W), or (C, H, W) with few channels."""
    flat = len(scores_shape) == 2 or (len(scores_shape) == 3 and scores_shape[0] <= PLANES)
    return flat and min(scores_shape[-2:]) > 1


def input_picture(x: Sequence[float], shape: Sequence[int], clean: Sequence[float]) -> str:
    """An input, grey or in colour, on the scale that the clean one needs."""
    low, high = _scale(clean)
    planes = np.clip((_planes(x, shape) - low) / (high - low), 0, 1)
    if _coloured(shape):
        return _png(np.stack([_small(p) for p in planes], 2) * 255)
    return _png(_beside(planes) * 255)


def change_picture(x: Sequence[float], clean: Sequence[float], shape: Sequence[int]) -> str:
    """The change of each pixel, mean over colours, in units of the largest one."""
    planes = _planes(x, shape) - _planes(clean, shape)
    one = _small(planes.mean(0)) if _coloured(shape) else _beside(planes)
    largest = float(np.abs(one).max()) or 1.0
    return _png(one / largest / 2 + 0.5, SIGNED)


def heat_map(scores: Sequence[float], shape: Sequence[int]) -> str:
    """An explanation, from none (dark) to its largest score (light)."""
    plane = np.clip(_planes(scores, shape), 0, None).sum(0)
    return _png(_small(plane) / (float(plane.max()) or 1.0), HEAT)


def mark(features: Iterable[int], shape: Sequence[int], form: str) -> str:
    """SVG path data over a picture of H * W units: a sign of some form on each feature's pixel."""
    height, width = shape[-2:]
    pixels = sorted({f % (height * width) for f in features})
    forms = {
        "square": "M{x:g} {y:g}m.1 .1h.8v.8h-.8z",
        "cross": "M{x:g} {y:g}m.1 .1l.8 .8m0-.8l-.8 .8",
    }
    forms["plus"] = "M{x:g} {y:g}m.5 .05v.9m-.45-.45h.9"
    return "".join(forms[form].format(x=p % width, y=p // width) for p in pixels)


def _planes(values: Sequence[float], shape: Sequence[int]) -> Numbers:
    return np.asarray(values, dtype=np.float64).reshape(-1, *shape[-2:])


def _coloured(shape: Sequence[int]) -> bool:
    return len(shape) == 3 and shape[0] == 3


def _scale(clean: Sequence[float]) -> tuple[float, float]:
    """0..1 or 0..255 where the numbers look like it, else from the least to the largest."""
    low, high = min(clean), max(clean)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and 2 < high <= 255:
        return 0.0, 255.0
    return low, high if high > low else low + 1.0


def _beside(planes: Numbers) -> Numbers:
    return np.concatenate([_small(p) for p in planes[:PLANES]], 1)


def _small(plane: Numbers) -> Numbers:
    """The plane itself, or means of blocks of it where it is large."""
    block = math.ceil(max(plane.shape) / LARGEST)
    if block == 1:
        return plane
    padded = np.pad(plane, [(0, -size % block) for size in plane.shape], mode="edge")
    height, width = (size // block for size in padded.shape)
    means: Numbers = padded.reshape(height, block, width, block).mean((1, 3))
    return means


def _png(values: Numbers, colours: Sequence[tuple[int, int, int]] | None = None) -> str:
    """A data address: of grey or RGB values to 255, or of values in 0..1 in a scale of colours."""
    if colours is None:
        image = Image.fromarray(np.rint(values).astype(np.uint8))
    else:
        image = Image.fromarray(np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8))
        stops = np.linspace(0, 255, len(colours))
        table = [
            np.interp(np.arange(256), stops, channel) for channel in zip(*colours, strict=True)
        ]
        image = image.convert("P")
        image.putpalette(np.rint(np.stack(table, 1)).astype(np.uint8).tobytes())
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
