"""Build src/r2et/data/builtin/adult.*: `python tools/build_adult.py [--check]`.

The raw files are found like those of any data set (docs/data/sources.md): in R2ET_DATA, or in the
package aif360, which is opened and never installed. --check compares a new build with what is
stored.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sys
from pathlib import Path

import numpy as np

from r2et.data import Column, Schema
from r2et.data.sources import File, Package, read


def _raw(name: str, sha256: str, size: int) -> File:
    copy = Package((f"aif360/data/raw/adult/{name}",), name="aif360", version="0.2.3")
    return File(f"adult/{name}", sha256, size, (copy,))


RAW = (
    _raw("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d", 3974305),
    _raw("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05", 2003153),
)
OUT = Path(__file__).parents[1] / "src" / "r2et" / "data" / "builtin"
SEED = 1996
TRAIN, VAL = 0.70, 0.15

# Position in the raw file, and which raw labels make up each category. "" takes all the others.
BINARY = {
    "race": (8, {"other": [""], "white": ["White"]}),
    "sex": (9, {"female": ["Female"], "male": ["Male"]}),
    "native country": (13, {"other": [""], "United States": ["United-States"]}),
}
CATEGORY = {
    "work class": (
        1,
        {
            "private": ["Private"],
            "self-employed": ["Self-emp-inc", "Self-emp-not-inc"],
            "government": ["Federal-gov", "State-gov", "Local-gov"],
            "none or unknown": ["?", "Without-pay", "Never-worked"],
        },
    ),
    "education": (
        3,
        {
            "below 9th grade": ["Preschool", "1st-4th", "5th-6th", "7th-8th"],
            "9th to 12th grade": ["9th", "10th", "11th", "12th"],
            "high school": ["HS-grad"],
            "some college": ["Some-college"],
            "associate": ["Assoc-voc", "Assoc-acdm"],
            "bachelor": ["Bachelors"],
            "master": ["Masters"],
            "doctor or professional school": ["Doctorate", "Prof-school"],
        },
    ),
    "marital status": (
        5,
        {
            "married": ["Married-civ-spouse", "Married-AF-spouse"],
            "never married": ["Never-married"],
            "divorced": ["Divorced"],
            "separated": ["Separated", "Married-spouse-absent"],
            "widowed": ["Widowed"],
        },
    ),
    "occupation": (
        6,
        {
            "executive": ["Exec-managerial"],
            "professional": ["Prof-specialty", "Tech-support"],
            "office or sales": ["Adm-clerical", "Sales"],
            "service": ["Other-service", "Priv-house-serv", "Protective-serv"],
            "manual": [
                "Craft-repair",
                "Machine-op-inspct",
                "Transport-moving",
                "Handlers-cleaners",
                "Farming-fishing",
            ],
            "military or unknown": ["Armed-Forces", "?"],
        },
    ),
}
NUMBERS = {"age": (0, 100), "hours per week": (12, 100)}  # position, and a bound on the value
CLASSES = ("at most 50K", "over 50K")


def rows(text: str) -> list[list[str]]:
    """The records of a raw file; the second one starts with a remark and ends labels with '.'."""
    cells = csv.reader(io.StringIO(text), skipinitialspace=True)
    return [[*row[:14], row[14].rstrip(".")] for row in cells if len(row) == 15]


def code(cells: list[str], groups: dict[str, list[str]]) -> np.ndarray:
    """(rows,) index of each cell's category."""
    index = {raw: i for i, labels in enumerate(groups.values()) for raw in labels}
    rest = index.get("")
    return np.array([index[cell] if rest is None else index.get(cell, rest) for cell in cells])


def build() -> dict[str, bytes]:
    """The stored files by name."""
    table = [row for raw in read("adult", RAW) for row in rows(raw.decode("ascii"))]
    # The order by raw bits of a bit generator, whose stream NumPy keeps fixed for good.
    order = np.argsort(np.random.PCG64(SEED).random_raw(len(table)), kind="stable")
    columns = list(zip(*(table[i] for i in order), strict=True))
    train, val = int(TRAIN * len(table)), int(VAL * len(table))

    schema, codes, sizes = [], [], []
    for name, (place, bound) in NUMBERS.items():
        values = np.array(columns[place], dtype=np.int64)
        low, high = int(values[:train].min()), int(values[:train].max())
        schema.append(Column(name, "integer", low=low, high=high))
        codes.append(values)
        sizes.append(bound)
    for kind, group in (("binary", BINARY), ("category", CATEGORY)):
        for name, (place, labels) in group.items():
            other = next((label for label, raw in labels.items() if raw == [""]), None)
            schema.append(Column(name, kind, categories=tuple(labels), other=other))
            codes.append(code(columns[place], labels))
            sizes.append(len(labels))
    codes.append(code(columns[14], {"at most 50K": ["<=50K"], "over 50K": [">50K"]}))
    sizes.append(len(CLASSES))

    card = {
        "schema": Schema(tuple(schema), "income", CLASSES).to_json(),
        "sizes": sizes,
        "train": train,
        "val": val,
        "seed": SEED,
        "sha256": {file.path.rpartition("/")[2]: file.sha256 for file in RAW},
    }
    packed = io.BytesIO()
    np.save(packed, np.ravel_multi_index(codes, sizes).astype("<u4"), allow_pickle=False)
    text = json.dumps(card, indent=1, ensure_ascii=True) + "\n"
    return {"adult.npy": packed.getvalue(), "adult.json": text.encode("ascii")}


def main() -> None:
    """Write the files, or with --check compare them with the stored ones."""
    for name, content in build().items():
        path = OUT / name
        if "--check" not in sys.argv[1:]:
            OUT.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        elif path.read_bytes() != content:
            sys.exit(f"build_adult: {path} must be what this script builds, got other bytes.")
        print(f"{path.name}: {len(content)} bytes, {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
