"""The order in which passes go through computations, guessed where no proto tells."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.ir.module import Module
from hlofuse.passes.fusion.sort_iota_fusion import SortIotaFusion
from hlofuse.pipelines.likely_ids.processing_order import likely_processing_order
from hlofuse.trace import Recorder

_SUM = "(x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"


def _sum(name: str) -> str:
    return f"%{name} {_SUM}  ROOT %add.{name} = f32[] add(%x, %y)\n}}\n"


def _body(name: str, to_apply: str = "") -> str:
    summed = f"reduce(%b, %zero), dimensions={{0}}, to_apply=%{to_apply}" if to_apply else "constant(1)"
    return f"""%{name} (p: f32[8]) -> f32[8] {{
  %b = f32[8]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %sum.{name} = f32[] {summed}
  ROOT %next.{name} = f32[8]{{0}} broadcast(%sum.{name}), dimensions={{}}
}}
"""


def _condition(name: str) -> str:
    head = f"%{name} (p: f32[8]) -> pred[] {{\n  %c = f32[8]{{0}} parameter(0)\n"
    return f"{head}  ROOT %true.{name} = pred[] constant(true)\n}}\n"


def _order(computations: str, *loops: tuple[str, str]) -> list[str]:
    return [c.name for c in likely_processing_order(_module(computations, *loops))]


def _module(computations: str, *loops: tuple[str, str]) -> Module:
    value, lines = "q", []
    for k, (body, condition) in enumerate(loops):
        lines.append(f"  %w.{k} = f32[8]{{0}} while(%{value}), condition=%{condition}, body=%{body}")
        value = f"w.{k}"
    loop_lines = "\n".join(lines)
    text = f"""HloModule m

{computations}
ENTRY %main {{
  %q = f32[8]{{0}} parameter(0)
{loop_lines}
  ROOT %end = f32[8]{{0}} negate(%{value})
}}
"""
    return parse_module(text)


def test_they_come_as_the_framework_numbered_them() -> None:
    text = _body("region_2.5") + _condition("region_3.4")
    assert _order(text, ("region_2.5", "region_3.4")) == ["region_3.4", "region_2.5", "main"]


def _calling(name: str, functions: tuple[str, ...]) -> str:
    """The body of a loop into which these functions were inlined, each of its own value."""
    lines, value = [], "b"
    for k, function in enumerate(functions):
        named = f'metadata={{op_name="jit(m)/while/body/{function}"}}'
        lines.append(f"  %f.{name}.{k} = f32[8]{{0}} sine(%{value}), {named}")
        lines.append(f"  %g.{name}.{k} = f32[8]{{0}} cosine(%f.{name}.{k})")
        value = f"g.{name}.{k}"
    inlined = "\n".join(lines)
    return f"""%{name} (p: f32[8]) -> f32[8] {{
  %b = f32[8]{{0}} parameter(0)
{inlined}
  ROOT %next.{name} = f32[8]{{0}} exponential(%{value})
}}
"""


def test_what_calls_a_function_twice_comes_behind_its_clone() -> None:
    loop = ("region_0.1", "region_1.2")
    twice = _calling("region_0.1", ("jit(f)/sin", "jit(f)/sin")) + _condition("region_1.2")
    assert _order(twice, loop) == ["region_1.2", "region_0.1", "main"]
    others = _calling("region_0.1", ("jit(f)/sin", "jit(g)/sin")) + _condition("region_1.2")
    assert _order(others, loop) == ["region_0.1", "region_1.2", "main"]


def test_the_first_of_several_keeps_a_function_for_itself() -> None:
    text = _calling("region_0.1", ("jit(f)/sin",)) + _condition("region_1.2")
    text += _calling("region_2.3", ("jit(f)/sin",)) + _condition("region_3.4")
    found = _order(text, ("region_0.1", "region_1.2"), ("region_2.3", "region_3.4"))
    assert found == ["region_0.1", "region_1.2", "region_3.4", "region_2.3", "main"]


def test_a_loop_that_a_pass_makes_has_its_condition_first() -> None:
    text = _body("while_body") + _condition("while_cond")
    assert _order(text, ("while_body", "while_cond")) == ["while_cond", "while_body", "main"]


def test_what_calls_a_clone_comes_behind_it() -> None:
    """What both bodies had called was cloned for the second one."""
    text = _sum("region_0.1") + _body("region_2.5", "region_0.1") + _condition("region_3.6")
    text += _sum("region_0.1.clone") + _body("region_1.3", "region_0.1.clone") + _condition("region_4.4")
    found = _order(text, ("region_2.5", "region_3.6"), ("region_1.3", "region_4.4"))
    assert [x for x in found if "_0" not in x] == [
        "region_4.4",
        "region_2.5",
        "region_3.6",
        "region_1.3",
        "main",
    ]
    assert found.index("region_0.1.clone") == found.index("region_1.3") - 1


def test_clones_of_one_computation_are_made_as_they_are_numbered() -> None:
    text = _sum("region_0.1.clone.1") + _body("region_2.5", "region_0.1.clone.1") + _condition("region_3.6")
    text += _sum("region_0.1.clone") + _body("region_1.3", "region_0.1.clone") + _condition("region_4.4")
    found = _order(text, ("region_2.5", "region_3.6"), ("region_1.3", "region_4.4"))
    assert found[-4:] == ["region_1.3", "region_0.1.clone.1", "region_2.5", "main"]


def test_of_a_loop_cloned_whole_the_condition_was_made_first() -> None:
    text = _body("region_1.3.clone") + _condition("region_2.4.clone")
    assert _order(text, ("region_1.3.clone", "region_2.4.clone"))[0] == "region_2.4.clone"


def test_what_reduces_may_be_cloned_once_more() -> None:
    """Behind all clones of FlattenCallGraph, for one caller after the other as that left them."""
    text = _sum("region_0.1.clone.1") + _body("region_2.5", "region_0.1.clone.1") + _condition("region_3.6")
    text += _sum("region_4.2") + _sum("region_4.2.clone") + _body("region_5.7", "region_4.2.clone")
    text += _condition("region_6.8")
    found = _order(text, ("region_2.5", "region_3.6"), ("region_5.7", "region_6.8"))
    assert [x for x in found if not x.startswith(("region_0", "region_4"))][-3:] == [
        "region_5.7",
        "region_2.5",
        "main",
    ]
    text = _sum("region_0.1.clone.clone") + _body("region_2.5", "region_0.1.clone.clone")
    text += _sum("region_0.1.clone.1.clone") + _body("region_1.3", "region_0.1.clone.1.clone")
    text += _condition("region_3.6") + _condition("region_4.4")
    found = _order(text, ("region_2.5", "region_3.6"), ("region_1.3", "region_4.4"))
    assert [x for x in found if x in ("region_1.3", "region_2.5")] == ["region_2.5", "region_1.3"]


def test_a_function_of_the_framework_has_the_place_of_its_call() -> None:
    """Only the program's own places tell one function from another."""
    loop = ("region_0.1", "region_1.2")
    calls = _calling("region_0.1", ("jit(f)/sin", "jit(f)/sin", "jit(f)/cos"))
    for place in (1, 2):
        calls = calls.replace('sin"}', f'sin" stack_frame_id={place}}}', 1)
    assert _order(calls + _condition("region_1.2"), loop) == ["region_1.2", "region_0.1", "main"]


