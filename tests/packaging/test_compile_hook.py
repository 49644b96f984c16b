"""The modules that a compiled wheel has: those named are there, and mypyc gets nothing in them wrong.

mypyc says what it cannot translate. What is looked for here it takes, and then it fails at run time.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..running import load_tool

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def compiled() -> dict[Path, ast.Module]:
    hook = load_tool("compile_hook")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    options = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    with pytest.raises(ValueError, match="not there: hlofuse/no_such"):
        hook.chosen(ROOT, [*options["modules"], "hlofuse/no_such/*.py"], options["plain"])
    return {p: ast.parse(p.read_text()) for p in hook.chosen(ROOT, options["modules"], options["plain"])}


def test_no_class_caches_properties_or_keeps_class_variables_apart(compiled: dict[Path, ast.Module]) -> None:
    """Compiled classes have no `__dict__`, and compiled dataclasses take a `ClassVar` for a field."""
    names = {"cached_property", "ClassVar"}
    found = {
        f"{path.name}: {node.id}"
        for path, tree in compiled.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in names
    }
    assert found == set()


def test_plain_classes_derive_from_no_compiled_ones(compiled: dict[Path, ast.Module]) -> None:
    """Only `mypyc_attr(allow_interpreted_subclasses=True)` would allow it."""
    native = set()
    for path, tree in compiled.items():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for c in _classes(tree):  # imported from the module or from its package
            native |= {(module, c.name), (module.rpartition(".")[0], c.name)}
    derived = set()
    for path in (ROOT / "hlofuse").rglob("*.py"):
        if path in compiled:
            continue
        tree = ast.parse(path.read_text())
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if (node.module, alias.name) in native
        }
        bases = {b.id for c in _classes(tree) for b in c.bases if isinstance(b, ast.Name)}
        derived |= {(path.name, name) for name in bases & imported}
    assert ("hlofuse.cost.gpu", "KernelModel") in native
    assert derived == set()


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
