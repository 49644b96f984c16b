"""Instructions that stay outside fusions on CPU."""

from typing import Any

from hlofuse.ir.graph import Instruction
from hlofuse.rules.verdict import runner

_COLLECTIVES = frozenset("all-gather all-reduce all-to-all collective-permute reduce-scatter".split())
_RANDOM = frozenset("rng rng-bit-generator rng-get-and-update-state".split())


@runner("EC030", "A sort is the C++ library's", runs="sort")
def sort(kernel: Instruction) -> dict[str, Any] | None:
    return {"operands": len(kernel.operands)} if kernel.opcode == "sort" else None


@runner("EC031", "A copy is a memcpy", runs="memcpy")
def copy(kernel: Instruction) -> dict[str, Any] | None:
    is_copy = kernel.opcode == "copy" and kernel.shape.bit_width >= 8
    return {"bytes": kernel.shape.byte_size} if is_copy else None


@runner("EC032", "A concatenate is a memcpy for each part", runs="memcpy kernel")
def concatenate(kernel: Instruction) -> dict[str, Any] | None:
    if kernel.opcode != "concatenate":
        return None
    return {"joins": f"{len(kernel.operands)} along dimension {kernel.dimensions[0]}"}


@runner("EC033", "Processes talk to each other", runs="collective")
def collective(kernel: Instruction) -> dict[str, Any] | None:
    return {"opcode": kernel.opcode} if kernel.opcode in _COLLECTIVES else None


@runner("EC034", "Random numbers", runs="random state kernel")
def random(kernel: Instruction) -> dict[str, Any] | None:
    return {"opcode": kernel.opcode} if kernel.opcode in _RANDOM else None


@runner("EC035", "A kernel for one operation", runs="elemental emitter")
def elemental(kernel: Instruction) -> dict[str, Any] | None:
    return {"opcode": kernel.opcode}


RULES = (sort, copy, concatenate, collective, random, elemental)
