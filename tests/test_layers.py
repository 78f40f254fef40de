"""A package imports only from those above it in this list (data flows down it)."""

import ast
from pathlib import Path

import r2et

LAYERS = [
    "version",
    "errors",
    "config",
    "wording",
    "files",
    "checks",
    "progress",
    "lock",
    "engine",
    "region",
    "data",
    "models",
    "explain",
    "rank",
    "metrics",
    "certify",
    "attack",
    "penalty",
    "train",
    "audit",
    "estimator",
    "bench",
    "report",
    "demo",
    "cli",
]
ROOT = Path(r2et.__file__).parent
TOP = {"__init__", "__main__"}  # the faces of the package may import anything


def imported(tree: ast.AST) -> set[str]:
    """First-level r2et modules a file imports, at its top or inside a function."""
    names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("r2et.")}


def violations(layer: str, source: str) -> set[str]:
    """The imports of a file of this layer that look down instead of up."""
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    return imported(ast.parse(source)) - set(allowed)


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def test_every_file_belongs_to_a_layer():
    strays = {layer_of(p) for p in ROOT.rglob("*.py")} - set(LAYERS) - TOP
    assert not strays


def test_imports_only_look_up():
    found = {}
    for path in ROOT.rglob("*.py"):
        if layer_of(path) not in TOP:
            bad = violations(layer_of(path), path.read_text())
            if bad:
                found[str(path.relative_to(ROOT))] = bad
    assert not found


def test_the_layer_test_sees_a_violation():
    assert violations("rank", "from r2et.attack import ERAttack") == {"attack"}
    assert violations("rank", "def f():\n    import r2et.attack.er") == {"attack"}
    assert violations("rank", "from r2et import attack") == {"attack"}
    assert not violations("rank", "from r2et.explain import Gradient")
