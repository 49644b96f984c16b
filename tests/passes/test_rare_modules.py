"""Modules that no earlier pass of XLA would leave, but a user may write or cut out."""

from __future__ import annotations

import pytest

from hlofuse.compilation import compile
from hlofuse.ir import parse_module, print_module
from hlofuse.ir.errors import HlofuseError
from ..fixtures import companion_texts

TEXTS = companion_texts(__file__)

CONTROL = TEXTS["control"]

ROOT_WITH_USER = TEXTS["root_with_user"]

PARAMETER_AS_ROOT = TEXTS["parameter_as_root"]

UNUSED_PARAMETER = TEXTS["unused_parameter"]

TARGETS = [("cpu", None), ("gpu", "h100_sxm"), ("gpu-legacy", "a100_sxm_40")]


def test_priority_fusion_stops_where_xla_stops_at_control_dependencies() -> None:
    with pytest.raises(HlofuseError, match="cannot remove instruction: a has been fused"):
        compile(parse_module(CONTROL), "gpu", device="h100_sxm")


def test_cpu_instruction_fusion_drops_control_dependencies() -> None:
    after = compile(parse_module(CONTROL), "cpu").after
    assert [x.opcode for x in after.entry.post_order()] == ["parameter", "fusion", "custom-call"]


@pytest.mark.parametrize(("target", "device"), TARGETS)
@pytest.mark.parametrize("text", [ROOT_WITH_USER, PARAMETER_AS_ROOT, UNUSED_PARAMETER])
def test_it_is_replayed_and_can_be_read_again(text: str, target: str, device: str | None) -> None:
    after = print_module(compile(parse_module(text), target, device=device).after)
    assert print_module(parse_module(after)) == after
