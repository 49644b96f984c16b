"""What a call says of its origin, handed on to what is inlined (`PropagateCallMetadata`).

Mirrors `PropagateMetadataToInstruction` of `xla/hlo/transforms/propagate_call_metadata.cc`.
"""

from __future__ import annotations

from dataclasses import replace

from hlofuse.ir.attributes.metadata import OpMetadata
from hlofuse.ir.graph import Instruction, Module

_LONGEST_NAME = 1024
_CONTROL_FLOW = ("while", "conditional")


def hand_on_metadata(call: Instruction, inlined: Instruction, module: Module) -> None:
    """To `inlined` and to what that runs: the names go behind that of `call`, the frames into its frame."""
    given = call.attributes.get("metadata")
    if given is None or not (given.op_name or given.stack_frame_id):
        return
    prefix = (given.op_name or "").removesuffix("/")
    pending = [inlined]
    for x in pending:
        if x.opcode in _CONTROL_FLOW:
            pending += [y for computation in x.called_computations for y in computation]
        own = x.attributes.get("metadata") or OpMetadata()
        name = _behind(prefix, own.op_name or "")
        frame = module.stack_frames.joined(given.stack_frame_id, own.stack_frame_id)
        if (name, frame) != (own.op_name or "", own.stack_frame_id):
            metadata = replace(own, op_name=name or None, stack_frame_id=frame)
            x.attributes = x.attributes.updated(metadata=str(metadata))


def _behind(prefix: str, name: str) -> str:
    inner = name.removeprefix("/").removesuffix("/")
    if inner.startswith(prefix) or len(prefix) + len(inner) >= _LONGEST_NAME:
        return name
    return f"{prefix}/{inner}" if inner else prefix
