"""What moves into loops and out of them."""

from __future__ import annotations

from pathlib import Path

from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.loop.code_motion import WhileLoopConstantSinking, WhileLoopInvariantCodeMotion
from hlofuse.trace import Recorder

LOOP = """
HloModule m

%less (s: (s32[], s32[])) -> pred[] {
  %s = (s32[], s32[]) parameter(0)
  %n = s32[] get-tuple-element(%s), index=0
  %ten = s32[] constant(10)
  ROOT %lt = pred[] compare(%n, %ten), direction=LT
}

%body (t: (s32[], s32[])) -> (s32[], s32[]) {
  %t = (s32[], s32[]) parameter(0)
  %k = s32[] get-tuple-element(%t), index=0
  %by = s32[] get-tuple-element(%t), index=1
  %more = s32[] add(%k, %by)
  ROOT %next = (s32[], s32[]) tuple(%more, %by)
}

ENTRY %e (x: s32[]) -> (s32[], s32[]) {
  %x = s32[] parameter(0)
  %step = s32[] constant(2)
  %unread = s32[] negate(%x)
  %init = (s32[], s32[]) tuple(%x, %BY%)
  ROOT %w = (s32[], s32[]) while(%init), condition=%less, body=%body
}
"""


def test_a_constant_is_made_in_the_loop_and_the_unread_stays() -> None:
    module = parse_module(LOOP.replace("%BY%", "%step"))
    assert WhileLoopConstantSinking().run(module, Recorder())
    assert [user.name for user in module.entry.parameters[0].users] == ["unread", "init"]
    assert [c.name for c in module.computations] == ["less", "e", "body.sunk"]
    more = next(i for i in module.computations[2] if i.opcode == "add")
    assert [o.opcode for o in more.operands] == ["get-tuple-element", "constant"]


def test_what_is_no_constant_stays_carried() -> None:
    module = parse_module(LOOP.replace("%BY%", "%x"))
    assert not WhileLoopConstantSinking().run(module, Recorder())
    assert [c.name for c in module.computations] == ["less", "body", "e"]


def test_what_leaves_an_inner_loop_leaves_the_outer_one_at_once() -> None:
    """XLA visits inner loops first, and a wider body begins with its parameter."""
    text = Path(__file__).with_name("nested_loops.hlo").read_text(encoding="utf-8")
    module = parse_module(text.replace("WITH", "half"))
    module.computations.reverse()  # as after passes that add computations
    assert WhileLoopInvariantCodeMotion().run(module, Recorder())
    assert [x.opcode for x in module.entry].count("multiply") == 1
    bodies = [c for c in module.computations if c.name.startswith("wide.")]
    assert len(bodies) == 4
    assert all(c.instructions[0].opcode == "parameter" for c in bodies)
    changing = parse_module(text.replace("WITH", "y.1"))
    assert not WhileLoopInvariantCodeMotion().run(changing, Recorder())
