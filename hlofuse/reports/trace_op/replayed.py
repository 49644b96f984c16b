"""A capture folder from the program to the kernels: it holds the dumps around fusion only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.inputs import load
from hlofuse.inputs.companions import before_optimizations_of
from hlofuse.inputs.ordered import in_creation_order, restore_literals
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.pipelines.manager import AfterPass, finish, lower_to_fusion_input
from hlofuse.reports.timeline.model import DumpSequence, PassDump

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription


def with_replayed_passes(
    sequence: DumpSequence, target: str, device: DeviceDescription | None, flags: tuple[str, ...] = ()
) -> DumpSequence:
    """The sequence with the module before optimizations and XLA's final one, if they lie beside it.

    XLA's passes before fusion are repeated on the former; those after fusion where the latter is missing.
    """
    dumps = sequence.dumps
    first = before_optimizations_of(str(dumps[0].path))
    if first is not None and first not in {d.path for d in dumps}:
        dumps = (*_before(first, target, device, flags), *dumps)
    last = dumps[0].path.with_name("after_optimizations.hlo")
    if last.is_file():
        return replace(sequence, dumps=(*dumps, PassDump(last, after="after_optimizations")))
    return replace(sequence, dumps=(*dumps, *_after(dumps[-1], target, device, flags)))


def _before(
    path: Path, target: str, device: DeviceDescription | None, flags: tuple[str, ...]
) -> list[PassDump]:
    dumps = [PassDump(path, after="before_optimizations")]
    try:
        module = load(path)
        restore_literals(module)
        in_creation_order(module, unique_ids_for(module))
        lower_to_fusion_input(module, target, device, flags=flags, after_pass=_note(dumps, path))
    except HlofuseError:  # partitioned by hand, for one
        del dumps[1:]
    return dumps


def _after(
    last: PassDump, target: str, device: DeviceDescription | None, flags: tuple[str, ...]
) -> list[PassDump]:
    dumps: list[PassDump] = []
    try:
        finish(load(last.path), target, device, flags=flags, after_pass=_note(dumps, last.path))
    except HlofuseError:
        dumps.clear()
    return dumps


def _note(dumps: list[PassDump], path: Path) -> AfterPass:
    def note(name: str, module: Module) -> None:
        dumps.append(PassDump(path, after=name, text=print_module(module)))

    return note
