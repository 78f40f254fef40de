"""torch_geometric's dense graph convolution; imported only when a graph network is built."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn.dense import DenseGCNConv


class GraphConvolution(DenseGCNConv):
    """S X W + b on a graph that is already normalised.

    DenseGCNConv itself divides by row sums clamped to 1 or more. With negative edges a sum says
    nothing about a node's weight, and at 1 the clamp puts a kink into the graph's gradient. So
    its weights are used, and the normalisation is left to the network.
    """

    def forward(self, x: Tensor, walk: Tensor) -> Tensor:
        """x: (B, N, features), or without B; walk: (B, N, N), S. Returns (B, N, out)."""
        out: Tensor = walk @ self.lin(x) + self.bias
        return out
