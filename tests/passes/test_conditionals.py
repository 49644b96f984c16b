"""Conditionals give and take only what is read, as in XLA."""

from __future__ import annotations

import pytest

from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.control_flow.conditional_simplifier import ConditionalSimplifier
from hlofuse.trace import Recorder
from ..tools.module_checks import check_module

TEXT = """HloModule m

%one (a: (f32[8], f32[4], f32[])) -> (f32[8], f32[8], f32[4]) {{
  %a = (f32[8], f32[4], f32[]) parameter(0)
  %a0 = f32[8] get-tuple-element(%a), index=0
  %a1 = f32[4] get-tuple-element(%a), index=1
  %s = f32[8] custom-call(%a0), custom_call_target="work"
  ROOT %t = (f32[8], f32[8], f32[4]) tuple(%s, %s, %a1)
}}

%two (b: (f32[8], f32[4], f32[])) -> (f32[8], f32[8], f32[4]) {{
  %b = (f32[8], f32[4], f32[]) parameter(0)
  %b1 = f32[4] get-tuple-element(%b), index=1
  %k = f32[8] constant({{1, 2, 3, 4, 5, 6, 7, 8}})
  ROOT %u = (f32[8], f32[8], f32[4]) tuple(%k, %k, %b1)
}}

ENTRY %e (i: pred[], x: f32[8], y: f32[4], z: f32[]) -> {result} {{
  %i = pred[] parameter(0)
  %x = f32[8] parameter(1)
  %y = f32[4] parameter(2)
  %z = f32[] parameter(3)
  %given = (f32[8], f32[4], f32[]) tuple(%x, %y, %z)
  %w = (f32[8], f32[8], f32[4]) conditional(%i, %given, %given), true_computation=%one, false_computation=%two
  {root}
}}
"""


def simplified(result: str, root: str) -> tuple[Module, Instruction, bool]:
    module = parse_module(TEXT.format(result=result, root=root))
    changed = ConditionalSimplifier().run(module, Recorder())
    check_module(module)
    (conditional,) = (i for c in module.computations for i in c if i.opcode == "conditional")
    return module, conditional, changed


def test_what_is_read_twice_and_never_is_given_once_and_not_at_all() -> None:
    read = "%v = f32[8] get-tuple-element(%w), index=0\n  %q = f32[8] get-tuple-element(%w), index=1\n"
    module, conditional, changed = simplified("f32[8]", f"{read}  ROOT %r = f32[8] add(%v, %q)")
    assert changed
    assert [s.dimensions for s in conditional.shape.tuple_shapes] == [(8,)]
    assert {o.tuple_index for o in module.entry.root.operands} == {0}


def test_a_branch_takes_only_what_it_reads() -> None:
    module, conditional, _ = simplified("f32[4]", "ROOT %v = f32[4] get-tuple-element(%w), index=2")
    assert [len(o.shape.tuple_shapes) for o in conditional.operands[1:]] == [2, 1]
    assert module.entry.root.tuple_index == 0


@pytest.mark.parametrize("index", [0, 1, 2])
def test_the_branches_still_give_what_the_element_was(index: int) -> None:
    size = (8, 8, 4)[index]
    root = f"ROOT %v = f32[{size}] get-tuple-element(%w), index={index}"
    _, conditional, _ = simplified(f"f32[{size}]", root)
    for branch in conditional.called_computations:
        assert [s.element_count for s in branch.root.shape.tuple_shapes] == [size]


def test_a_result_that_is_read_whole_stays() -> None:
    _, conditional, _ = simplified("(f32[8], f32[8], f32[4])", "ROOT %c = (f32[8], f32[8], f32[4]) copy(%w)")
    assert len(conditional.shape.tuple_shapes) == 3
