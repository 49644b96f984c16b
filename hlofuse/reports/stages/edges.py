"""Kernels of a module and what passes between them."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import computed_in, kernels
from hlofuse.analysis.shape_size import leaves_size
from hlofuse.ir.graph import Instruction, Module
from hlofuse.reports.explain.views import through_views
from hlofuse.reports.stages.model import Kernel


def kernels_of(module: Module) -> tuple[Kernel, ...]:
    """All kernels, the one that moves most first."""
    costs = CostAnalysis()
    found = [
        Kernel(i.name, i.opcode, i.fusion_kind, tuple(_inside(i)), costs.instruction(i).bytes_accessed)
        for i in kernels(module)
    ]
    return tuple(sorted(found, key=lambda k: -k.bytes))


def _inside(kernel: Instruction) -> Iterator[str]:
    """Opcodes of what a fusion computes."""
    if kernel.opcode == "fusion" and kernel.called:
        for i in computed_in(kernel):
            if i.opcode not in ("constant", "tuple"):
                yield i.opcode


def edges(module: Module) -> list[tuple[Instruction, Instruction, Instruction, int]]:
    """(producer, value, consumer, bytes): `value` is the producer or a view of it, as it is read."""
    launched = set(kernels(module))
    found = []
    for consumer in launched:
        for value in dict.fromkeys(consumer.operands):
            producer = through_views(value)
            if producer in launched:
                found.append((producer, value, consumer, leaves_size(value.shape)))
    return sorted(found, key=lambda e: (-e[3], e[0].name, e[2].name))
