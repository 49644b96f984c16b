"""A name out of one dump, asked for in a picture of both: what it is on the other side.

Who holds the dump from before knows the names of before; the fusions have names only after.
"""

from __future__ import annotations

from dataclasses import replace

from hlofuse.format.escape import shorten
from hlofuse.ir import HlofuseError, Instruction, Module
from hlofuse.render.labels import fusion_around, lookup, part_number
from hlofuse.render.options import Options
from hlofuse.render.pair import ModulePair
from hlofuse.render.planning.boxed import has_box


def for_side(options: Options, pair: ModulePair, module: Module) -> Options:
    """`options` with names that `module`, one side of `pair`, knows.

    Raises HlofuseError, with the nearest names, for a name that neither side has.
    """
    return replace(
        options,
        focus=None if options.focus is None else _counterpart(options.focus, pair, module),
        open=_present(options.open, pair, module),
        collapse=_present(options.collapse, pair, module),
    )


def _present(names: tuple[str, ...], pair: ModulePair, module: Module) -> tuple[str, ...]:
    """Those that `module` has; the others must be the other side's."""
    other = pair.before if module is pair.after else pair.after
    for name in names:
        if part_number(name) is None and not _has(module, name):
            lookup(other, name)
    return tuple(n for n in names if part_number(n) is not None or _has(module, n))


def _counterpart(name: str, pair: ModulePair, module: Module) -> str:
    """`name`, or what holds it after, or what it was made of before."""
    name = name.lstrip("%")
    if _has(module, name) and (pair.same_names or module is pair.before):
        return name
    if module is pair.after:
        if not _has(pair.before, name):
            lookup(module, name)
            return name
        found = pair.before.find(name)
        kernels = pair.kernels.get(found, ()) if found is not None else ()
        if kernels:
            return kernels[-1].name
        if _has(module, name):  # a computation, or what is no kernel: the name is all there is to go by
            return name
    else:
        found = pair.after.find(name)
        if found is None:
            lookup(pair.after, name)
        else:
            # Producers come first: the last is the one the others were fused into.
            original = _last_of(pair, found) or _last_of(pair, fusion_around(found))
            if original is not None:
                return original.name
    raise HlofuseError(f"{shorten(name, 80)} is on one side only: --view before or --view after shows it")


def _last_of(pair: ModulePair, kernel: Instruction | None) -> Instruction | None:
    members = [i for i, kernels in pair.kernels.items() if kernel in kernels and has_box(i)]
    launched = [i for i in members if fusion_around(i) is None]
    return launched[-1] if launched else members[-1] if members else None


def _has(module: Module, name: str) -> bool:
    name = name.lstrip("%")
    return module.find(name) is not None or module.find_computation(name) is not None
