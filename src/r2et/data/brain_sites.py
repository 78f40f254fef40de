"""Three sites of ADHD-200 as graphs, from the TU collection. docs/data/brain.md."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from r2et.data.arrays import triangles
from r2et.data.brain import K
from r2et.data.dataset import Data, DatasetEntry, Origin
from r2et.data.graph_pairs import pair_up
from r2et.data.sources import Address, File, InFolder, read

ADDRESS = "https://www.chrsmrrs.com/graphkerneldatasets"
REGIONS = 190
PARTS = ("A", "graph_indicator", "graph_labels", "node_labels")
# SHA-256 and size of the four files of each site.
CONTENTS = {
    "KKI": (
        ("e2b3e0b237234bc5843b4162a3790ca19ef94b608584e955adb64854b26b0310", 79874),
        ("5c6c025f502e6d417c053f111eb55d03956ec7392073de3b545ea589a6ff026a", 6377),
        ("d290401390446bca784d04553aeba7746996a5eee7c74087b865d75aa674459e", 203),
        ("bd0a5804edc87e2db367e635bcb343e9738ed4037c336ec6b696a4112b0a0929", 7424),
    ),
    "OHSU": (
        ("7d5697ebb5b8012c1987684864b86a6907dd03c1037d53bf9a550604fea2e0e1", 337004),
        ("c1bc94ac8d3ab0fef8c183a44cd881c007836b07c9ec4879b30a6f0581209a01", 18752),
        ("04ca8dcb191056ce301f56b67450cf2bd656726f49f4259eb74a956b10ded55c", 193),
        ("e5abbadffe1eed5c1e9ce08e57fa3377ffd04ed87906a391cd7e2b3a4b4e108d", 21804),
    ),
    "Peking_1": (
        ("e136a6fa5422d303163887ae4e0f455585ec9e255437dec5c501d62eebd41077", 136466),
        ("163e2f6bf2dc4205e88712442a939b136abbb0fc38f1a92de891c6b5e07ebc3d", 9714),
        ("92bc199e1526590aadf3906cf099fbae8c3209f1d98cbf98a8a20317caec0443", 219),
        ("c504c420b33be9d3b23a94a4b6401bc07c3aa15a521ad6792849a85c02cc824d", 10600),
    ),
}
SOURCE = Origin(
    where="TUDataset, https://chrsmrrs.github.io/datasets; ADHD-200",
    credit="S. Pan, J. Wu, X. Zhu, G. Long and C. Zhang (2017); C. Morris et al. (2020)",
    licence="for research",
    changes="nodes placed by region among 190, paired",
)


def files(site: str) -> tuple[File, ...]:
    """The four files of a site, in an archive wherever they are."""
    return tuple(
        File(
            f"brain/{site}/{site}_{part}.txt",
            sha256,
            size,
            (
                InFolder((f"brain/{site}.zip!/{site}/{site}_{part}.txt",)),
                Address((f"{site}/{site}_{part}.txt",), url=f"{ADDRESS}/{site}.zip"),
            ),
        )
        for part, (sha256, size) in zip(PARTS, CONTENTS[site], strict=True)
    )


def load_site(name: str, site: str) -> Callable[[], Data]:
    """The loader of a site: unweighted edges between 190 regions, few of them in each graph."""

    def load() -> Data:
        edges, graph_of, labels, region_of = (
            np.array(contents.decode().replace(",", " ").split(), dtype=np.int64)
            for contents in read(name, files(site))
        )
        graphs = np.zeros((len(labels), REGIONS, REGIONS), np.float32)
        # Nodes are numbered from 1 over all graphs; every edge is listed both ways.
        a, b = edges.reshape(-1, 2).T - 1
        graphs[graph_of[a] - 1, region_of[a], region_of[b]] = 1.0
        y = (labels > 0).astype(np.int64)
        return pair_up(name, triangles(name, "A", graphs), y, k=K, source=SOURCE)

    return load


def _site_entry(name: str, site: str) -> DatasetEntry:
    summary = f"ADHD-200, site {site}: pairs of graphs of {REGIONS} regions"
    return DatasetEntry(summary, load_site(name, site), files(site), SOURCE, "(B, 2, 17955)", K)


ENTRIES = {
    name: _site_entry(name, site)
    for name, site in (("kki", "KKI"), ("ohsu", "OHSU"), ("peking-1", "Peking_1"))
}
