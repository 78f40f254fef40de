"""Claims: one row of a table, with every seed's numbers, the papers', and the records behind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from r2et.bench.claim_rules import check_claim
from r2et.bench.method import title_of
from r2et.bench.record import Record, readable, refused
from r2et.errors import InputError, describe, first_line, printable
from r2et.files import write

FORMAT = "r2et-claim/1"
# What JSON that is something else leads to.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
TIED = 0.05  # share of rows ranked by feature number from which on P@k measures the tie-break


def in_regime(table: str, regime: str) -> str:
    """A table's name, with that of its regime where it is not the usual one, once."""
    return table if regime == "long" or table.endswith(f"-{regime}") else f"{table}-{regime}"


@dataclass(frozen=True)
class SeedValues:
    """One number of a row of a table.

    seeds: a value per seed.
    reported: the papers' figure.
    rows: the mean over seeds for each test row.
    records: names of the records behind it.
    failed: why there is no value.
    unreliable: what speaks against it.
    below: why it does not race, where that is not so of the whole row.
    tied: the largest share, among seeds, of rows whose scores are equal at the border.
    """

    seeds: tuple[float, ...] = ()
    reported: float | None = None
    rows: tuple[float, ...] = ()
    records: tuple[str, ...] = ()
    failed: str | None = None
    unreliable: tuple[str, ...] = ()
    below: str = ""
    tied: float = 0.0

    @property
    def mean(self) -> float | None:
        """Over the seeds."""
        return sum(self.seeds) / len(self.seeds) if self.seeds else None

    @property
    def spread(self) -> float:
        """Half of how far the seeds lie apart."""
        return (max(self.seeds) - min(self.seeds)) / 2 if self.seeds else 0.0


@dataclass(frozen=True)
class Claim:
    """What a table says of one recipe on one dataset, and what it rests on.

    chosen: the settings that were selected.
    unreliable: why the row does not race.
    numbers: by the key of their column.
    settings: those of the run.
    made: versions, machine, date and seconds of its records together.
    choices, trained: names of the records of the selection and of the trainings it compared.
    candidates: what was tried with the first seed, on validation rows.
    """

    table: str
    data: str
    recipe: str
    chosen: Mapping[str, Any]
    unreliable: tuple[str, ...]
    numbers: Mapping[str, SeedValues]
    settings: Mapping[str, Any] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    candidates: Mapping[str, Any] = field(default_factory=dict)

    @property
    def regime(self) -> str:
        """How long its networks were trained, and by whose rules."""
        return str(self.settings.get("regime", "long"))

    @property
    def name(self) -> str:
        """Of its file, below the folder of claims."""
        place = in_regime(self.table, self.regime)
        return f"{place}/{self.data}-{title_of(self.recipe)}.json"

    def tied(self, key: str) -> bool:
        """Whether a number rests on ties."""
        return self.numbers[key].tied > TIED

    def races(self, key: str) -> bool:
        """Whether a number is compared with others': accurate enough, and not by ties."""
        values = self.numbers[key]
        return not (self.unreliable or values.below or values.mean is None or self.tied(key))

    def lacks(self, *reasons: str) -> bool:
        """Whether a number is missing for one of these reasons."""
        failed = [some.failed or "" for some in self.numbers.values()]
        return any(reason in why for reason in reasons for why in failed)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"format": FORMAT, **asdict(self)}

    def to_json(self) -> str:
        """The file's text; rows of numbers stay on one line."""
        return readable(self.to_dict())

    @classmethod
    def from_json(cls, text: str, source: str) -> Claim:
        """A stored claim; one that is none is refused in a sentence."""
        try:
            return cls.from_dict(json.loads(text))
        except UNREADABLE as error:
            raise no_file_of_ours("claim", source, error) from error

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Claim:
        """From the data of its file."""
        check_claim(stored, FORMAT)
        numbers = {}
        for name, values in stored["numbers"].items():
            lists = {n: tuple(values[n]) for n in ("seeds", "rows", "records", "unreliable")}
            numbers[name] = SeedValues(**{**values, **lists})
        lists = {n: tuple(stored.get(n, ())) for n in ("unreliable", "choices", "trained")}
        rest = {n: value for n, value in stored.items() if n != "format"}
        return cls(**{**rest, **lists, "numbers": numbers})


def no_file_of_ours(kind: str, source: str, error: Exception) -> InputError:
    """A sentence about a file that is no claim or panel."""
    reason = f"{source} ({type(error).__name__}: {describe(first_line(error))})"
    return InputError(printable(f"bench: a {kind} must be a file of r2et bench, got {reason}."))


def stored_text(kind: str, path: Path) -> str:
    """What a file of claims or panels holds."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise no_file_of_ours(kind, str(path), error) from error


class Storable(Protocol):
    """A claim or a panel."""

    @property
    def name(self) -> str: ...

    def to_json(self) -> str: ...


def save_claims(claims: Iterable[Storable], folder: Path) -> None:
    """Write each as a file of its own."""
    for claim in claims:
        path = folder / claim.name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, claim.to_json().encode())
        except OSError as error:
            raise refused(path, error) from error


def load_claims(folder: Path, table: str) -> list[Claim]:
    """The claims of one table, in the order of their names."""
    paths = claim_files(folder, table)
    return [Claim.from_json(stored_text("claim", path), str(path)) for path in paths]


def claim_files(folder: Path, table: str) -> list[Path]:
    """The files of one table's claims, in the order of their names."""
    return sorted((folder / table).glob("*.json"))


def made_with(records: Iterable[Record]) -> dict[str, Any]:
    """Versions, machine, dates and the time that records took, together."""
    made = [r.made for r in records if r.made]
    if not made:
        return {}
    same = {n: ", ".join(sorted({str(m[n]) for m in made})) for n in ("r2et", "torch", "python")}
    dates = sorted({m["date"] for m in made})
    seconds = round(sum(m["seconds"] for m in made), 1)
    where = {n: ", ".join(sorted({m[n] for m in made if n in m})) for n in ("machine", "cpu")}
    return {**same, **where, "date": dates[-1], "seconds": seconds}
