"""What tells a gather or a scatter of its batches, where the framework had them as dimensions of their own.

BatchedGatherScatterNormalizer (`xla/service/batched_gather_scatter_normalizer.cc`) makes an iota for each
dimension of batches and puts them in front of the indices.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation


def is_of_batches(x: Instruction) -> bool:
    """Is it such an iota, of which no name tells, or what joins them?"""
    if x.opcode == "iota":
        return not x.op_name and bool(x.users) and all(map(_joins_batches, x.users))
    return _joins_batches(x)


def _joins_batches(x: Instruction) -> bool:
    return x.opcode == "concatenate" and operation(x).startswith(("gather", "scatter"))
