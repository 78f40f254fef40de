"""The named data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches

from r2et.data import adult, bank, brain, brain_sites, cifar10, compas, mnist, retina
from r2et.data.dataset import Data, Origin, check_parts
from r2et.data.sources import File, Supplied
from r2et.errors import require


@dataclass(frozen=True)
class Named:
    """A data set that `load` knows: one line about it, what loads it, and the files it needs.

    source, shape (of x) and k are those of the loaded data, known without loading them.
    """

    summary: str
    loader: Callable[[], Data]
    files: tuple[File | Supplied, ...] = ()
    source: Origin = field(default_factory=lambda: Origin(""))
    shape: str = ""
    k: int = 0

    @property
    def line(self) -> str:
        """The summary, and what the data stand in for."""
        other = self.source.stands_for
        return f"{self.summary}; stands in for {other}" if other else self.summary


def _site(name: str, site: str) -> Named:
    return Named(
        f"ADHD-200, site {site}: pairs of graphs of 190 regions",
        brain_sites.load_site(name, site),
        brain_sites.files(site),
        brain_sites.SOURCE,
        "(B, 2, 17955)",
        brain.K,
    )


def _networks(name: str, summary: str, shape: str = "(B, 2, N (N - 1) / 2)") -> Named:
    files, source = (brain.SUPPLIED[name],), brain.SOURCES[name]
    return Named(summary, brain.from_npz(name), files, source, shape, brain.K)


def _kermany(name: str, count: int, side: int) -> Named:
    text, shape = f"{count} retinal scans, 4 classes, {side} x {side}", f"(B, 1, {side}, {side})"
    files = (retina.FILES[name],)
    return Named(text, retina.kermany(name), files, retina.KERMANY, shape, retina.K)


DATASETS: dict[str, Named] = {
    "adult": Named(
        "income over 50K from 28 features of a census row",
        adult.load_adult,
        adult.FILES,
        adult.SOURCE,
        "(B, 28)",
        adult.K,
    ),
    "bank": Named(
        "term deposit or not from 18 features of a call",
        bank.load_bank,
        bank.FILES,
        bank.SOURCE,
        "(B, 18)",
        bank.K,
    ),
    "compas": Named(
        "what the COMPAS score says, from 16 features of a person",
        compas.load_compas,
        compas.FILES,
        compas.SOURCE,
        "(B, 16)",
        compas.K,
    ),
    "mnist": Named(
        "pairs of 3 and 8: the same digit or not; 28 x 28",
        mnist.load_mnist,
        mnist.FILES,
        mnist.SOURCE,
        "(B, 2, 1, 28, 28)",
        mnist.K,
    ),
    "cifar10": Named(
        "ten kinds of things; 3 x 32 x 32",
        cifar10.load_cifar10,
        cifar10.FILES,
        cifar10.SOURCE,
        "(B, 3, 32, 32)",
        cifar10.K,
    ),
    "cifar10-10k": Named(
        "CIFAR-10 with only the first training batch",
        cifar10.load_cifar10_10k,
        cifar10.FILES_10K,
        cifar10.SOURCE,
        "(B, 3, 32, 32)",
        cifar10.K,
    ),
    "oct-kermany": _kermany("oct-kermany", 500, 224),
    "oct-kermany-64": _kermany("oct-kermany-64", 8000, 64),
    "octid": Named(
        "the papers' ROCT, from your own folder of images",
        retina.load_octid,
        (retina.FILES["octid"],),
        retina.OCTID,
        f"(B, 1, {retina.HEIGHT}, {retina.WIDTH})",
        retina.K,
    ),
    "abide": _networks("abide", "autism or not: pairs of networks of 116 regions", "(B, 2, 6670)"),
    "adhd": _networks("adhd", "the papers' ADHD networks, from your own file"),
    "adhd-frontal": Named(
        "ADHD or not: pairs of networks of 28 frontal regions",
        brain.load_frontal,
        brain.FRONTAL,
        brain.SOURCES["adhd-frontal"],
        "(B, 2, 378)",
        brain.K,
    ),
    "bp": _networks("bp", "the papers' bipolar-disorder networks, from your own file"),
    "kki": _site("kki", "KKI"),
    "ohsu": _site("ohsu", "OHSU"),
    "peking-1": _site("peking-1", "Peking_1"),
}


def named(where: str, name: str) -> Named:
    """The entry of this name, or a sentence that lists the names there are."""
    near = get_close_matches(str(name).lower(), DATASETS, n=1)
    known = f"one of {', '.join(sorted(DATASETS))}"
    hint = f"{known} (did you mean {near[0]!r}?)" if near else known
    require(isinstance(name, str) and name in DATASETS, where, "name", hint, name)
    return DATASETS[name]


def load(name: str) -> Data:
    """The data set of this name, one of DATASETS."""
    data = named("load", name).loader()
    check_parts(data)
    return data
