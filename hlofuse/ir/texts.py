"""Packaged TOML files, and texts from them: a table for each name, a key for each text."""

from functools import cache
from pathlib import Path
from typing import Any


def packaged(module: str, name: str) -> dict[str, Any]:
    """`NAME.toml` next to a module, which gives its `__file__`."""
    import tomllib  # few commands need one

    return tomllib.loads(Path(module).with_name(f"{name}.toml").read_text(encoding="utf-8"))


@cache
def texts(file: Path) -> dict[str, dict[str, str]]:
    tables = packaged(str(file), file.stem).items()
    return {name: {key: " ".join(t.split()) for key, t in table.items()} for name, table in tables}
