"""Tables for somebody's own model are read as every other table is."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from r2et.audit.loading import LoadedModel, open_rows
from r2et.errors import InputError

OWN = LoadedModel("net", nn.Linear(3, 2))


def frame():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(40, 2)) * [1, 1e6]
    label = np.where(numbers[:, 0] > 0, "yes", "no")
    return pd.DataFrame(
        {"a": numbers[:, 0], "b": numbers[:, 1], "flag": numbers[:, 1] > 0, "label": label}
    )


@pytest.mark.parametrize("form", ["csv", "semicolon", "utf-16", "gz", "parquet"])
def test_every_form_gives_the_same_rows_to_the_last_bit(tmp_path, form):
    table, path = frame(), tmp_path / "t.csv"
    if form == "parquet":
        table.to_parquet(path)
    else:
        how = {
            "semicolon": {"sep": ";", "decimal": ","},
            "utf-16": {"encoding": "utf-16"},
            "gz": {"compression": "gzip"},
        }
        path = tmp_path / "t.csv.gz" if form == "gz" else path
        table.to_csv(path, index=False, **how.get(form, {}))
    rows = open_rows(OWN, str(path), "label")
    assert rows.names == ("a", "b", "flag")
    expected = torch.from_numpy(table[["a", "b", "flag"]].to_numpy(dtype=np.float64))
    assert torch.equal(rows.x, expected)
    assert rows.classes == ("no", "yes")
    assert rows.y.tolist() == [int(label == "yes") for label in table["label"]]


def test_a_target_of_numbers_holds_the_classes_themselves(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,2\n3,2\n")
    rows = open_rows(OWN, str(tmp_path / "t.csv"), "y")
    assert (rows.y.tolist(), rows.classes, rows.x.tolist()) == ([0, 2, 2], None, [[1], [2], [3]])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,y\n1,yes\n2,?\n", "target must be a column without gaps, got 1 empty cells"),
        ("a,y\n1,yes\nx,no\n", "a table of numbers .* got text in the columns a"),
        ("a,y\ntrue,yes\n,no\n", "got text in the columns a"),
        ("a,y\n1,yes\nNA,no\n", "a table without empty cells, got some in the columns a"),
        ("a,a,y\n1,2,yes\n", "columns have different names"),
        ("a,y\n", "the table must be one with rows, got none"),
        ("a;y\n1,234;no\n2,345;yes\n", "t.csv must be a file whose numbers show which mark"),
    ],
)
def test_bad_tables(tmp_path, content, sentence):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(InputError, match=f"^audit: .*{sentence}"):
        open_rows(OWN, str(tmp_path / "t.csv"), "y")
