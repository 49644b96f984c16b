"""Where a conditional became selects, as XLA's dumps of `jax.lax.cond` have it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.guess import guess_ids

PROGRAM = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %q = pred[1]{0} parameter(1)
  %sin.4.0 = f32[8]{0} sine(%p), metadata={op_name="jit(f)/sin"}
  %not.1.0 = pred[1]{0} not(%q), metadata={op_name="jit(f)/not"}
  %bitcast.3 = pred[] bitcast(%not.1.0), metadata={op_name="jit(f)/squeeze"}
  %broadcast.3 = pred[8]{0} broadcast(%bitcast.3), dimensions={}
  %add.2.0 = f32[8]{0} add(%sin.4.0, %p), metadata={op_name="jit(f)/cond/branch_1_fun/add"}
  %mul.0.0 = f32[8]{0} multiply(%p, %p), metadata={op_name="jit(f)/cond/branch_0_fun/mul"}
  %one = f32[] constant(1)
  %broadcast.2.0 = f32[8]{0} broadcast(%one), dimensions={}, metadata={op_name="jit(f)/cond"}
  %add.0.0 = f32[8]{0} add(%mul.0.0, %broadcast.2.0), metadata={op_name="jit(f)/cond/branch_0_fun/add"}
  %select.1 = f32[8]{0} select(%broadcast.3, %add.2.0, %add.0.0), metadata={op_name="jit(f)/cond"}
  ROOT %tanh.1.0 = f32[8]{0} tanh(%select.1), metadata={op_name="jit(f)/tanh"}
}
"""


def made(text: str) -> list[str]:
    module = parse_module(text)
    guess_ids(module)
    members = sorted(module.entry, key=lambda x: x.id)
    return [x.name for x in members if x.opcode not in ("bitcast", "constant", "parameter")]


def test_branches_stand_behind_the_selects_the_one_for_false_first() -> None:
    inlined = ["broadcast.3", "select.1", "mul.0.0", "broadcast.2.0", "add.0.0", "add.2.0"]
    order = made(PROGRAM)
    assert [x for x in order if x in inlined] == inlined
    assert order.index("tanh.1.0") < order.index("broadcast.3")


def test_what_no_select_chooses_was_of_a_branch_that_was_known() -> None:
    text = PROGRAM.replace(
        'select(%broadcast.3, %add.2.0, %add.0.0), metadata={op_name="jit(f)/cond"}',
        'select(%broadcast.3, %add.2.0, %add.0.0), metadata={op_name="jit(f)/select_n"}',
    )
    order = made(text)
    assert order.index("mul.0.0") < order.index("select.1")


def test_in_a_branch_a_number_does_not_tell_that_the_framework_inlined_another() -> None:
    """The same in the branch of a conditional that has remained."""
    branch = PROGRAM.partition("ENTRY ")[2].replace("jit(f)/", "jit(f)/cond/branch_0_fun/")
    main = """ENTRY %main.2 {
  %r = (f32[8]{0}, pred[1]{0}) parameter(0)
  %i = s32[] parameter(1)
  ROOT %conditional = f32[8]{0} conditional(%i, %r), branch_computations={%main}
}
"""
    start = """(f32[8]{0}, pred[1]{0}) parameter(0)
  %p = f32[8]{0} get-tuple-element(%r), index=0
  %q = pred[1]{0} get-tuple-element(%r), index=1
"""
    arguments = "%p = f32[8]{0} parameter(0)\n  %q = pred[1]{0} parameter(1)\n"
    text = "HloModule m\n\n" + branch.replace(arguments, "%r = " + start.lstrip()) + "\n" + main
    module = parse_module(text)
    guess_ids(module)
    inside = sorted(module.computations[0], key=lambda x: x.id)
    inlined = ["broadcast.3", "select.1", "mul.0.0", "broadcast.2.0", "add.0.0", "add.2.0"]
    assert [x.name for x in inside if x.name in inlined] == inlined
