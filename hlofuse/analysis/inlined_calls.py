"""Which calls are gone before fusion (`CallInliner::ShouldInline` in `xla/service/call_inliner.cc`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction

_LATER = frozenset({"false", "xla_late"})


def is_inlined(instruction: Instruction) -> bool:
    """A call that the program does not ask to keep, and that is no task of the CPU's threads."""
    if instruction.opcode != "call" or "backend_config" in instruction.attributes:
        return False
    said = instruction.attributes.get("frontend_attributes") or {}
    return said.get("inlineable") not in _LATER
