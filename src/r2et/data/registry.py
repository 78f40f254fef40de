"""The named data sets. Each module lists its own as ENTRIES; others are added by a call."""

from __future__ import annotations

from difflib import get_close_matches

from r2et.data import adult, bank, brain, brain_sites, cifar10, compas, mnist, retina
from r2et.data.dataset import Data, DatasetEntry, check_parts
from r2et.errors import require

MODULES = (adult, bank, compas, mnist, cifar10, retina, brain, brain_sites)
DATASETS: dict[str, DatasetEntry] = {
    name: entry for module in MODULES for name, entry in module.ENTRIES.items()
}


def register_dataset(name: str, entry: DatasetEntry) -> None:
    """Make a data set known by a new name, in this process, to `load` and all that takes names."""
    where = "register_dataset"
    named = isinstance(name, str) and bool(name) and name.isprintable()
    require(named, where, "name", "text", name)
    require(name not in DATASETS, where, "name", "one that is not taken", name)
    is_entry = isinstance(entry, DatasetEntry)
    require(is_entry, where, "entry", "a DatasetEntry", type(entry).__name__)
    DATASETS[name] = entry


def dataset_entry(where: str, name: str) -> DatasetEntry:
    """The entry of this name, or a sentence that lists the names there are."""
    near = get_close_matches(str(name).lower(), DATASETS, n=1)
    known = f"one of {', '.join(sorted(DATASETS))}"
    hint = f"{known} (did you mean {near[0]!r}?)" if near else known
    require(isinstance(name, str) and name in DATASETS, where, "name", hint, name)
    return DATASETS[name]


def load(name: str) -> Data:
    """The data set of this name, one of DATASETS."""
    data = dataset_entry("load", name).loader()
    check_parts(data)
    return data
