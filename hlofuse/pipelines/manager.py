"""The pass manager: it runs what a backend runs before and after fusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from hlofuse.analysis.kernels import is_kernel
from hlofuse.ir.collector import no_collection
from hlofuse.ir.computation_order import order_of_front_end
from hlofuse.ir.copy import copy_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.passes.base import Pass, Pipeline
from hlofuse.pipelines.flags import disabled_passes
from hlofuse.pipelines.targets import after_fusion, before_fusion
from hlofuse.trace import Event, Recorder, Skipped
from hlofuse.trace.lineage import final_instructions
from hlofuse.trace.provenance import BeforeFusion, Provenance

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription


AfterPass: TypeAlias = Callable[[str, Module], None]
"""Is given the name of a pass and the module that it has changed."""


@dataclass(frozen=True)
class FusionInput:
    """A module as it may enter the fusion passes."""

    module: Module
    left_alone: tuple[Skipped, ...] = ()
    """Instructions that XLA rewrites and the passes could not."""
    not_repeated: Mapping[str, Counter[str]] = field(default_factory=dict)
    """Passes that are not implemented and had something to work on: how many of each opcode."""
    events: tuple[Event, ...] = ()
    """What passes tell of their rewrites, under the names of `module` (`BeforeFusion`)."""


@no_collection()
def lower_to_fusion_input(
    module: Module,
    target: str,
    device: DeviceDescription | None = None,
    without: Collection[str] = (),
    flags: tuple[str, ...] = (),
    provenance: Provenance | None = None,
    after_pass: AfterPass | None = None,
) -> FusionInput:
    """What `target` does before fusion with these XLA flags, to a copy, `without` some passes.

    `provenance` learns what becomes of each instruction, `after_pass` is called where one changed the module.
    HlofuseError where calls would multiply beyond reason, and for a program partitioned by hand that the
    partitioner has not seen.
    """
    _refuse_manual_partitioning(module)
    out, recorder = copy_module(module), BeforeFusion()
    without = {*without, *disabled_passes(flags)}
    if provenance is not None:
        provenance.begin(out)
    out.listeners.append(recorder)
    out.computation_order = order_of_front_end(out)
    _run_all(before_fusion(target, device, flags), out, recorder, without, provenance, after_pass)
    if provenance is not None:
        provenance.end()
    out.listeners.remove(recorder)
    out.order_source = "replayed"
    return FusionInput(out, tuple(recorder.left_alone), recorder.not_repeated, recorder.following_names(out))


@dataclass(frozen=True)
class FinalModule:
    """A module as it is launched: what `after_optimizations` dumps hold."""

    module: Module
    names_at_fusion: Mapping[str, str] = field(repr=False)
    """Of each instruction that was there at the end of fusion: its name then. Without those made since."""
    events: tuple[Event, ...] = field(default=(), repr=False)
    """What the passes after fusion decided."""
    left_alone: tuple[Skipped, ...] = ()
    not_repeated: Mapping[str, Counter[str]] = field(default_factory=dict)


@no_collection()
def finish(
    module: Module,
    target: str,
    device: DeviceDescription | None = None,
    without: Collection[str] = (),
    flags: tuple[str, ...] = (),
    after_pass: AfterPass | None = None,
) -> FinalModule:
    """What `target` does with a module after its fusion passes, to a copy, `without` some passes.

    `after_pass` is called where one changed the module.
    """
    out, recorder = copy_module(module), Recorder()
    out.begin_run()
    without = {*without, *disabled_passes(flags)}
    _run_all(after_fusion(target, device, flags), out, recorder, without, None, after_pass)
    names = _names_at_fusion(module, out)
    return FinalModule(out, names, tuple(recorder.events), tuple(recorder.left_alone), recorder.not_repeated)


def _names_at_fusion(module: Module, final: Module) -> dict[str, str]:
    """The name in `module`, after fusion, of each instruction of `final` that was there."""
    successors = final_instructions(final)
    names: dict[str, str] = {}
    for instruction in module.instructions():
        last = successors.get(instruction.name)
        if last is None:
            continue
        # A copy in place of a tuple's element was not there, nor one of what costs nothing.
        # An element that a kernel yields is not the kernel.
        if last.opcode == "copy" and instruction.opcode != "copy":
            continue
        if is_kernel(last) and not is_kernel(instruction):
            continue
        if last.name not in names or last.name == instruction.name:
            names[last.name] = instruction.name
    return names


def passes_that_change(
    module: Module,
    target: str,
    device: DeviceDescription | None,
    flags: tuple[str, ...],
    run: Callable[..., object] = lower_to_fusion_input,
) -> list[str]:
    """The passes of `run` (it may be `finish`) that change a module, in the order in which they first do."""
    names: dict[str, None] = {}
    run(module, target, device, flags=flags, after_pass=lambda name, _: names.setdefault(name))
    return list(names)


def _run_all(
    pipelines: Iterable[Pipeline],
    module: Module,
    recorder: Recorder,
    without: Collection[str],
    provenance: Provenance | None,
    after_pass: AfterPass | None,
) -> None:
    def run(step: Pass) -> bool:
        recorder.begin_pass(step.name)
        if provenance is not None:
            provenance.begin_pass(step.name)
        changed = step.name not in without and step.run(module, recorder)
        if changed and after_pass is not None:
            after_pass(step.name, module)
        return changed

    for pipeline in pipelines:
        pipeline.run_with(run)


def _refuse_manual_partitioning(module: Module) -> None:
    from hlofuse.passes.control_flow.annotations import changes_shape  # slow to import, seldom needed

    if any(changes_shape(i) for i in module.instructions()):
        number = module.attributes.raw("num_partitions")
        devices = f"{number} devices" if number else "several devices"
        raise HlofuseError(
            f"{module.name} is partitioned manually over {devices} (SPMDFullToShardShape) and was dumped"
            " before the partitioner; give the dump after spmd-partitioning, or at the fusion input"
        )
