"""What a capture says of itself: the jaxlib that compiled a module, and the flags it was given."""

from __future__ import annotations

import json
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
    """Its version; empty where the file does not say."""
    flags: str
    """The value of XLA_FLAGS."""
    file: str
    """The name of the file that says so."""


def stamp_of(filename: str | None) -> Stamp | None:
    """The stamp in the folder of a module; of a corpus the manifest above its folders counts, too."""
    if not filename or filename.startswith("<"):
        return None
    folder = Path(filename).parent
    files = [folder / STAMP, folder / MANIFEST]
    if corpus_file(folder, "before") is not None or corpus_file(folder, "before_optimizations") is not None:
        files.append(folder.resolve().parent / MANIFEST)
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
    version = next((v for k in ("jaxlib", "jax") if (v := _text(found, k))), "")
    return Stamp(version, _text(data, "flags"), file.name)


def _is_own(data: dict[str, Any]) -> bool:
    return _text(data, "schema").startswith(("hlofuse.stamp/", "hlofuse.capture/")) or {
        "jax",
        "target",
        "modules",
    } <= set(data)


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
