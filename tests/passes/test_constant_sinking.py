"""What moves into loops and out of them."""

from __future__ import annotations

from pathlib import Path

from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.loop.code_motion import WhileLoopConstantSinking, WhileLoopInvariantCodeMotion
from hlofuse.trace import Recorder
from ..fixtures import companion_texts

TEXTS = companion_texts(__file__)

LOOP = TEXTS["loop"]


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
