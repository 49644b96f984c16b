"""Fusions of the kind that the pass gives them (`ChooseKind`)."""

from __future__ import annotations

from hlofuse.cost.gpu.launch import Launch
from hlofuse.ir.fusing import convert_to_fusion, set_fusion_kind
from hlofuse.ir.graph import Instruction

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
