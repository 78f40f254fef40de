"""Somebody's model and rows from files: weights are read, never unpickled."""

from __future__ import annotations

import importlib
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as parse_weights
from torch import Tensor, nn

from r2et.audit.subject import Subject
from r2et.data import DATASETS, load
from r2et.data.raw_table import RawTable
from r2et.errors import InputError, R2ETError, first_line, require
from r2et.models.output import undisturbed
from r2et.train import Trained, load_trained

WHERE = "audit"
TRUTH = {"false": 0.0, "true": 1.0}
FORMS = "a folder of `r2et train`, or package.module:factory with --weights FILE.safetensors"


@dataclass(frozen=True)
class LoadedModel:
    """A model to audit. trained: what its folder says of it, if it came from one."""

    name: str
    model: nn.Module
    trained: Trained | None = None


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """x (B, ...) and y (B,) or None, with the names of features and classes where known."""

    x: Tensor
    y: Tensor | None
    names: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None


def open_model(spec: str, weights: str | None = None) -> LoadedModel:
    """The model of a folder, or what a factory makes, with the weights of a file."""
    module, sign, factory = spec.partition(":")
    if sign and factory.isidentifier() and not Path(spec).exists():
        model = _made(spec, module, factory)
        if weights is not None:
            _fill(model, weights)
        return LoadedModel(factory, model.eval())
    require(weights is None, WHERE, "weights", f"left out for the folder {spec}", weights)
    if Path(spec).suffix == ".pt2":
        expected = (
            f"{FORMS} (a torch.export archive may hold pickled objects, which are never loaded)"
        )
        require(False, WHERE, "MODEL", expected, spec)
    if Path(spec).suffix == ".onnx":
        expected = f"{FORMS} (a factory may return r2et.audit.from_onnx(FILE))"
        require(False, WHERE, "MODEL", expected, spec)
    require(Path(spec).is_dir(), WHERE, "MODEL", FORMS, spec)
    trained = load_trained(spec)
    return LoadedModel(Path(spec).resolve().name, trained.model, trained)


def open_rows(
    opened: LoadedModel,
    source: str | None,
    target: str | None = None,
    where: str = WHERE,
    id_column: str | None = None,
    by: tuple[str, ...] = (),
) -> LabelledRows:
    """Rows of a file or a named data set, as the model takes them; by default its test part.

    A model of `r2et train` reads tables as in its training. For another, a table's columns must be
    numbers, taken in their order without the columns `target` and `id_column`, and those of text
    among `by`; or an .npz file holds x and y.
    """
    if source is None:
        held_out = Subject(opened.model, opened.trained).test_rows(where, "DATA")
        known = opened.trained
        assert known is not None
        return LabelledRows(held_out.x, held_out.y, known.names or None, known.classes)
    path = Path(source)
    file = bool(path.suffix) or len(path.parts) > 1 or source not in DATASETS
    expected = "a file that exists or a data set of `r2et data list`"
    require(path.is_file() or not file, where, "DATA", expected, source)
    if path.suffix == ".npz":
        return _arrays(path)
    trained = opened.trained
    if not path.is_file():
        data = load(source)
        fits = trained is None or trained.data == source or trained.names == data.names
        of = "" if trained is None else trained.data
        require(fits, where, "DATA", f"what the model was trained on ({of})", source)
        return LabelledRows(data.test.x, data.test.y, data.names or None, data.classes)
    if trained is not None and trained.schema is not None:
        own = trained.schema.target
        same = target is None or target == own
        require(same, where, "target", f"{own}, that of the model's training", target)
        x, y = trained.read(source)
        return LabelledRows(x, y, trained.names, trained.classes)
    return _plain_table(path, target, id_column, by)


def check_rows(opened: LoadedModel, rows: LabelledRows, source: str, target: str | None) -> None:
    """The model takes rows of this width; in words of the file, where the model has its own."""
    if opened.trained is not None:
        return
    like = next((p for p in opened.model.parameters() if p.is_floating_point()), torch.empty(0))
    try:
        with undisturbed(opened.model), torch.no_grad():
            opened.model(rows.x[:1].to(like.device, like.dtype))
    except R2ETError:  # a sentence of its own
        raise
    except Exception as error:  # somebody's code may raise anything
        names, shape = rows.names or (), tuple(rows.x.shape[1:])
        listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        got = f"{len(names)} columns ({listed})" if names else f"rows of shape {shape}"
        hint = "; is one of them the label (--target)?" if names and target is None else ""
        message = f"{type(error).__name__}: {first_line(error)}"
        got = f"{got} in {source}{hint} ({message})"
        raise InputError(f"{WHERE}: DATA must be rows that the model takes, got {got}.") from error


