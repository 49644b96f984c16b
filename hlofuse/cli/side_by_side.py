"""Two modules: read from the command line, and their difference made ready to be drawn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlofuse.differ import ModuleDiff
    from hlofuse.ir.module import Module
    from hlofuse.renderer import Pair


def read_both(before: str, after: str, module: str | None) -> tuple[Module, Module]:
    """BEFORE and AFTER; `module` picks from directories. HlofuseError for what cannot be read."""
    from hlofuse.cli.progress import spinner
    from hlofuse.inputs import load
    from hlofuse.ir import HlofuseError

    if before == after == "-":
        raise HlofuseError("standard input can be only one of BEFORE and AFTER")
    if module is not None and not any(map(os.path.isdir, (before, after))):
        raise HlofuseError("--module picks a module from a dump directory; two files were given")
    with spinner("reading"):
        first, second = [load(path, module if os.path.isdir(path) else None) for path in (before, after)]
    return first, second


def pair_of_diff(diff: ModuleDiff) -> Pair:
    """What the renderer draws side by side."""
    from hlofuse.differ.homes import homes
    from hlofuse.differ.report.summary import verdict
    from hlofuse.renderer import Pair

    found = homes(diff)
    return Pair(diff.before.module, diff.after.module, found.kernels, verdict(diff), found.notes)