def test_the_elements_of_a_result_connect_a_function() -> None:
    text = """%region_0.1 (p: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  %c.1 = (f32[8]{0}, s8[8]{0}) custom-call(%b), custom_call_target="x", metadata={op_name="PATH/x"}
  %c.2 = (f32[8]{0}, s8[8]{0}) custom-call(%c.1#0), custom_call_target="x", metadata={op_name="PATH/x"}
  %s.1 = f32[8]{0} sine(%c.2#0), metadata={op_name="PATH/sin"}
  ROOT %next.1 = f32[8]{0} exponential(%s.1)
}
""".replace("PATH", "jit(m)/while/body/jit(f)")
    found = _order(text + _condition("region_1.2"), ("region_0.1", "region_1.2"))
    assert found == ["region_0.1", "region_1.2", "main"]


_WORDS = """%region_0.1 (p: u32[8]) -> u32[8] {
  %b = u32[8]{0} parameter(0)
  %parity = u32[] constant(PARITY)
  %spread = u32[8]{0} broadcast(%parity), dimensions={}
  %x.1 = u32[8]{0} xor(%b, %spread), metadata={op_name="jit(m)/while/body/jit(f)/xor"}
  %x.2 = u32[8]{0} xor(%b, %x.1), metadata={op_name="jit(m)/while/body/jit(f)/xor"}
  %x.3 = u32[8]{0} xor(%x.2, %spread), metadata={op_name="jit(m)/while/body/jit(f)/xor"}
  ROOT %n.1 = u32[8]{0} not(%x.3), metadata={op_name="jit(m)/while/body/jit(f)/not"}
}
"""


def test_a_function_that_generates_random_bits_twice_calls_another_twice() -> None:
    """Nothing but the third words of the keys tells of that one."""
    text = _WORDS + _condition("region_1.2")
    loop = ("region_0.1", "region_1.2")
    assert _order(text.replace("PARITY", "466688986"), loop) == ["region_1.2", "region_0.1", "main"]
    assert _order(text.replace("PARITY", "466688987"), loop) == ["region_0.1", "region_1.2", "main"]


def test_a_clone_of_flattening_comes_when_what_it_is_a_clone_of_is_visited() -> None:
    """The body had been moved behind its condition, and so does its clone not come ahead of that."""
    text = _sum("region_0.1") + _sum("region_0.1.clone") + _sum("region_0.1.clone.clone")
    text += _body("region_2.5", "region_0.1") + _condition("region_3.6")
    text += _body("region_7.9", "region_0.1.clone") + _condition("region_8.10")
    text += _body("region_7.9.clone", "region_0.1.clone.clone") + _condition("region_8.10.clone")
    found = _order(
        text,
        ("region_2.5", "region_3.6"),
        ("region_7.9", "region_8.10"),
        ("region_7.9.clone", "region_8.10.clone"),
    )
    assert [x for x in found if "_0" not in x] == [
        "region_2.5",
        "region_3.6",
        "region_8.10",
        "region_7.9",
        "region_7.9.clone",
        "region_8.10.clone",
        "main",
    ]


