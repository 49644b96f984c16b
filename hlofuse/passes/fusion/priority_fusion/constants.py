"""Small constants go into whatever reads them, once all else is fused (`PriorityFusion::RunImpl`)."""

from __future__ import annotations

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.launch import Launch
from hlofuse.ir.fusing import append_producer, convert_to_fusion, set_fusion_kind
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.passes.fusion.priority_fusion.legality import Legality
from hlofuse.rules.gpu_fusible import is_small_constant
from hlofuse.rules.priority_fusion.conditions import SMALL_CONSTANT
from hlofuse.trace import Recorder

_KINDS = {"loop": "kLoop", "triton": "kCustom", "custom": "kCustom", "cudnn": "kCustom", "sort": "kCustom"}


def make_fusion(instruction: Instruction, kind: str) -> None:
    """A fusion of that kind."""
    if instruction.opcode == "fusion":
        set_fusion_kind(instruction, kind)
    else:
        convert_to_fusion(instruction, kind)


def kind_of(launch: Launch) -> str:
    """The kind of a fusion that is emitted so."""
    return _KINDS.get(launch.kind, "kInput")


def fuse_constants(
    computation: Computation, model: CombinedModel, legality: Legality, recorder: Recorder
) -> bool:
    """True if there was one to fuse."""
    changed = False
    kinds: dict[Instruction, str] = {}
    for constant in [x for x in computation if is_small_constant(x)]:
        for user in list(constant.users):
            if legality.constant_refused(constant, user):
                continue
            name = user.name
            # With a constant in, the kernel has the same roots and heroes.
            kind = kinds.get(user) or kind_of(model.launch(user))
            replaced = [constant.name] if user.opcode == "fusion" else [constant.name, name]
            make_fusion(user, kind)
            append_producer(user, constant)
            kinds[user] = kind
            recorder.rewrite(
                computation.name,
                replaced,
                [user.name],
                rule=SMALL_CONSTANT.code,
                reason=SMALL_CONSTANT.title,
            )
            changed = True
    return changed
