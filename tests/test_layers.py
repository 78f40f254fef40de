"""A package imports only from those above it in this list (data flows down it)."""

import ast
import re
from pathlib import Path

import r2et

LAYERS = [
    # What everything stands on, and knows of nothing else.
    "version",
    "defaults",
    "errors",
    "wording",
    "files",
    "checks",
    "progress",
    "lock",
    "machine",
    # The order of the design.
    "config",
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
    "results",
    "report",
    "audit",
    "reason",
    "estimator",
    "bench",
    "demo",
    "cli",
]
ROOT = Path(r2et.__file__).parent
DOTTED = re.compile(r"r2et(\.[a-z_]\w*)+[.:]?\w*")
TOP = {"__init__", "__main__"}  # the faces of the package may import anything


def imported(tree: ast.AST) -> set[str]:
    """First-level r2et modules a file imports, at its top or inside a function.

    A module may also be imported by its name: every text that is a dotted name below r2et counts,
    whoever it is handed to, and so does the beginning of one that is put together.
    """
    names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names += [node.value] if DOTTED.fullmatch(node.value) else []
    return {re.split("[.:]", name)[1] for name in names if name.startswith("r2et.")}


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
    offenders = {}
    for path in ROOT.rglob("*.py"):
        if layer_of(path) not in TOP:
            below = violations(layer_of(path), path.read_text())
            if below:
                offenders[str(path.relative_to(ROOT))] = below
    assert not offenders


def test_the_layer_test_sees_a_violation():
    assert violations("rank", "from r2et.attack import ERAttack") == {"attack"}
    assert violations("rank", "def f():\n    import r2et.attack.er") == {"attack"}
    assert violations("rank", "from r2et import attack") == {"attack"}
    assert not violations("rank", "from r2et.explain import Gradient")


def test_a_module_imported_by_its_name_is_seen():
    for source in (
        'importlib.import_module("r2et.report").page(1)',
        'from importlib import import_module as load\nload("r2et.report")',
        '__import__("r2et.report.page")',
        'NAME = "r2et.report"\nload(NAME)',
        'load(f"r2et.report.{name}")',
        'load("r2et.report:page")',
    ):
        assert violations("rank", source) == {"report"}, source
    assert not violations("rank", 'raise ValueError("see r2et.report for more")')
    assert not violations("audit", 'importlib.import_module("r2et.report")')


def test_a_report_never_touches_a_model():
    above = {"models", "explain", "certify", "attack", "penalty", "train", "data", "region"}
    for path in (ROOT / "report").rglob("*.py"):
        assert not imported(ast.parse(path.read_text())) & above, path
