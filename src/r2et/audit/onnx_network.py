"""A graph of ONNX as a PyTorch module: its nodes, one after another, and its constants."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from r2et.audit.onnx_operators import OPERATORS, WHERE, WORDS, check_logits
from r2et.errors import require


class OnnxNode(NamedTuple):
    """One operator's call: names of what it reads and writes, and all of its attributes."""

    kind: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


class OnnxNetwork(nn.Module):
    """The nodes of an ONNX graph, one after another; its constants are buffers.

    end: the operator that was left out there, since logits come before it.
    features: shape of a row, None where any size will do; None: any shape.
    The state_dict has the SHA-256 of the nodes, too: they make of the weights what is computed.
    """

    def __init__(
        self,
        nodes: list[OnnxNode],
        constants: dict[str, Tensor],
        entry: str,
        output: str,
        end: str | None = None,
        features: tuple[int | None, ...] | None = None,
    ) -> None:
        super().__init__()
        self.nodes, self.entry, self.output = nodes, entry, output
        self.end, self.features = end, features
        self.places = {name: f"constant_{i}" for i, name in enumerate(constants)}
        for name, value in constants.items():
            self.register_buffer(self.places[name], value)

    def forward(self, x: Tensor) -> Tensor:
        self._check_rows(x)
        values = {self.entry: x, **{name: getattr(self, p) for name, p in self.places.items()}}
        for kind, inputs, output, attributes in self.nodes:
            read = (values[name] for name in inputs)
            values[output] = OPERATORS[kind].compute(*read, **attributes)
        logits: Tensor = values[self.output]
        if self.end is not None:
            check_logits(self.end, logits)
        return logits

    @property
    def left_out(self) -> str | None:
        """What was left out at the end, in words."""
        return None if self.end is None else WORDS[self.end]

    def get_extra_state(self) -> Tensor:
        """What tells this graph from others of the same constants."""
        identity = [self.nodes, self.places, self.entry, self.output, self.end, self.features]
        digest = hashlib.sha256(json.dumps(identity).encode()).digest()
        return torch.tensor(list(digest), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        """Weights of another graph are none of this one's."""
        own = self.get_extra_state()
        is_own = isinstance(state, Tensor) and torch.equal(state.cpu(), own)
        require(is_own, WHERE, "weights", "of the same graph", "those of another")

    def _check_rows(self, x: Tensor) -> None:
        if self.features is None:
            return
        sizes = tuple(x.shape[1:])
        fits = len(sizes) == len(self.features) and all(
            expected in (None, size) for expected, size in zip(self.features, sizes, strict=True)
        )
        expected = ", ".join("any" if size is None else str(size) for size in self.features)
        require(fits, WHERE, "x", f"rows of shape ({expected})", f"shape {tuple(x.shape)}")
