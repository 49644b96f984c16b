"""What is imported is declared, and what is declared is written down."""

from __future__ import annotations

import ast
import re
import sys
import tomllib

from ..conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ONLY_WHERE_AN_EXTRA_IS = {"duckdb", "gymnasium", "jax", "jaxlib", "pyarrow", "pygraphviz", "pytest"}
"""Imported where the feature is asked for, with a message that names the extra; pytest by its own plugin."""
ONLY_FOR_TYPES = {"mypy_extensions"}
"""Never imported at run time; mypy, which reads it, brings it."""


def imported() -> set[str]:
    """Packages that the sources of hlofuse import, the standard library left aside."""
    found = set()
    for file in (ROOT / "hlofuse").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names - {"hlofuse"}


def declared() -> set[str]:
    return {re.split(r"[^\w-]", text)[0] for text in PROJECT["dependencies"]}


def test_what_is_imported_is_declared() -> None:
    assert imported() == declared() | ONLY_WHERE_AN_EXTRA_IS | ONLY_FOR_TYPES


def test_what_is_declared_is_written_down() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    assert sorted(name for name in declared() if f"[{name}](" not in page) == []
