"""Every settings class of the package says what it is: plain JSON, each field with its part.

Classes are found by walking the package: a new one without config() fails here.
"""

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import r2et
from r2et.attack import Attack
from r2et.certify import Certifier
from r2et.config import Configurable, config_key, differences, plain
from r2et.data.column import Column
from r2et.data.schema import Schema
from r2et.errors import InputError
from r2et.explain import Explainer, Gradient, IntegratedGradients, SmoothGrad
from r2et.models import MLP, ResNet18, SiameseCNN, smooth
from r2et.models.network import Network
from r2et.penalty import SSR, Penalty
from r2et.region import L2, Feasible, Linf, Region
from r2et.train import RECIPES

BASES = (Region, Explainer, Attack, Certifier, Penalty)
NAMES = ("Settings", "Config", "Recipe", "Request")  # how classes of settings are called
DEFAULTS = Path(__file__).with_name("config_defaults.json")


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(r2et.__path__, "r2et."):
        if not found.name.endswith(("__main__", "gcn_layer")):  # the latter needs an extra
            yield importlib.import_module(found.name)


def classes() -> list[type]:
    listed: dict[str, type] = {}
    for module in modules():
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                listed[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return list(listed.values())


def is_settings(kind: type) -> bool:
    named = is_dataclass(kind) and kind.__name__.endswith(NAMES)
    # What a benchmark is asked for becomes tasks, and these have the configs.
    named = named and not kind.__module__.startswith("r2et.bench")
    return issubclass(kind, (*BASES, Configurable)) or named


SETTINGS = [kind for kind in classes() if is_settings(kind) and kind is not Configurable]
FINAL = [kind for kind in SETTINGS if not inspect.isabstract(kind)]
SCHEMA = Schema(
    columns=(
        Column("age", "integer", low=0.0, high=100.0),
        Column("pay", "number", low=0.0, high=1.0),
        Column("job", "category", categories=("a", "b", "c")),
    ),
    target="y",
    classes=("no", "yes"),
)


def scores_of_input(_model, x, _target):
    return x.flatten(1)


def scores_of_square(_model, x, _target):
    return x.flatten(1) ** 2


# What a class cannot be made without.
GIVEN: dict[str, Any] = {
    "radius": 1.0,
    "schema": SCHEMA,
    "moves": 2.0,
    "method": "Saliency",
    "function": scores_of_input,
    "name": "mine",
    "k": 3,
    "epochs": 4,
    "seed": 5,
    "keep": "best",
    "threshold": 0.5,
    "retrain": False,
    "agree": 0.9,
    "save_every": 30.0,
    "progress": False,
    "model": "net",
    "data": "rows.csv",
    "contributions": Gradient(),
    "named": (0, 2),
}
ALSO = {"Feasible": ("moves",)}
FEASIBLE = Feasible(SCHEMA, moves=2.0)
OTHER_SCHEMA = replace(SCHEMA, columns=SCHEMA.columns[:2])
# Tried in turn, until one is accepted and is not what is there.
ALTERNATIVES: tuple[Any, ...] = (
    *(True, False, 1, 2, 7, 0.25, 0.75, 4.0, (0.0, 1.0), (1,), [2], "0,1", {"pay": 0.5}),
    *(Gradient(of="logit"), SmoothGrad(samples=3), L2(0.4), Linf(0.4), SSR()),
    *(OTHER_SCHEMA, {"n_steps": 3}, ("pay",), ((0, 1),), {"age": 2.0, "pay": 3.0}, "all"),
    *("abs", "signed", "sum", "probability", "closest", "fast", "last", "best", "linf", "left"),
    *(
        "exponential",
        "exact",
        "autograd",
        "difference",
        "product",
        "argmax",
        "none",
        "uniform",
        "worst",
    ),
    IntegratedGradients(points=5, rule="gauss_legendre", reduce="signed"),
    *("DeepLift", "0.weight", "other.csv", "auc_clean", "interval", scores_of_square),
)
# Settings that can only be as they are by default.
FIXED = {
    ("RandomSearch", "keep"),
    ("StrongAttack", "keep"),
    ("MinimumNorm", "keep"),
    ("FeasibleSearch", "keep"),
    ("FeasibleSearch", "region"),
}


# Settings that can only change beside others.
BESIDE: dict[tuple[str, str], dict[str, Any]] = {("R2ET", "count"): {"pairs": "closest"}}


def made(kind: type) -> Any:
    """An instance, as much of it by default as can be."""
    needed = [
        name for name, p in inspect.signature(kind).parameters.items() if p.default is p.empty
    ]
    given = {name: GIVEN[name] for name in (*needed, *ALSO.get(kind.__name__, ()))}
    if kind.__name__ == "FeasibleSearch":
        given["region"] = FEASIBLE
    return kind(**given)


def excluded(kind: type) -> set[str]:
    return {name for base in kind.__mro__ for name in vars(base).get("config_excluded", ())}


def changed(settings: Any, name: str) -> Any:
    """The same settings with another value of one field; None where no other is accepted."""
    for value in ALTERNATIVES:
        try:
            other = replace(settings, **{name: value})
        except (InputError, TypeError, ValueError, AttributeError):
            continue
        if type(value) is bool and not isinstance(getattr(settings, name), bool):
            continue
        if plain(getattr(other, name)) != plain(getattr(settings, name)):
            return other
    return None


def test_there_are_classes_to_test():
    names = {kind.__name__ for kind in FINAL}
    assert {"L2", "Linf", "Feasible", "Gradient", "ERAttack", "R2ET", "Recipe"} <= names
    assert len(FINAL) > 25


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__name__)
def test_every_settings_class_has_a_config(kind):
    assert issubclass(kind, Configurable)
    assert is_dataclass(kind) or inspect.isabstract(kind)
    unknown = excluded(kind) - {item.name for item in fields(kind)} if is_dataclass(kind) else set()
    assert not unknown


