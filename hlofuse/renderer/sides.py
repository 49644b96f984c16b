"""A name out of one dump, asked for in a picture of both: what it is on the other side.

Who holds the dump from before knows the names of before; the fusions have names only after.
"""

from __future__ import annotations

from dataclasses import replace

from hlofuse.ir import HlofuseError, Module
from hlofuse.pipelines import Replay
from hlofuse.present.escape import shorten
from hlofuse.renderer.names import lookup, part_number
from hlofuse.renderer.options import Options
from hlofuse.renderer.plan import has_box
from hlofuse.renderer.provenance import members


def for_side(options: Options, replay: Replay, module: Module) -> Options:
    """`options` with names that `module`, one side of `replay`, knows.

    Raises HlofuseError, with the nearest names, for a name that neither side has.
    """
    return replace(
        options,
        focus=None if options.focus is None else _counterpart(options.focus, replay, module),
        open=_known(options.open, replay, module),
        collapse=_known(options.collapse, replay, module),
    )


def _known(names: tuple[str, ...], replay: Replay, module: Module) -> tuple[str, ...]:
    """Those that `module` has; the others must be the other side's."""
    other = replay.before if module is replay.after else replay.after
    for name in names:
        if part_number(name) is None and not _has(module, name):
            lookup(other, name)
    return tuple(n for n in names if part_number(n) is not None or _has(module, n))


def _counterpart(name: str, replay: Replay, module: Module) -> str:
    """`name`, or what holds it after, or what it was made of before."""
    name = name.lstrip("%")
    if _has(module, name):
        return name
    inside = members(replay.events)
    if module is replay.after:
        lookup(replay.before, name)
        for owner, originals in reversed(inside.items()):
            if name in originals and module.find(owner):
                return owner
    else:
        found = replay.after.find(name)
        fusion = found.computation.fusion if found is not None and found.computation is not None else None
        for owner in (name, fusion.name if fusion is not None else ""):
            # Producers come first: the last is the one the others were fused into.
            for original in reversed(inside.get(owner, {})):
                instruction = module.find(original)
                if instruction is not None and has_box(instruction):
                    return original
        lookup(replay.after, name)
    raise HlofuseError(f"{shorten(name, 80)} is on one side only: --view before or --view after shows it")


def _has(module: Module, name: str) -> bool:
    name = name.lstrip("%")
    return module.find(name) is not None or module.find_computation(name) is not None