def test_what_a_clone_calls_is_cloned_with_it() -> None:
    inner = (
        _body("region_1.2")
        + _condition("region_3.4")
        + _body("region_1.2.clone")
        + _condition("region_3.4.clone")
    )
    loop = "%inner = f32[8]{0} while(%b), condition=%region_3.4, body=%region_1.2\n  ROOT %next"
    outer = _body("region_5.6").replace("ROOT %next", loop) + _condition("region_7.8")
    again = loop.replace("inner", "again").replace(".4", ".4.clone").replace(".2", ".2.clone")
    outer += _body("region_5.6.clone").replace("ROOT %next", again) + _condition("region_7.8.clone")
    found = _order(inner + outer, ("region_5.6", "region_7.8"), ("region_5.6.clone", "region_7.8.clone"))
    assert found == [
        "region_1.2",
        "region_3.4",
        "region_5.6",
        "region_7.8",
        "region_1.2.clone",
        "region_3.4.clone",
        "region_5.6.clone",
        "region_7.8.clone",
        "main",
    ]


def _with_fusion(name: str, fusion: str) -> str:
    """A body that calls a fusion."""
    fused = f"%{fusion} (x: f32[8]) -> f32[8] {{\n  %x = f32[8]{{0}} parameter(0)\n"
    fused += f"  ROOT %fused.{name} = f32[8]{{0}} negate(%x)\n}}\n"
    call = f"%fusion.{name} = f32[8]{{0}} fusion(%b), kind=kCustom, calls=%{fusion}\n  ROOT %next"
    return fused + _body(name).replace("ROOT %next", call)


def test_softmax_fusions_are_made_from_the_last_one_to_the_first() -> None:
    loops = ("region_0.1", "region_1.2"), ("region_2.3", "region_3.4")
    for kind, last in (("gemm_fusion", "region_2.3"), ("triton_softmax", "region_0.1")):
        text = _with_fusion("region_0.1", f"{kind}_computation") + _condition("region_1.2")
        text += _with_fusion("region_2.3", f"{kind}_computation.1") + _condition("region_3.4")
        assert _order(text, *loops)[-2:] == [last, "main"]


def test_a_product_that_is_split_has_its_own_sum() -> None:
    """Made ahead of the fusions of products; a reduction of the program stays where it is."""
    loops = ("region_0.1", "region_1.2"), ("region_2.3", "region_3.4")
    text = _condition("region_1.2") + _condition("region_3.4") + _sum("dot.7.reduce_sub_computation")
    parts = "%fusion.region_0.1, %zero"
    summed = f"%parts = f32[] reduce({parts}), dimensions={{0}}, to_apply=%dot.7.reduce_sub_computation"
    body = _with_fusion("region_0.1", "gemm_fusion_dot.7_computation")
    text += body.replace("  ROOT %next", f"  {summed}\n  ROOT %next")
    text += _with_fusion("region_2.3", "gemm_fusion_dot.8_computation")
    assert _order(text, *loops)[-3:] == ["region_2.3", "region_0.1", "main"]


def test_sorts_of_indices_become_fusions_ahead_of_all_others() -> None:
    sort = """  %index = s32[8]{0} iota(), iota_dimension=0
  %sorted = (f32[8]{0}, s32[8]{0}) sort(%b, %index), dimensions={0}, to_apply=%less
  ROOT %next"""
    less = """%less (x: f32[], y: f32[], v: s32[], w: s32[]) -> pred[] {
  %x.1 = f32[] parameter(0)
  %y.1 = f32[] parameter(1)
  %v.1 = s32[] parameter(2)
  %w.1 = s32[] parameter(3)
  ROOT %is = pred[] compare(%x.1, %y.1), direction=LT
}
"""
    text = less + _body("region_0.1").replace("  ROOT %next", sort) + _condition("region_1.2")
    text += _body("region_2.3") + _condition("region_3.4")
    module = _module(text, ("region_0.1", "region_1.2"), ("region_2.3", "region_3.4"))
    module.processing_order = likely_processing_order(module)
    assert SortIotaFusion().run(module, Recorder())
    assert [c.name for c in module.processing_order][-2:] == ["region_0.1", "main"]


def test_loops_within_loops_may_be_many() -> None:
    depth = 1500
    bodies = [_body("region_0.0")]
    for k in range(depth):
        bodies.append(
            f"%region_{k + 1}.{k + 1} (p: f32[8]) -> f32[8] {{\n  %b = f32[8]{{0}} parameter(0)\n"
            f"  ROOT %w.b{k} = f32[8]{{0}} call(%b), to_apply=%region_{k}.{k}\n}}\n"
        )
    order = _order("".join(bodies) + _condition("cond.9"), (f"region_{depth}.{depth}", "cond.9"))
    assert order[0] == "region_0.0"
    assert order[-2:] == [f"region_{depth}.{depth}", "main"]
