"""Adult (UCI 1996), built in: who earns over 50 000 dollars a year? docs/data/adult.md."""

from __future__ import annotations

import io
import json

import numpy as np
import torch

from r2et.data.dataset import Data, DatasetEntry, Origin
from r2et.data.schema import Schema
from r2et.data.sources import File, read
from r2et.data.values import Labels, Values

SOURCE = Origin(
    where="UCI Machine Learning Repository, Adult, https://doi.org/10.24432/C5XW20",
    credit="Barry Becker and Ronny Kohavi (1996)",
    licence="CC BY 4.0",
    changes="9 of 14 columns, categories grouped, rows shuffled and split anew",
)
K = 8
FILES = (
    File(
        "adult/adult.npy",
        "be769eb789b7d9532a58b434b47dbc23a33debeb64a61a8c78b12074a0030381",
        195496,
        builtin="builtin/adult.npy",
    ),
    File(
        "adult/adult.json",
        "8ca7d34beb3080767e99521156be38bceb30bf24201732f53182728e05bec807",
        1816,
        builtin="builtin/adult.json",
    ),
)


def load_adult() -> Data:
    """All 48842 rows as 28 features in 0..1, split 70:15:15; y is 1 where income is over 50K."""
    table, described = read("adult", FILES)
    card = json.loads(described)
    packed = np.load(io.BytesIO(table), allow_pickle=False)
    schema = Schema.from_json(card["schema"])
    # A row is one whole number: the digits of a mixed-radix number are the codes of its columns.
    *codes, y = np.unravel_index(packed, card["sizes"])
    raw: dict[str, Values] = {
        column.name: Labels(column.categories, code.astype(np.int32)) if column.categories else code
        for column, code in zip(schema.columns, codes, strict=True)
    }
    x, labels = schema.encode(raw), torch.from_numpy(y.astype(np.int64))
    sizes = (card["train"], card["val"], len(x) - card["train"] - card["val"])
    return Data.from_schema("adult", schema, x, labels, sizes, k=K, source=SOURCE)


ENTRIES = {
    "adult": DatasetEntry(
        "income over 50K from 28 features of a census row",
        load_adult,
        FILES,
        SOURCE,
        "(B, 28)",
        K,
    ),
}
