"""Data sets: named ones, and anybody's own table."""

from r2et.data.column import Column
from r2et.data.dataset import Data, DatasetEntry, Origin, Split
from r2et.data.later_rows import apply_schema
from r2et.data.part_table import write_part
from r2et.data.registry import DATASETS, load, register_dataset
from r2et.data.schema import Schema
from r2et.data.table_dataset import load_table

__all__ = [
    "DATASETS",
    "Column",
    "Data",
    "DatasetEntry",
    "Origin",
    "Schema",
    "Split",
    "apply_schema",
    "load",
    "load_table",
    "register_dataset",
    "write_part",
]
