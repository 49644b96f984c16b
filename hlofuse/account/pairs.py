"""One pair in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hlofuse.account.figures import PairDetail, ReadTerm, StepCost, kernel_time, us
from hlofuse.account.flips import flips, pair_estimate, sums
from hlofuse.account.tiles import reads_of, tiling_of
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.terms import OperandRead
from hlofuse.ir.graph import Instruction
from hlofuse.rules.gpu_fusible import is_fusible_bitcast

if TYPE_CHECKING:
    from hlofuse.cost.tiling.terms import TileRead


def pair_detail(model: KernelModel, producer: Instruction, consumer: Instruction) -> PairDetail | None:
    """The cost story of a pair in the graph as it stands; None where the model has no figures."""
    first, second = model.run_time(producer), model.run_time(consumer)
    fused = pair_estimate(model, producer, consumer)
    tiling = tiling_of(model, second, consumer)
    fused_tiling = tiling_of(model, fused, producer, consumer)
    times = (
        kernel_time(first, tiling_of(model, first, producer)),
        kernel_time(second, tiling),
        kernel_time(fused, fused_tiling),
    )
    if times[0] is None or times[1] is None or times[2] is None:
        return None
    kernels = [u for u in producer.users if not is_fusible_bitcast(u, model.release)]
    leaves = len(kernels) == len(producer.users)
    unfused_sum, fused_sum = sums(model, producer)
    return PairDetail(
        StepCost(*times, len(kernels), leaves, model.device.launch_overhead_us),  # type: ignore[arg-type]  # told apart above
        us(unfused_sum),
        us(fused_sum),
        len(producer.users),
        _terms(reads_of(model, second, tiling, consumer)),
        _terms(reads_of(model, fused, fused_tiling, producer, consumer)),
        flips(model, producer),
        notes(producer, consumer),
    )


def _terms(reads: Sequence[OperandRead | TileRead]) -> tuple[ReadTerm, ...]:
    found = [
        ReadTerm(r.operand.name, str(r.operand.shape), r.size, r.read, us(r.ticks), r.share) for r in reads
    ]
    found.sort(key=lambda t: -t.us)
    return tuple(found)


# Peculiarities of XLA's model that a pair's figures rest on.

_WARP = 32
_ALIGNED, _UNALIGNED = 6, 400  # operations for each element, see cost/gpu/op_costs.py


def notes(producer: Instruction, consumer: Instruction) -> tuple[str, ...]:
    """What is not to be guessed from shapes; names are those inside the two."""
    found = []
    for instruction in (*_inside(producer), *_inside(consumer)):
        if instruction.opcode == "concatenate":
            dimension = instruction.dimensions[0]
            size = instruction.operands[0].shape.dimensions[dimension]
            if dimension > 0 and size % _WARP:
                found.append(
                    f"{instruction.name} counts {_UNALIGNED} operations an element, not {_ALIGNED}: it joins"
                    f" along dimension {dimension}, and the {size} of its first operand is no multiple of"
                    f" {_WARP}. Pad the parts to one, or join along dimension 0."
                )
    return tuple(dict.fromkeys(found))


def _inside(instruction: Instruction) -> Iterator[Instruction]:
    if instruction.opcode == "fusion":
        yield from instruction.fused_computation.instructions
    else:
        yield instruction
