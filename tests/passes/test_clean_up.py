"""CSE, DCE and TupleSimplifier, which later targets run after every fusion pass."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.ir.graph import Module
from hlofuse.passes import make_pass
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.trace import Event, Recorder
from ..fixtures import companion_texts
from ..tools.module_checks import verify_module

TEXTS = companion_texts(__file__)


def run(which: str, text: str) -> tuple[Module, list[Event], bool]:
    module = parse_module(text)
    recorder = Recorder()
    recorder.begin_pass(which)
    changed = make_pass(which, "cpu", RELEASE).run(module, recorder)
    assert verify_module(module) == []
    assert changed == bool(recorder.events)
    return module, recorder.events, changed


def codes(events: list[Event]) -> set[str]:
    return {e.rule or "" for e in events}


FUSION = """HloModule m
f {{
  p = f32[8] parameter(0)
{body}
}}
ENTRY e {{
  p = f32[8] parameter(0)
  ROOT a = {shape} fusion(p), kind=kLoop, calls=f
}}
"""


def fusion(body: str, shape: str = "f32[8]") -> str:
    return FUSION.format(body="\n".join(f"  {line}" for line in body.strip().splitlines()), shape=shape)


def opcodes(module: Module) -> list[str]:
    return sorted(i.opcode for i in module.entry.root.fused_computation)


def test_equal_constants_and_operations_are_merged() -> None:
    module, events, _ = run(
        "cse",
        fusion("""
c = f32[] constant(2)
b = f32[8] broadcast(c), dimensions={}
d = f32[] constant(2)
g = f32[8] broadcast(d), dimensions={}
x = f32[8] multiply(p, b)
y = f32[8] multiply(g, p)
ROOT r = f32[8] subtract(x, y)
"""),
    )
    assert codes(events) == {"CS001", "CS002"}
    assert opcodes(module) == ["broadcast", "constant", "multiply", "parameter", "subtract"]


def test_order_of_operands_counts_where_it_matters() -> None:
    text = """
x = f32[8] subtract(p, p)
y = f32[8] divide(p, x)
z = f32[8] divide(x, p)
ROOT r = f32[8] add(y, z)
"""
    assert not run("cse", fusion(text))[2]


def test_attributes_shapes_and_called_computations_count() -> None:
    text = """
a = f32[4] slice(p), slice={[0:4]}
b = f32[4] slice(p), slice={[4:8]}
c = f16[8] convert(p)
d = bf16[8] convert(p)
ROOT r = (f32[4], f32[4], f16[8], bf16[8]) tuple(a, b, c, d)
"""
    assert not run("cse", fusion(text, "(f32[4], f32[4], f16[8], bf16[8])"))[2]


def test_iotas_count_as_equal_operands() -> None:
    module, events, _ = run(
        "cse",
        fusion("""
i = f32[8] iota(), iota_dimension=0
j = f32[8] iota(), iota_dimension=0
ROOT r = f32[8] power(i, j)
"""),
    )
    assert codes(events) == {"CS003"}
    assert opcodes(module) == ["iota", "parameter", "power"]


def test_outside_fusions_nothing_is_touched() -> None:
    text = TEXTS["outside_fusions_nothing"]
    assert not run("cse", text)[2]
    assert run("cse(only_fusion_computations=false)", text)[2]


MULTI_OUTPUT = TEXTS["multi_output"]


def test_equal_outputs_then_unused_ones() -> None:
    module = parse_module(MULTI_OUTPUT)
    recorder = Recorder()
    make_pass("cse", "cpu", RELEASE).run(module, recorder)
    assert codes(recorder.events) == {"CS002", "CS004"}
    assert [module.find(n).tuple_index for n in ("g", "h")] == [0, 0]  # type: ignore[union-attr]
    recorder = Recorder()
    make_pass("dce", "cpu", RELEASE).run(module, recorder)
    assert codes(recorder.events) >= {"DC002"}
    assert verify_module(module) == []
    # One result is left: no tuple, and the producer that only fed the other is gone with its operand.
    a = module.find("a")
    assert a is not None
    assert a.shape.is_array
    assert [o.name for o in a.operands] == ["one"]
    assert module.find("n") is None
    assert module.entry.root.operands == [a, a]


def test_dead_instructions_and_computations_go() -> None:
    text = TEXTS["dead_instructions_computations"]
    module, events, _ = run("dce", text)
    assert codes(events) == {"DC001", "DC004"}
    assert [i.name for i in module.entry] == ["p", "k", "r"]
    assert [c.name for c in module.computations] == ["e"]


def test_an_unread_parameter_of_a_fusion_goes() -> None:
    text = TEXTS["unread_parameter_fusion"]
    module, events, _ = run("dce", text)
    assert codes(events) == {"DC003"}
    assert [o.name for o in module.entry.root.operands] == ["two"]
    assert len(module.entry.parameters) == 2


def test_tuples_taken_apart_at_once_vanish() -> None:
    text = TEXTS["tuples_taken_apart"]
    module, events, _ = run("tuple-simplifier", text)
    assert codes(events) == {"TS001", "TS002"}
    assert sorted(i.name for i in module.entry) == ["a", "h", "p", "r"]


def test_a_tuple_in_another_order_stays() -> None:
    text = TEXTS["tuple_another_order"]
    assert not run("tuple-simplifier", text)[2]
