"""Adult (UCI 1996), built in: who earns over 50 000 dollars a year? docs/data/adult.md."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import pairwise

import numpy as np
import torch

from r2et.data.dataset import Data, Origin, Split
from r2et.data.schema import Schema
from r2et.data.values import Labels, Values

SOURCE = Origin(
    where="UCI Machine Learning Repository, Adult, https://doi.org/10.24432/C5XW20",
    credit="Barry Becker and Ronny Kohavi (1996)",
    licence="CC BY 4.0",
    changes="9 of 14 columns, categories grouped, rows shuffled and split anew",
)
K = 8


def load_adult() -> Data:
    """All 48842 rows as 28 features in 0..1, split 70:15:15; y is 1 where income is over 50K."""
    folder = files("r2et.data") / "builtin"
    card = json.loads((folder / "adult.json").read_text(encoding="utf-8"))
    with (folder / "adult.npy").open("rb") as file:
        packed = np.load(file, allow_pickle=False)
    schema = Schema.from_json(card["schema"])
    # A row is one whole number: the digits of a mixed-radix number are the codes of its columns.
    *codes, y = np.unravel_index(packed, card["sizes"])
    raw: dict[str, Values] = {
        column.name: Labels(column.categories, code.astype(np.int32)) if column.categories else code
        for column, code in zip(schema.columns, codes, strict=True)
    }
    x, labels = schema.encode(raw), torch.from_numpy(y.astype(np.int64))
    ends = (0, card["train"], card["train"] + card["val"], len(x))
    train, val, test = (Split(x[a:b], labels[a:b]) for a, b in pairwise(ends))
    return Data(
        *("adult", train, val, test, schema.names, schema.groups, K, SOURCE),
        classes=schema.classes,
        schema=schema,
    )
