"""Rules that no module XLA:CPU lets through to its fusion passes reaches: asked on graphs made for them."""

from __future__ import annotations

from typing import ClassVar

from hlofuse.ir import parse_module
from hlofuse.ir.graph import Module
from hlofuse.passes import make_pass
from hlofuse.passes.base import Pass
from hlofuse.passes.fusion.instruction_fusion import FusionDriver, InstructionFusion
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.trace import Event, Recorder
from ..fixtures import companion_texts
from ..tools.module_checks import verify_module

TEXTS = companion_texts(__file__)


def run(which: Pass | str, text: str) -> tuple[Module, list[Event]]:
    module = parse_module(text)
    recorder = Recorder()
    recorder.begin_pass("test")
    created = make_pass(which, "cpu", RELEASE) if isinstance(which, str) else which
    created.run(module, recorder)
    assert verify_module(module) == []
    return module, recorder.events


def codes(events: list[Event]) -> list[str]:
    return [e.rule or "" for e in events]


class _Base(FusionDriver):
    """The base class as it is: every pair nothing speaks against is fused."""


class Plain(InstructionFusion):
    driver: ClassVar[type[FusionDriver]] = _Base


CHAIN = TEXTS["chain"]


def test_if030_the_base_class_fuses_what_nothing_speaks_against() -> None:
    module, events = run(Plain(release=RELEASE, may_duplicate=False), CHAIN)
    assert codes([e for e in events if e.event == "fuse"]) == ["IF030"] * 3
    assert [i.opcode for i in module.entry] == ["parameter", "fusion"]


def test_if003_the_result_is_not_fused_into_a_user() -> None:
    text = TEXTS["if003_result_fused"]
    _, events = run("fusion", text)
    assert [(e.rule, e.producer, e.consumer) for e in events if e.rule == "IF003"] == [("IF003", "n", "s")]


IN_PLACE = """HloModule m
ENTRY e {{
  p = f32[8,8] parameter(0)
  i = s32[] parameter(1)
  n = f32[8,8] negate(p)
  ROOT d = f32[8,8] dynamic-update-slice(n, {update}, i, i)
}}
"""


def test_if010_the_buffer_twice_among_the_operands() -> None:
    assert "IF010" in codes(run("fusion", IN_PLACE.format(update="n"))[1])
    assert "IF010" not in codes(run("fusion", IN_PLACE.format(update="p"))[1])


def test_if011_a_producer_fusion_of_two_data_movements() -> None:
    text = TEXTS["if011_producer_fusion"]
    assert "IF011" in codes(run(Plain(release=RELEASE), text)[1])
    one = text.replace("  r = f32[8,8] reverse(p), dimensions={0}\n", "").replace("slice(r)", "slice(p)")
    assert "IF011" not in codes(run(Plain(release=RELEASE), one)[1])


def test_cpu011_a_fusion_in_the_input_stays_a_producer() -> None:
    text = TEXTS["cpu011_fusion_input"]
    assert "CPU011" in codes(run("fusion", text)[1])


SIBLINGS = """HloModule m
f {{
  p = {shape} parameter(0)
  ROOT n = {shape} negate(p)
}}
g {{
  p = {shape} parameter(0)
  ROOT n = {shape} sine(p)
}}
ENTRY e {{
  p = {shape} parameter(0)
  a = {shape} fusion(p), kind=kLoop, calls=f
  b = {shape} fusion(p), kind=kLoop, calls=g
  ROOT t = ({result}) tuple({elements})
}}
"""


def siblings(shape: str = "f32[8]", elements: str = "a, b") -> list[str]:
    result = ", ".join([shape] * len(elements.split(",")))
    return codes(
        run("cpu_multi_output_fusion", SIBLINGS.format(shape=shape, result=result, elements=elements))[1]
    )


def test_siblings_become_one_kernel() -> None:
    assert "MO001" in siblings()


def test_mo002_an_empty_array_is_no_gain() -> None:
    assert "MO002" in siblings("f32[0]")
    assert "MO001" not in siblings("f32[0]")


def test_mo012_dead_kernels_are_left_to_dce() -> None:
    assert "MO012" in siblings(elements="a")
    assert "MO001" not in siblings(elements="a")


def test_mo013_results_taken_as_a_whole() -> None:
    text = TEXTS["mo013_results_taken"]
    assert "MO013" in codes(run("cpu_multi_output_fusion", text)[1])


def test_mo022_a_constant_is_no_candidate() -> None:
    from hlofuse.rules.multi_output_fusion import is_constant

    module = parse_module("HloModule m\nENTRY e {\n  ROOT c = f32[2] constant({1, 2})\n}\n")
    verdict = is_constant(module.entry.root)
    assert verdict is not None
    assert verdict.rule.code == "MO022"
