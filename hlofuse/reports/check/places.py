"""Places in the user's program, told the same way on every machine."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path, PurePosixPath

from hlofuse.format.layers import layer_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.reports.check.model import Where


def where_is(module: Module, instruction: Instruction, root: Path) -> Where:
    """Where an instruction came from; an empty place where the dump does not say."""
    source = module.source_of(instruction)
    if source is None and instruction.opcode == "fusion":
        # Passes that make a fusion may leave its place out; what is computed last stands for the whole.
        inside = (module.source_of(i) for i in reversed(list(instruction.fused_computation)))
        source = next((s for s in inside if s is not None), None)
    if source is None:
        return Where()
    layer = layer_of(instruction.op_name)
    return Where(portable(source.file, root), source.line, source.function, layer)


@lru_cache(maxsize=4096)
def portable(file: str, root: Path) -> str:
    """A file's path relative to `root`, whatever machine compiled the module.

    What follows `site-packages`; else the longest end of the path that is a file below `root`; else, of an
    absolute path, the name alone: where somebody keeps their projects does not belong in a baseline.
    """
    path = PurePosixPath(file.replace("\\", "/"))
    parts = [p for p in path.parts if p not in ("/", "..", ".")]
    if "site-packages" in parts:
        return "/".join(parts[len(parts) - parts[::-1].index("site-packages") :])
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
