"""The tables of a run, as `schema.toml` lists them, and the packages that they need."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    import pyarrow


@cache
def document(name: str) -> dict[str, Any]:
    """A data file of this package."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


VERSION: int = document("schema")["version"]
SCHEMA = f"hlofuse.batch/{VERSION}"


def package(name: str, extra: str = "batch") -> Any:
    """An optional package; HlofuseError says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        hint = f'pip install "hlofuse[{extra}]"'
        raise HlofuseError(f"batch needs {name.partition('.')[0]}: {hint} ({error})") from None


@cache
def tables() -> dict[str, pyarrow.Schema]:
    """The columns of every table, in their order."""
    pa = package("pyarrow")
    return {
        name: pa.schema([(column, pa.type_for_alias(kind)) for column, kind in columns.items()])
        for name, columns in document("schema")["tables"].items()
    }
