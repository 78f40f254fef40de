"""A pack audited again: the same model, the same rows, and what comes out this time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from r2et.audit.gates import gates_of, late
from r2et.audit.inputs import file_digest
from r2et.audit.loading import modules_here, open_model
from r2et.audit.pack import Pack, open_pack
from r2et.audit.pack_claims import FACTORY, FILE, FOLDER, MEMORY, NAMED, TEST, WEIGHTS
from r2et.audit.packing import module_source
from r2et.audit.request import Request
from r2et.audit.verification import TOLERANCE, Verification
from r2et.data import DATASETS
from r2et.errors import InputError, R2ETError, require
from r2et.files import scratch
from r2et.models.weights import weights_digest

WHERE = "verify"
# What a pack may say of a request, and of which kinds: nothing else is taken from it.
TEXT, NUMBER, WHOLE = (str, type(None)), (int, float, type(None)), (int, type(None))
REQUEST: dict[str, tuple[type, ...]] = {
    "k": WHOLE,
    "radius": NUMBER,
    "norm": (str,),
    "target": TEXT,
    "name": TEXT,
    "id_column": TEXT,
    "by": (list,),
    "gates": (list,),
    "bounds": TEXT,
    "frozen": TEXT,
    "moves": TEXT,
    "switches": WHOLE,
    "all_rows": (bool,),
    "cutoff": NUMBER,
    "only": TEXT,
    "reasons": (bool,),
}
RUN: dict[str, tuple[type, ...]] = {"rows": WHOLE, "budget": (str,), "seed": (int,)}


@dataclass(frozen=True)
class VerifyCommand:
    """What `r2et verify` was asked.

    pack: a file that `r2et audit --pack` wrote.
    data: the file that was audited, where it is not at its old place.
    model: package.module:factory of a pack that was made with one; or a folder to use instead of
        the one in the pack. A pack alone never runs code of anybody.
    tolerance: of numbers, relative.
    """

    pack: str
    data: str | None = None
    model: str | None = None
    tolerance: float = TOLERANCE

    def check(self, *, members_only: bool = False) -> Pack:
        """The pack, if all of it is as it was written. members_only: nothing else is asked."""
        given = {"--data": self.data, "--model": self.model}
        used = [name for name, value in given.items() if value is not None]
        is_valid = not (members_only and used)
        expected = "left out with --members-only, which audits nothing"
        require(is_valid, WHERE, " and ".join(used), expected, "given")
        is_valid = 0 <= self.tolerance < 1
        require(is_valid, WHERE, "tolerance", "0 or more, and below 1", self.tolerance)
        return open_pack(self.pack, where=WHERE)

    def run(
        self, pack: Pack, *, note: Callable[[str], None] = lambda _: None, **settings: Any
    ) -> Verification:
        """Audit again what the pack is of. settings: engine, workers, address, progress."""
        repeat = pack.repeat
        kinds = [_part(repeat, name).get("kind") for name in ("model", "data")]
        made_here = repeat.get("request") is not None and MEMORY not in kinds
        expected = (
            "made by `r2et audit --pack` to be audited again (of one made in Python:"
            " open_pack(PACK).compare(audit(...)))"
        )
        require(made_here, WHERE, "PACK", expected, "one of a model in memory")
        finished = not late(pack.audit.skipped)
        expected = "of an audit that had the time for all its rows"
        require(finished, WHERE, "PACK", expected, "one that --minutes stopped")
        files = {f"model/{name}": content for name, content in pack.model_files.items()}
        with scratch(WHERE, "r2et-verify-", files) as folder, _said_of_the_pack(folder):
            model, weights = self._model(pack, folder)
            self._check_weights(pack, model, weights)
            request = replace(
                self._request(repeat),
                model=model,
                weights=weights,
                data=self._data(pack),
                name=pack.audit.name,
            )
            # What a stopped audit leaves, and all else that is written, goes with this folder.
            outputs: dict[str, str | None] = {"--json": str(folder / "audit.json")}
            again, _ = request.run(outputs, note=note, **_run(repeat), **settings)
        comparison = pack.compare(again, tolerance=self.tolerance)
        comparison = comparison.uncompared(self._other_text(pack))
        return replace(comparison, pack={"members": len(pack.members), "date": _date(pack)})

    def _model(self, pack: Pack, folder: Path) -> tuple[str, str | None]:
        """What to open as the model, and the file of its weights, of those in the pack."""
        place, kind = folder / "model", _part(pack.repeat, "model").get("kind")
        if kind == FOLDER:
            is_folder = self.model is None or Path(self.model).is_dir()
            expected = "a folder of `r2et train`, or left out: the pack is of one"
            require(is_folder, WHERE, "--model", expected, self.model)
            return (str(place) if self.model is None else self.model), None
        require(kind == FACTORY, WHERE, "repeat.json: model", "a folder or a factory", kind)
        named = _part(pack.repeat, "model").get("name")
        expected = f"given by --model, as {named}: a pack alone runs nobody's code"
        require(self.model is not None, WHERE, "the model", expected, "nothing")
        is_factory = ":" in str(self.model) and not Path(str(self.model)).exists()
        expected = f"package.module:factory, as {named}: the pack is of one"
        require(is_factory, WHERE, "--model", expected, self.model)
        there = (place / WEIGHTS).is_file()
        require(there, WHERE, "PACK", f"one that holds model/{WEIGHTS}", "none")
        return str(self.model), str(place / WEIGHTS)

    def _other_text(self, pack: Pack) -> dict[str, str]:
        """The text of a factory's module, where it is not that of the one that was run."""
        texts = {n: c for n, c in pack.model_files.items() if n.endswith(".py.txt")}
        with modules_here():
            own = list(module_source(str(self.model)).values()) if texts else []
        why = f"the module of {self.model}, which was run, has another text"
        return {f"model/{n}": why for n, content in texts.items() if [content] != own}

    def _check_weights(self, pack: Pack, model: str, weights: str | None) -> None:
        """The model has the weights that the audit is of."""
        known = _part(pack.audit.result.get("inputs"), "weights")
        recorded = known.get("tensors") or known.get("sha256")
        try:
            with modules_here():
                own = weights_digest(open_model(model, weights).model)
        except InputError as error:
            if self.model is not None:
                raise
            reason = str(error).rstrip(".")
            got = f"an error ({reason.partition(': ')[2]})"
            sentence = f"{WHERE}: the pack's model must be one that can be opened, got {got}."
            raise InputError(sentence) from error
        expected = f"the one that was audited (weights {str(recorded)[:16]}...)"
        source = "the pack's own" if self.model is None else self.model
        got = f"{source} (weights {own[:16]}...)"
        require(own == recorded, WHERE, "the model", expected, got)

    def _data(self, pack: Pack) -> str | None:
        """Where the rows are, which are those that were audited."""
        part = _part(pack.repeat, "data")
        kind, name, path = (part.get(key) for key in ("kind", "name", "path"))
        if kind in (TEST, NAMED):
            require(self.data is None, WHERE, "--data", f"left out: it is the {kind}", self.data)
            known = kind == TEST or (isinstance(name, str) and name in DATASETS)
            require(known, WHERE, "repeat.json: data", "a data set of `r2et data list`", name)
            return None if kind == TEST else str(name)
        is_valid = kind == FILE and isinstance(path, str)
        require(is_valid, WHERE, "repeat.json: data", "a file, a data set or a test part", kind)
        place = self.data if self.data is not None else str(path)
        recorded = _part(pack.audit.result.get("inputs"), "data").get("sha256")
        # A device, which a pack might name, could be read for ever.
        own = file_digest(Path(place)) if os.path.isfile(place) else None
        expected = f"given by --data, the file that was audited (SHA-256 {str(recorded)[:16]}...)"
        gone = f"none at {place}" if own is None else f"{place} (SHA-256 {own[:16]}...)"
        require(own is not None and own == recorded, WHERE, "the data", expected, gone)
        return place

    def _request(self, repeat: Mapping[str, Any]) -> Request:
        """The settings of the command line, checked one by one."""
        given = _checked("request", _part(repeat, "request"), REQUEST)
        by = given.pop("by")
        texts = given.pop("gates")
        for name, listed in (("by", by), ("gates", texts)):
            is_valid = all(isinstance(text, str) for text in listed)
            require(is_valid, WHERE, f"repeat.json: {name}", "a list of texts", listed)
        return Request("", by=tuple(by), gates=gates_of(texts), **given)


