"""The names of a replay: XLA's final ones, and the module before optimizations that knows others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlofuse.ir.graph import Module
    from hlofuse.replay import Replay
    from hlofuse.reports.common.final_names import FinalNames


def final_names_of(replay: Replay) -> FinalNames:
    """XLA's final names: from its final module next to the input, else from the replay."""
    from hlofuse.cli.common.progress import spinner
    from hlofuse.inputs import load
    from hlofuse.inputs.dump_directory import final_module_of
    from hlofuse.ir.errors import HlofuseError
    from hlofuse.reports.common.final_names import final_names

    path = final_module_of(_file(replay), replay.target)
    with spinner("matching names"):
        try:
            final = load(path) if path is not None and not replay.config.changes else None
        except HlofuseError:  # damaged, or cut short
            final = None
        return final_names(replay, final)


def unoptimized_of(replay: Replay) -> Module | None:
    """The module before optimizations next to the input; None without one."""
    from hlofuse.inputs import load
    from hlofuse.inputs.companions import before_optimizations_of
    from hlofuse.ir.errors import HlofuseError

    path = before_optimizations_of(_file(replay))
    try:
        return load(path) if path is not None else None
    except HlofuseError:
        return None


def _file(replay: Replay) -> str | None:
    identity = replay.input.identity
    return identity.file if identity is not None else replay.before.filename
