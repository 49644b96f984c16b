"""A run time and its parts."""

from dataclasses import dataclass
from typing import NamedTuple

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.graph import Instruction
from .ticks import INFINITE


@dataclass(slots=True)
class Launch:
    """Emitter kind and launch dimensions of a kernel."""

    kind: str
    """EmitterFusionKind: loop, reduction, transpose, concatenate, scatter, sort, triton, custom, cudnn."""
    blocks: int
    threads: int


@dataclass(slots=True)
class Estimate:
    """Run time of a kernel (`EstimateRunTimeData`). Times are ticks of 0.25 ns."""

    ticks: int  # Compute and memory time, overlapping (`exec_time`)
    flops: int
    bytes_read: int
    bytes_written: int
    read: int
    write: int
    compute: int
    launch: Launch
    coalesced: bool

    @property
    def is_infinite(self) -> bool:
        return self.ticks >= INFINITE

    @property
    def memory(self) -> int:
        return self.read + self.write


class OperandRead(NamedTuple):
    operand: Instruction
    size: int
    read: int  # Bytes read; bytes beyond `size` are read again, from a cache where it fits
    ticks: int
    share: float  # The used share of each memory transaction, or of the bandwidth over all tiles


def chain_end(instruction: Instruction) -> Instruction:
    """The start of a chain of bitcasts and unary element-wise operations, at most a broadcast or iota."""
    while instruction.opcode not in ("broadcast", "iota") and instruction.operand_count == 1:
        if not instruction.is_bitcast and not is_elementwise(instruction):
            break
        instruction = instruction.operand
    return instruction