@contextmanager
def modules_here() -> Iterator[None]:
    """Modules of the current folder can be imported: now, lazily, and by workers started within."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        if here in sys.path:
            sys.path.remove(here)


def _made(spec: str, module: str, factory: str) -> nn.Module:
    """Import the module and call its factory, which may import others."""
    with modules_here():
        try:
            make: Callable[[], Any] | None = getattr(importlib.import_module(module), factory, None)
        except Exception as error:  # somebody's code may raise anything
            got = f"{spec} ({type(error).__name__}: {first_line(error)})"
            text = f"{WHERE}: MODEL must be a module that imports, got {got}."
            raise InputError(text) from error
        require(callable(make), WHERE, "MODEL", f"a function of {module}", spec)
        assert make is not None
        expected = f"a function of {module} that returns a torch.nn.Module"
        try:
            model = make()
        except Exception as error:
            got = f"{spec} ({type(error).__name__}: {first_line(error)})"
            text = f"{WHERE}: MODEL must be {expected} when called without arguments, got {got}."
            raise InputError(text) from error
    require(isinstance(model, nn.Module), WHERE, "MODEL", expected, f"{spec} -> {model!r}")
    assert isinstance(model, nn.Module)
    return model


def _fill(model: nn.Module, path: str) -> None:
    """Weights from a safetensors file into a model that has just these."""
    try:
        blob = Path(path).read_bytes()
    except OSError as error:
        got = f"{path} ({error.strerror or error})"
        raise InputError(f"{WHERE}: weights must be a file that can be read, got {got}.") from None
    try:
        weights = parse_weights(blob)
    except (SafetensorError, ValueError, KeyError) as error:
        pickled = zipfile.is_zipfile(path) or blob[:1] == b"\x80"
        kind = "a pickle or torch.save file, which is never loaded" if pickled else str(error)
        expected = "a safetensors file (safetensors.torch.save_file(model.state_dict(), path))"
        raise InputError(f"{WHERE}: weights must be {expected}, got {path}: {kind}.") from None
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        message = " ".join(str(error).split())
        text = f"{WHERE}: weights must be those of the model, got {path}: {message}"
        raise InputError(text[:500] + ("" if len(text) <= 500 else " ...")) from None


def _arrays(path: Path) -> LabelledRows:
    """x, and y if there, of a NumPy archive."""
    expected = "an .npz file of plain arrays"
    try:
        with path.open("rb") as file:  # NumPy leaves a broken one open
            archive = np.load(file, allow_pickle=False)
            is_archive = isinstance(archive, np.lib.npyio.NpzFile)
            require(is_archive, WHERE, "DATA", expected, f"{path}: one array")
            with archive:
                named = {name: archive[name] for name in ("x", "y") if name in archive.files}
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds
        text = f"{WHERE}: DATA must be {expected}, got {path}: {first_line(error)}."
        raise InputError(text) from None
    require("x" in named, WHERE, "DATA", "an .npz file that holds x (and y)", path)
    for name, array in named.items():
        is_valid = array.dtype.kind in "biuf"
        require(is_valid, WHERE, "DATA", f"an .npz file with numbers as {name}", array.dtype)
        named[name] = array.astype(array.dtype.newbyteorder("="))
    y = torch.from_numpy(named["y"]) if "y" in named else None
    return LabelledRows(torch.from_numpy(named["x"]), y)


def _plain_table(
    path: Path, target: str | None, id_column: str | None, by: tuple[str, ...]
) -> LabelledRows:
    """A table of numbers, its columns in order.

    A target of numbers holds the classes 0, 1, ... themselves, of which a file may lack some; one
    of text their names, in sorted order, all of them.
    """
    from r2et.data.table_source import open_table  # brings pyarrow, which takes time

    table = open_table(WHERE, path, wanted=lambda name: name not in (target, id_column))
    y, classes = None, None
    if target is not None:
        known = ", ".join(table.names)
        require(target in table.names, WHERE, "target", f"one of the columns {known}", target)
        y, classes = _plain_target(table, target)
    taken = [name for name in table.names if name not in (target, id_column)]
    columns = {name: _plain_column(table, name) for name in taken}
    grouped = {name for name in by if name in columns and columns[name] is None}
    columns = {name: cells for name, cells in columns.items() if name not in grouped}
    words = [name for name, cells in columns.items() if cells is None]
    expected = (
        "a table of numbers (give --target for the label; train with `r2et train` for others)"
    )
    require(not words, WHERE, "DATA", expected, f"text in the columns {', '.join(words[:5])}")
    numbers = {name: cells for name, cells in columns.items() if cells is not None}
    empty = [name for name, cells in numbers.items() if np.isnan(cells).any()]
    expected = "a table without empty cells"
    require(not empty, WHERE, "DATA", expected, f"some in the columns {', '.join(empty[:5])}")
    x = np.stack(list(numbers.values()), 1) if numbers else np.zeros((table.rows, 0))
    return LabelledRows(torch.from_numpy(x), y, tuple(numbers), classes)


def _plain_target(table: RawTable, target: str) -> tuple[Tensor, tuple[str, ...] | None]:
    """y (B,), and the names of its classes where it is of text."""
    numbers = table.numbers(target, table.sure)
    if numbers is not None:
        _check_gaps(np.isnan(numbers))
        return torch.tensor(numbers), None
    labels = table.labels(target, table.sure)
    _check_gaps(labels.codes < 0)
    classes, codes = np.unique(np.array(labels.names)[labels.codes], return_inverse=True)
    return torch.from_numpy(codes.astype(np.int64)), tuple(map(str, classes))


def _check_gaps(gaps: NDArray[np.bool_]) -> None:
    count = int(gaps.sum())
    require(not count, WHERE, "target", "a column without gaps", f"{count} empty cells")


def _plain_column(table: RawTable, name: str) -> NDArray[np.float64] | None:
    """A column as numbers, NaN where empty, true as 1 and false as 0; None where it is text."""
    numbers = table.numbers(name)
    if numbers is not None:
        return numbers
    labels = table.labels(name)
    truth = [TRUTH.get(text.lower()) for text in labels.names]
    if None in truth or labels.codes.min() < 0:
        return None
    return np.array(truth, dtype=np.float64)[labels.codes]
