"""What a test may hand in: a dump, a text, a module, or what `hlofuse.capture` has captured."""

import os
import warnings
from pathlib import Path
from typing import Any

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.library.measuring import measure_all
from hlofuse.library.opening import open as open_report
from hlofuse.reports.check import Measured


def measured(
    program: Any, target: str | None, device: str | None, root: Path, profile: str | None = None
) -> Measured:
    """Replay a subject on a target and measure what fusion leaves.

    HlofuseError for what is none, or cannot be read or replayed.
    """
    is_capture = callable(getattr(program, "module", None))
    if not (is_capture or isinstance(program, str | os.PathLike | Module)):
        raise HlofuseError(
            f"expected a dump's path, HLO text, a module or a capture, found {type(program).__name__}"
        )
    options = open_report(program, target=target, device=device, profile=profile).options
    found = measure_all([options], root)
    if len(found) != 1:
        raise HlofuseError(f"{program} has {len(found)} modules; give one dump")
    if found[0].note:
        warnings.warn(found[0].note, stacklevel=2)
    return found[0]
