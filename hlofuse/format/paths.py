"""Files of the user's program relative to the project, whatever machine compiled the module."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path, PurePosixPath

from hlofuse.ir.stack_frames import SourceLocation

_PACKAGES = re.compile(r"(?:site|dist)-packages")


@lru_cache(maxsize=4096)
def portable(file: str, root: Path) -> str:
    """A file's path relative to `root`.

    What follows `site-packages`; else the longest end of the path that is a file below `root`; else, of an
    absolute path, the name alone: where somebody keeps their projects tells nobody else anything.
    """
    path = PurePosixPath(file.replace("\\", "/"))
    parts = [p for p in path.parts if p not in ("/", "..", ".")]
    packages = [k for k, part in enumerate(parts) if _PACKAGES.fullmatch(part)]
    if packages:
        return "/".join(parts[packages[-1] + 1 :])
    for k in range(len(parts)):
        candidate = "/".join(parts[k:])
        if is_file(root, candidate):
            return candidate
    absolute = path.is_absolute() or file[1:2] == ":"
    return parts[-1] if absolute and parts else "/".join(parts)


def is_file(root: Path, relative: str) -> bool:
    """True for a file below `root`; annotations only make sense on those."""
    try:
        return bool(relative) and (root / relative).is_file()
    except (OSError, ValueError):
        return False


def shown_file(file: str) -> str:
    """A file relative to the working directory, which is taken for the project."""
    try:
        return portable(file, Path.cwd())
    except OSError:  # the directory is gone
        return file


def source_text(source: SourceLocation) -> str:
    """`model.py:35`."""
    file = shown_file(source.file)
    return f"{file}:{source.line}" if source.line else file


def source_in_function(source: SourceLocation) -> str:
    """`model.py:35 forward`; the line alone where the dump names no function."""
    return f"{source_text(source)} {source.function}" if source.function else source_text(source)
