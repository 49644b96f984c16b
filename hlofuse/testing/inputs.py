"""What a test may hand in: a dump, a text, a module, or what `hlofuse.capture` has captured."""

import os
import warnings
from pathlib import Path
from typing import Any

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.reports.check import Measured


def measured(program: Any, target: str | None, device: str | None, root: Path) -> Measured:
    """Replay a subject on a target and measure what fusion leaves.

    HlofuseError for what is none, or cannot be read or replayed.
    """
    if isinstance(program, str) and "\n" in program:
        from hlofuse.ir.text.reader import parse_module

        program = parse_module(program, "<text>")
    if isinstance(program, Module):
        return _of_module(program, target, device, root)
    if callable(getattr(program, "module", None)):  # hlofuse.capture.Capture, which need not be installed
        program = program.module().before
    if isinstance(program, str | os.PathLike):
        from hlofuse.cli.common.measuring import measure_all
        from hlofuse.cli.common.replaying import ReplayOptions

        found = measure_all([ReplayOptions(os.fspath(program), target=target, device=device)], root)
        if len(found) != 1:
            raise HlofuseError(f"{program} has {len(found)} modules; give one dump")
        if found[0].note:
            warnings.warn(found[0].note, stacklevel=2)
        return found[0]
    raise HlofuseError(
        f"expected a dump's path, HLO text, a module or a capture, found {type(program).__name__}"
    )


def _of_module(module: Module, target: str | None, device: str | None, root: Path) -> Measured:
    from hlofuse.account import observed_replay
    from hlofuse.replay import replay_config
    from hlofuse.reports.check.measure import profile_of_replay, refused_edges
    from hlofuse.reports.common.facts import Facts

    chosen = target or ("gpu" if device is not None else "cpu")
    observed = observed_replay(module, replay_config(chosen, device))
    facts = Facts(observed.replay, observed.costs)
    profile = profile_of_replay(module.name, facts, root)
    return Measured(profile, module.filename or "<module>", lambda: refused_edges(facts, root))
