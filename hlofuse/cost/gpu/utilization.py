"""Evaluations of the instructions of a fusion, and the resulting use of its parameters.

Mirrors `GpuHloCostAnalysis::FusionCalculateUtilizations` and the fusion part of
`xla/service/hlo_cost_analysis.cc`. An instruction belongs to *roots of element-wise use*: the outputs, and
every operand of something that is not element-wise. Within the reach of one root everything is evaluated as
often as the root is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlofuse.cost.gpu.atoms import Atom
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.cost.gpu.ticks import fp32, single_half_away
from hlofuse.ir.graph import Instruction

Uses = frozenset[int]
_NOT_USED: Uses = frozenset()


@dataclass(slots=True)
class FusionUse:
    flops: float
    ir_size: float
    """Instructions weighted by emitted copies (`IrSize`)."""
    parameter_bytes: list[int]
    parameter_utilization: list[float]
    parameter_ir_size: list[int]
    parameter_uses: list[Uses]
    """The roots of element-wise use of each parameter, by number."""
    root_utilization: list[float]
    """Evaluations of each of those roots."""
    splits: float
    """New basic blocks, weighted like `ir_size` (`BasicBlockSplitCount`)."""


def fusion_use(
    consumers_first: Sequence[Instruction],
    atoms: Mapping[Instruction, Atom],
    root: Instruction,
    parameters: Sequence[Instruction],
    updated: frozenset[Instruction],
) -> FusionUse:
    """Traverse a fused computation from its root; `updated` are the dynamic-update-slices among
    its outputs."""
    uses: dict[Instruction, Uses] = {root: frozenset((0,))}
    numbers: dict[Instruction, int] = {root: 0}
    evaluated = [1.0]
    emitted = [1]
    sums: dict[Uses, tuple[float, float]] = {}
    utilization: dict[Instruction, float] = {}
    ir_sizes: dict[Instruction, float] = {}
    flops = ir_size = splits = 0.0
    for instruction in consumers_first:
        use = uses.get(instruction, _NOT_USED)
        cached = sums.get(use)
        if cached is None:
            # All users come first, so the figures of these roots are final.
            often, copies = 0.0, 0.0
            for number in use:
                often = fp32(often + evaluated[number])
                copies = fp32(copies + emitted[number])
            cached = sums[use] = (often, copies)
        often, copies = cached
        utilization[instruction], ir_sizes[instruction] = cached
        atom = atoms[instruction]
        if atom.flops:
            flops = fp32(flops + fp32(often * atom.flops))
        ir_size = fp32(ir_size + copies)
        if atom.splits_block:
            splits = fp32(splits + copies)
        if atom.passes_use:
            for operand in instruction.operands:
                present = uses.get(operand)
                if present is None:
                    uses[operand] = use
                elif present is not use:
                    uses[operand] = present | use
            continue
        for slot, operand in enumerate(instruction.operands):
            number = numbers.get(operand, -1)
            if number < 0:
                number = numbers[operand] = len(evaluated)
                evaluated.append(0.0)
                emitted.append(0)
            uses[operand] = uses.get(operand, _NOT_USED) | {number}
            share = 0.0 if slot == 0 and instruction in updated else atom.operand_utilization[slot]
            read = elements_read(often, share, atom.operands[slot])
            evaluated[number] = fp32(evaluated[number] + read)
            emitted[number] += int(copies)
    return FusionUse(
        flops,
        ir_size,
        [bytes_of(atoms[p].result, utilization.get(p, 0.0)) for p in parameters],
        [utilization.get(p, 0.0) for p in parameters],
        [int(ir_sizes.get(p, 0.0)) for p in parameters],
        [uses.get(p, _NOT_USED) for p in parameters],
        evaluated,
        splits,
    )


def elements_read(often: float, share: float, operand: ShapeFacts) -> float:
    """Reads of an operand by an instruction evaluated `often` that reads `share` of it.

    Whole elements are read. XLA multiplies in single and divides in double precision, so that 1 does not stay
    1 where single precision cannot count the elements.
    """
    read = fp32(often * share)
    elements = operand.elements
    if elements == 0:
        return 0.0
    if read == 1.0 and operand.elements_fp32 == elements:
        return read
    return fp32(math.ceil(fp32(read * operand.elements_fp32)) / elements)


def bytes_of(operand: ShapeFacts, share: float) -> int:
    """Bytes read of an array at this utilization."""
    size = operand.size_fp32
    return int(size) if share == 1.0 else single_half_away(size * share)
