"""The notebooks under examples run from top to bottom, and what they show has HTML."""

import ast
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path):
    """The code of a notebook, cell by cell."""
    whole = json.loads(path.read_text())
    return ["".join(cell["source"]) for cell in whole["cells"] if cell["cell_type"] == "code"]


def shown(code, space):
    """Run a cell; gives the value of its last line, where that is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), space)
    return (
        None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), space)
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_kept_without_outputs(path):
    whole = json.loads(path.read_text())
    assert whole["nbformat"] == 4
    codes = [cell for cell in whole["cells"] if cell["cell_type"] == "code"]
    assert codes
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in codes)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_run(path, short_attacks, monkeypatch, tmp_path, capsys):  # noqa: ARG001
    from r2et.audit import pack

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(pack, "printed", lambda _: pack.Printed(None, "not asked for"))
    space = {"__name__": "notebook"}
    values = [shown(code, space) for code in cells(path)]
    rich = [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]
    assert len(rich) == 2
    assert "Rows proved" in rich[0]
    assert "Contributions are compared with" in rich[1]
    assert capsys.readouterr().out.startswith("repeated, equal to the bit\n")
