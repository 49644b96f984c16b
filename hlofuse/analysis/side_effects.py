"""Does an instruction do more than compute its result? (`HloInstruction::HasSideEffect`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction

_ALWAYS = frozenset(
    """
    send send-done recv recv-done rng rng-get-and-update-state infeed outfeed all-reduce-start
    all-reduce-done all-gather-start all-gather-done collective-broadcast collective-permute-start
    collective-permute-done
    """.split()
)
_CONSTRAINED = frozenset({"all-to-all", "all-gather", "all-reduce", "reduce-scatter"})
_COLLECTIVE = _CONSTRAINED | {"collective-permute"}


def has_side_effect(instruction: Instruction) -> bool:
    """True if the instruction, or anything it calls, has a side effect."""
    opcode = instruction.opcode
    if opcode in _ALWAYS:
        return True
    if opcode in _COLLECTIVE:
        attributes = instruction.attributes
        if opcode in _CONSTRAINED and attributes.raw("constrain_layout") == "true":
            return True
        # A channel id means something only without SPMD partitioning; a module for several
        # partitions went through the partitioner, and the text does not say more.
        if attributes.raw("channel_id") is not None and not _is_partitioned(instruction):
            return True
    if opcode == "custom-call" and instruction.attributes.raw("custom_call_has_side_effect") == "true":
        return True
    return any(has_side_effect(inner) for _, callee in instruction.called for inner in callee)


def _is_partitioned(instruction: Instruction) -> bool:
    computation = instruction.computation
    module = computation.module if computation is not None else None
    return module is not None and int(module.attributes.raw("num_partitions") or 1) > 1
