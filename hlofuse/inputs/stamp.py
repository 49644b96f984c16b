"""What a capture says of itself: the jaxlib that compiled a module, for what, and with which flags."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlofuse.inputs.dump_directory import corpus_file

STAMP = "hlofuse.json"
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What compiled a module."""

    jaxlib: str
    """Its version; this and the rest is empty where the file does not say."""
    backend: str
    device: str
    flags: str
    """The value of XLA_FLAGS."""
    file: str
    """The name of the file that says so."""


def stamp_of(filename: str | os.PathLike[str] | None) -> Stamp | None:
    """The stamp in a folder or beside a module, else that of the corpus that the folder is part of."""
    if not filename or str(filename).startswith(("<", "-")):
        return None
    path = Path(filename)
    folder = path if path.is_dir() else path.parent
    files = [folder / STAMP, folder / MANIFEST]
    if corpus_file(folder, "before") is not None or corpus_file(folder, "before_optimizations") is not None:
        above = folder.resolve().parent
        files += [above / STAMP, above / MANIFEST]
    return next((stamp for file in files if (stamp := _read(file)) is not None), None)


def _read(file: Path) -> Stamp | None:
    """None for a file that is not there, or that something else wrote."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not _is_own(data):
        return None
    versions = data.get("versions")
    found = {**data, **versions} if isinstance(versions, dict) else data
    return Stamp(
        _text(found, "jaxlib", "jax"),
        _text(found, "backend", "target"),
        _text(found, "device", "spec"),
        _text(data, "flags"),
        file.name,
    )


def _is_own(data: dict[str, Any]) -> bool:
    is_named = _text(data, "schema").startswith(("hlofuse.stamp/", "hlofuse.capture/"))
    return is_named or {"jax", "target", "modules"} <= set(data)


def _text(data: dict[str, Any], *keys: str) -> str:
    """The first of these that is text."""
    return next((v for k in keys if isinstance(v := data.get(k), str)), "")