def _run(repeat: Mapping[str, Any]) -> dict[str, Any]:
    return _checked("run", _part(repeat, "run"), RUN)


def _checked(
    name: str, given: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]
) -> dict[str, Any]:
    """The entries of a part, each of its kind; those that a later version adds are refused."""
    strange = sorted(set(given) - set(kinds))
    expected = "of settings that this version knows (update r2et)"
    require(not strange, WHERE, f"repeat.json: {name}", expected, ", ".join(strange))
    for key, allowed in kinds.items():
        is_valid = key in given and type(given[key]) in allowed
        expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
        require(is_valid, WHERE, f"repeat.json: {name}.{key}", expected, given.get(key, "nothing"))
    return dict(given)


def _part(whole: Any, name: str) -> Mapping[str, Any]:
    """An object within plain data; empty where there is none."""
    part = whole.get(name) if isinstance(whole, Mapping) else None
    return part if isinstance(part, Mapping) else {}


@contextmanager
def _said_of_the_pack(folder: Path) -> Iterator[None]:
    """What goes wrong is said of `verify`, and of the pack's members by their own names."""
    try:
        yield
    except R2ETError as error:
        text = str(error).replace(f"{folder}{os.sep}", "")
        if text.startswith("audit: "):
            text = f"{WHERE}: {text.removeprefix('audit: ')}"
        if text == str(error):
            raise
        kind = InputError if isinstance(error, InputError) else R2ETError
        raise kind(text) from error


def _date(pack: Pack) -> str:
    return str(pack.audit.result.get("date"))
