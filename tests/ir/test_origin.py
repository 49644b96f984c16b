"""Which instructions of a run's input an instruction comes from."""

import gc
import tracemalloc

from hlofuse.compilation import compile
from hlofuse.ir import parse_module
from hlofuse.ir.copy import copy_module
from hlofuse.ir.names import Origin, joined, names_in, own_name
from hlofuse.reports.common.lineage import Lineage
from hlofuse.trace.provenance import final_instructions

TEXT = """HloModule m
ENTRY main {
  a = f32[8]{0} parameter(0)
  b = f32[8]{0} exponential(a)
  c = f32[8]{0} exponential(a)
  d = f32[8]{0} add(b, c)
  ROOT e = f32[8]{0} multiply(d, b)
}
"""


def test_a_run_makes_every_instruction_its_own_origin() -> None:
    module = parse_module(TEXT)
    assert {i.origin for i in module.instructions()} == {()}
    module.begin_run()
    assert all(i.origin == i.name for i in module.instructions())
    assert all(i.origin is j.origin for i, j in zip(module.entry, copy_module(module).entry, strict=True))


def test_a_replacement_stands_for_both() -> None:
    module = parse_module(TEXT)
    module.begin_run()
    b, c = module.find("b"), module.find("c")
    assert b is not None
    assert c is not None
    c.replace_all_uses_with(b)
    assert (list(names_in(b.origin)), own_name(b.origin)) == (["b", "c"], "b")
    module.entry.remove_instruction(c)
    assert final_instructions(module.instructions())["c"] is b
    assert own_name(c.clone().origin) == "c"


def test_a_join_shares_what_it_can() -> None:
    pair = joined("b", "c")
    assert joined("b", ()) == "b"
    assert joined((), "b") == "b"
    assert joined(pair, pair) is pair
    assert joined(pair, pair[1]) is pair
    deep: Origin = "x0"
    for k in range(1, 20_000):
        deep = joined(deep, f"x{k}")
    assert list(names_in(deep)) == [f"x{k}" for k in range(20_000)]
    assert own_name(deep) == "x0"


def test_a_fusion_has_the_origin_of_its_result() -> None:
    result = compile(parse_module(TEXT)).after
    (fusion,) = (i for i in result.entry if i.opcode == "fusion")
    assert list(names_in(fusion.origin)) == ["e"]
    inside = [n for i in fusion.fused_computation for n in names_in(i.origin)]
    assert sorted(inside) == ["b", "c", "d", "e"]


def test_events_carry_origins_that_say_what_kernels_hold() -> None:
    done = compile(parse_module(TEXT))
    lineage = Lineage(done.before, done.after, done.events)
    (fusion,) = (i.name for i in done.after.entry if i.opcode == "fusion")
    assert sorted(lineage.members(fusion)) == ["b", "c", "d", "e"]
    assert [lineage.kernels_of(name) for name in "bcde"] == [[fusion]] * 4
    assert (lineage.final("e"), lineage.final("b"), lineage.last_kernel("b")) == (fusion, "b", fusion)
    fused = [e for e in done.events if e.event == "fuse"]
    assert all(own_name(e.origin(1)) == "e" for e in fused)
    assert {own_name(e.origin(0)) for e in fused} == {"b", "c", "d"}
    assert all(lineage.is_same("e", e.consumer, e.origin(1)) for e in fused)
    assert {lineage.origin(name) for name in lineage.created_names()} == {"e"}


def test_an_instruction_takes_at_most_480_bytes() -> None:
    lines = [f"  x{k} = f32[8]{{0}} exponential(x{k - 1})" for k in range(1, 20_000)]
    text = "HloModule m\nENTRY main {\n  x0 = f32[8]{0} parameter(0)\n" + "\n".join(lines)
    text += "\n  ROOT end = f32[8]{0} exponential(x19999)\n}\n"
    parse_module(text)
    gc.collect()
    tracemalloc.start()
    try:
        module = parse_module(text)
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / len(module.entry) < 480
