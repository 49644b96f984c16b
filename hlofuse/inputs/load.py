"""`load`: the front door for everything that reads a module."""

from __future__ import annotations

import os
from pathlib import Path

from hlofuse.inputs.dump_directory import DumpDirectory, is_corpus_case
from hlofuse.inputs.text import read_text
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.module import Module
from hlofuse.ir.parse import parse_module


def load(
    path: str | os.PathLike[str],
    module: str | None = None,
    *,
    target: str = "cpu",
    limit: int | None = None,
) -> Module:
    """Read a module from a text dump (also gzipped), `-`, a dump directory or a corpus folder.

    From a directory it is the module as it enters the fusion passes of `target`; `module` picks by name.
    `limit` bounds the bytes of text read (default: 1 GiB or HLOFUSE_MAX_INPUT_BYTES).

    Raises HlofuseError (HloParseError for a place in the text) with a message for the user.
    """
    file = Path(path)
    if str(path) != "-" and _is_directory(file):
        if is_corpus_case(file):
            file /= "before.hlo"
        else:
            file = DumpDirectory(file).pick(module).pass_input(target)
    elif module is not None:
        raise HlofuseError("--module picks a module from a dump directory; this input is a single module")
    name = "<stdin>" if str(path) == "-" else str(file)
    parsed = parse_module(read_text(file, limit), name)
    parsed.filename = name
    return parsed


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