def test_names_tell_classes_apart():
    names = [kind.__name__ for kind in FINAL]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", FINAL, ids=lambda kind: kind.__name__)
def test_a_config_is_plain_json(kind):
    config = made(kind).config()
    assert json.loads(json.dumps(config, allow_nan=False)) == config
    assert (config["name"], config["version"]) == (kind.__name__, kind.config_version)
    told = {item.name for item in fields(kind) if item.init} - excluded(kind)
    assert set(config) == {"name", "version", "defaults", *told}


@pytest.mark.parametrize("kind", FINAL, ids=lambda kind: kind.__name__)
def test_every_field_has_its_part_in_the_key_or_none(kind):
    fixed = set()
    for item in fields(kind):
        settings = replace(made(kind), **BESIDE.get((kind.__name__, item.name), {}))
        config = settings.config()
        other = changed(settings, item.name) if item.init else None
        if item.name == "observer":
            other = replace(settings, observer=print)
        if other is None:
            fixed |= {(kind.__name__, item.name)} if item.init else set()
        elif item.name in excluded(kind):
            assert other.config() == config
        else:
            assert config_key(other.config()) != config_key(config), item.name
            (place,) = differences(config, other.config())
            assert place.split(".")[0] == item.name
    assert fixed <= FIXED


@pytest.mark.slow
def test_keys_are_the_same_in_another_process():
    script = (
        "import json\n"
        "from tests.test_config_contract import FINAL, made\n"
        "from r2et.config import config_key\n"
        "print(json.dumps({kind.__name__: config_key(made(kind).config()) for kind in FINAL}))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    here = {kind.__name__: config_key(made(kind).config()) for kind in FINAL}
    assert json.loads(run.stdout) == here


def defaults_of(kind: type) -> dict[str, Any]:
    config = made(kind).config()
    return {"version": config["version"], **{name: config[name] for name in config["defaults"]}}


@pytest.mark.parametrize("kind", FINAL, ids=lambda kind: kind.__name__)
def test_a_default_does_not_change_without_a_new_version(kind):
    """Defaults are left out of keys: one that changes would pass for what it was."""
    kept = json.loads(DEFAULTS.read_text())
    how = "; `python -m tests.test_config_contract` notes the defaults of today"
    assert kind.__name__ in kept, f"the defaults of {kind.__name__} are not noted{how}"
    before, now = kept[kind.__name__], defaults_of(kind)
    if now["version"] == before["version"]:
        moved = [name for name, value in before.items() if now.get(name) != value]
        assert not moved, f"{kind.__name__}: raise config_version, for {moved}{how}"
    assert now == before, f"the defaults of {kind.__name__} are not noted{how}"


def test_only_what_a_region_reads_of_a_schema_has_a_part():
    told = replace(SCHEMA, target="z")
    assert Feasible(told, moves=2.0).config() == FEASIBLE.config()
    columns = (*SCHEMA.columns[:2], replace(SCHEMA.columns[2], categories=("a", "b", "d")))
    other = Feasible(replace(SCHEMA, columns=columns), moves=2.0)
    assert differences(FEASIBLE.config(), other.config()) == ["schema"]


def test_recipes_have_keys_of_their_own():
    keys = {config_key(recipe.config()) for recipe in RECIPES.values()}
    assert len(keys) == len(RECIPES)


@pytest.mark.parametrize("kind", [k for k in classes() if issubclass(k, Network)])
def test_networks_have_one_too(kind):
    assert callable(kind.config)


def test_a_network_is_known_by_what_it_was_built_from():
    built = [MLP(8), MLP(9), MLP(8, (16,)), ResNet18(width=8), SiameseCNN(), smooth(MLP(8), 5.0)]
    configs = [net.config() for net in built if isinstance(net, Network)]
    assert len({config_key(config) for config in configs}) == len(built)
    assert configs[0] == {
        **{"name": "MLP", "version": 1, "features": 8, "widths": [32], "classes": 2},
        **{"activation": "leaky_relu", "rho": None},
        "defaults": ["widths", "classes", "activation", "rho"],
    }
    assert configs[-1]["rho"] == 5.0


def test_a_network_among_settings_is_told_by_its_layers_and_weights():
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    assert plain(first) != plain(second)
    second.load_state_dict(first.state_dict())
    assert plain(first) == plain(second)


if __name__ == "__main__":
    ordered = sorted(FINAL, key=lambda kind: kind.__name__)
    lines = [f"{json.dumps(k.__name__)}: {json.dumps(defaults_of(k))}" for k in ordered]
    DEFAULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
