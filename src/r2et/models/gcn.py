"""The papers' network for pairs of brain networks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn

from r2et.errors import InputError, describe, first_line, require
from r2et.models.network import check_counts, check_widths
from r2et.models.siamese import Siamese

NODE_FEATURES = ("adjacency", "identity", "strength")


class Magnitude(nn.Module):
    """|x|, as a module so that `smooth` can replace it."""

    def forward(self, x: Tensor) -> Tensor:
        return x.abs()


class GraphConvolution(nn.Module):
    """S X W + b on a graph that is already normalised, with the weights of torch_geometric's layer.

    DenseGCNConv itself divides by row sums clamped to 1 or more. With negative edges a sum says
    nothing about a node's weight, and at 1 the clamp puts a kink into the graph's gradient. So
    its weights are used, and the normalisation is left to the network.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        try:
            # Its import takes seconds and warns about itself; the device matters when a network is
            # built without storage, whose rule must not reach what that import creates.
            with warnings.catch_warnings(), torch.device("cpu"):
                warnings.simplefilter("ignore")
                from torch_geometric.nn.dense import DenseGCNConv
        except ImportError as error:
            install, reason = "pip install 'r2et[graph]'", describe(first_line(error))
            raise InputError(
                f"SiameseGCN: torch_geometric must be installed ({install}), got {reason}."
            ) from error
        layer = DenseGCNConv(inputs, outputs)
        self.lin, self.bias = layer.lin, layer.bias

    def forward(self, x: Tensor, walk: Tensor) -> Tensor:
        """x: (B, N, features), or without B; walk: (B, N, N), S. Returns (B, N, out)."""
        out: Tensor = walk @ self.lin(x) + self.bias
        return out


@final
class SiameseGCN(Siamese):
    """Two graph convolutions (256 ReLU, 128), mean over nodes, cosine, linear (B.1.1).

    pair: (B, 2, N, N) adjacency matrices, or (B, 2, N(N-1)/2) upper triangles, row by row.
    A layer is S X W + b with S = D^-1/2 (A + I) D^-1/2, D_ii = 1 + sum over j of |A_ij|: on graphs
    without negative edges the usual one. The absolute value keeps D at 1 or more whatever the
    signs are, so correlations can be given as they are. Graphs are undirected and have no loops:
    of a full matrix (A + A^T)/2 counts, and its diagonal does not.

    Args:
        nodes: N.
        widths: of the two layers.
        features: X, the nodes' own features. "adjacency": row i of A, a region's profile of
            connections; "identity": one-hot; both know which node is which, as brain atlases do.
            "strength": sum over j of A_ij, which makes the network blind to the order of the nodes.
        classes: of the single-input classifier.
    """

    def __init__(
        self,
        nodes: int,
        widths: Sequence[int] = (256, 128),
        *,
        features: str = "adjacency",
        classes: int = 2,
    ) -> None:
        check_counts("SiameseGCN", nodes=nodes)
        check_widths("SiameseGCN", widths, 2)
        hidden, dimension = widths
        known = features in NODE_FEATURES
        require(known, "SiameseGCN", "features", f"one of {', '.join(NODE_FEATURES)}", features)
        require(nodes > 1, "SiameseGCN", "nodes", "at least 2", nodes)
        super().__init__(dimension, classes)
        self.settings = {
            "nodes": nodes,
            "widths": list(widths),
            "features": features,
            "classes": classes,
        }
        self.magnitude = Magnitude()
        self.first = GraphConvolution(1 if features == "strength" else nodes, hidden)
        self.activation = nn.ReLU()
        self.second = GraphConvolution(hidden, dimension)

    def embed(self, x: Tensor) -> Tensor:
        """(B, N, N) or (B, N(N-1)/2) graphs -> (B, d) embeddings."""
        graph = self._graph(x)
        loops = torch.eye(graph.shape[-1], dtype=x.dtype, device=x.device)
        scale = (1 + self.magnitude(graph).sum(-1)).rsqrt()
        walk = scale[:, :, None] * (graph + loops) * scale[:, None, :]
        hidden = self.activation(self.first(self._features(graph, loops), walk))
        nodes: Tensor = self.second(hidden, walk)
        return nodes.mean(1)

    def _features(self, graph: Tensor, loops: Tensor) -> Tensor:
        if self.settings["features"] == "identity":
            return loops
        return graph if self.settings["features"] == "adjacency" else graph.sum(-1, keepdim=True)

    def _graph(self, x: Tensor) -> Tensor:
        """Symmetric (B, N, N) matrices with a zero diagonal, from either form of input."""
        n = self.settings["nodes"]
        edges = n * (n - 1) // 2
        is_valid = x.shape[1:] in ((n, n), (edges,))
        expected = f"of shape ({n}, {n}) or ({edges},) for {n} nodes"
        require(is_valid, "SiameseGCN", "a graph", expected, tuple(x.shape[1:]))
        if x.ndim == 3:
            half = (x + x.transpose(1, 2)) / 2
            return half - torch.diag_embed(half.diagonal(dim1=1, dim2=2))
        row, column = torch.triu_indices(n, n, 1, device=x.device)
        upper = x.new_zeros(len(x), n * n).index_copy(1, row * n + column, x).view(-1, n, n)
        return upper + upper.transpose(1, 2)
