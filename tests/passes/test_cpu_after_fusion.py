"""XLA:CPU's passes after fusion, rule by rule, with XLA's answers."""

from __future__ import annotations

import pytest

from hlofuse.ir.graph import Module
from hlofuse.ir.text.grammar import parse_shape
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.control_flow.annotations import OptimizationBarrierExpander
from hlofuse.passes.control_flow.call_graph import PropagateCallMetadata
from hlofuse.passes.copy_insertion.buffer_alias import OptimizeInputOutputBufferAlias
from hlofuse.passes.cpu.calls import SmallWhileLoopHoisting, parallel_tasks, partition_counts
from hlofuse.trace import Recorder
from ..fixtures import companion_texts
from ..tools.module_checks import verify_module

TEXTS = companion_texts(__file__)

SMALL = 'frontend_attributes={xla_cpu_small_call="true"}'


def loop(body: str, inner: str = "", size: int = 4, attributes: str = "") -> Module:
    """`x` goes through `body` as long as the number in the state is below ten."""
    state = f"(s32[], f32[{size}]{{0}})"
    return parse_module(f"""HloModule m
{inner}
cond {{
  c = {state} parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(10)
  ROOT below = pred[] compare(i, n), direction=LT
}}

body {{
  b = {state} parameter(0)
  j = s32[] get-tuple-element(b), index=0
  x = f32[{size}]{{0}} get-tuple-element(b), index=1
  y = f32[{size}]{{0}} {body}
  ROOT r = {state} tuple(j, y)
}}

ENTRY e {{
  k = s32[] parameter(0)
  z = f32[{size}]{{0}} parameter(1)
  t = {state} tuple(k, z)
  w = {state} while(t), condition=cond, body=body{attributes}
  ROOT out = f32[{size}]{{0}} get-tuple-element(w), index=1
}}
""")


def is_hoisted(module: Module, byte_threshold: int = 1024) -> bool:
    changed = SmallWhileLoopHoisting(byte_threshold).run(module, Recorder())
    assert verify_module(module) == []
    assert changed == any(x.opcode == "call" for x in module.entry)
    return changed


# ---------------------------------------------------------------- small-while-loop-hoisting


def test_a_small_loop_becomes_a_call_of_a_computation_that_holds_it() -> None:
    module = loop("sine(x)", attributes=', metadata={op_name="jit(f)/while"}')
    assert is_hoisted(module)
    call = module.find("call")
    assert call is not None
    assert call.attributes.raw("frontend_attributes") == '{xla_cpu_small_call="true"}'
    assert call.op_name == "jit(f)/while"
    callee = call.called_computations[0]
    assert callee.name == "w_computation"
    assert callee.root.opcode == "while"
    assert [c.name for c in callee.root.called_computations] == ["body", "cond"]
    assert module.find("w") is None


def test_the_bytes_of_one_iteration_decide() -> None:
    # The sine reads and writes the array, the tuple writes two pointers, the comparison reads two numbers
    # and writes a truth value.
    accessed = 2 * 16 + 2 * 8 + (4 + 4 + 1)
    assert is_hoisted(loop("sine(x)"), accessed + 1)
    assert not is_hoisted(loop("sine(x)"), accessed)


@pytest.mark.parametrize(
    "operation",
    [
        'custom-call(x), custom_call_target="f"',
        "all-reduce(x), replica_groups={}, to_apply=sum",
        "sort(x), dimensions={0}, to_apply=below_",
        "fusion(x), kind=kCustom, calls=fused",
    ],
)
def test_what_one_kernel_cannot_hold_keeps_the_loop(operation: str) -> None:
    assert not is_hoisted(loop(operation, TEXTS["computations_of_operations"]))


def test_what_a_call_in_the_loop_holds_counts_too() -> None:
    inner = """
callee {
  p = f32[4]{0} parameter(0)
  ROOT s = f32[4]{0} custom-call(p), custom_call_target="f"
}
"""
    assert not is_hoisted(loop("call(x), to_apply=callee", inner))
    assert is_hoisted(
        loop("call(x), to_apply=callee", inner.replace('custom-call(p), custom_call_target="f"', "negate(p)"))
    )


def test_a_loop_in_a_small_loop_is_a_call_in_a_call() -> None:
    module = loop("while(x), condition=cond2, body=body2", TEXTS["loop_inside"])
    assert is_hoisted(module)
    calls = [x for x in module.instructions() if x.opcode == "call"]
    assert [x.computation.name for x in calls if x.computation is not None] == ["body", "e"]
    assert all(SMALL in str(x.attributes) for x in calls)


# ---------------------------------------------------------------- tasks of threads


@pytest.mark.parametrize(
    ("shape", "target", "counts"),
    [
        ("f32[1024,1024]{1,0}", 2, [2]),
        ("f32[3,1024]{1,0}", 8, [3, 2]),
        ("f32[1024,3]{0,1}", 8, [3, 2]),
        ("f32[2,2]{1,0}", 16, [2, 2]),
        ("f32[1,64]{1,0}", 4, [1, 4]),
        ("f32[]", 4, []),
    ],
)
def test_outer_dimensions_are_divided(shape: str, target: int, counts: list[int]) -> None:
    assert partition_counts(parse_shape(shape), target) == counts


LARGE = TEXTS["large"]


def test_a_large_kernel_is_divided_but_no_update_in_place_and_no_library_call() -> None:
    tasks = {x.name: parallel_tasks(x, 8) for x in parse_module(LARGE).entry}
    # Bound by memory: as many tasks as the root of the number of threads, rounded up.
    assert tasks["divided"] == 3
    assert tasks["in_place"] == tasks["product"] == 1


# ---------------------------------------------------------------- the others


def test_donated_arguments_give_their_memory_to_results_of_their_size() -> None:
    module = parse_module(
        """HloModule m, buffer_donor={ (0, {}), (1, {}), (3, {}), (4, {}) }, """
        """entry_computation_layout={(f32[8]{0}, f32[16]{0}, f32[8]{0}, s32[8]{0}, f32[3]{0})->"""
        """(f32[8]{0}, f32[16]{0}, f32[8]{0}, s32[8]{0})}

ENTRY e {
  a = f32[8]{0} parameter(0)
  b = f32[16]{0} parameter(1)
  c = f32[8]{0} parameter(2)
  d = s32[8]{0} parameter(3)
  p = f32[3]{0} parameter(4)
  b1 = f32[16]{0} negate(b)
  d1 = s32[8]{0} negate(d)
  ROOT t = (f32[8]{0}, f32[16]{0}, f32[8]{0}, s32[8]{0}) tuple(c, b1, a, d1)
}
"""
    )
    assert OptimizeInputOutputBufferAlias().run(module, Recorder())
    aliases = "{ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (3, {}, may-alias) }"
    assert module.attributes.raw("input_output_alias") == aliases
    assert module.attributes.raw("buffer_donor") == "{ (4, {}) }"
    assert list(module.attributes.raw_items)[:2] == ["input_output_alias", "buffer_donor"]
    assert not OptimizeInputOutputBufferAlias().run(module, Recorder())


def test_a_barrier_gives_way_to_its_operand_and_hands_its_order_on() -> None:
    module = parse_module(TEXTS["barrier_gives_way"])
    assert OptimizationBarrierExpander().run(module, Recorder())
    assert [o.name for o in module.entry.root.operands] == ["a", "first"]
    after = module.find("a")
    assert after is not None
    assert [p.name for p in after.control_predecessors] == ["first"]
    assert verify_module(module) == []
    assert not OptimizationBarrierExpander().run(module, Recorder())


def test_what_a_call_runs_carries_the_name_of_the_call() -> None:
    module = loop('sine(x), metadata={op_name="sin"}', attributes=', metadata={op_name="jit(f)/while"}')
    assert is_hoisted(module)
    assert PropagateCallMetadata().run(module, Recorder())
    sine = module.find("y")
    assert sine is not None
    assert sine.op_name == "jit(f)/while/sin"
    assert not PropagateCallMetadata().run(module, Recorder())


# ---------------------------------------------------------------- simplification_after_layout_assignment


@pytest.mark.parametrize(
    ("form", "result"),
    [
        ("64,4 8,4 {size=1}", "bitcast"),
        ("64,4 8,4 {size=1 rhs_dilate=3}", "bitcast"),
        ("32,4 8,4 {size=1 stride=2}", "convolution"),
        ("66,4 8,4 {size=1 pad=1_1}", "convolution"),
        ("127,4 8,4 {size=1 lhs_dilate=2}", "convolution"),
        ("64,4 4,4 {size=1}, feature_group_count=2", "convolution"),
    ],
)
def test_a_filter_of_one_element_makes_a_matrix_product(form: str, result: str) -> None:
    sizes, filters, window = form.split(" ", 2)
    module = parse_module(f"""HloModule m
ENTRY e {{
  x = f32[2,64,8]{{2,1,0}} parameter(0)
  w = f32[1,{filters}]{{2,1,0}} parameter(1)
  ROOT c = f32[2,{sizes}]{{2,1,0}} convolution(x, w), window={window}, dim_labels=b0f_0io->b0f
}}
""")
    AlgebraicSimplifier(Options(layout_sensitive=True)).run(module, Recorder())
    assert verify_module(module) == []
    assert module.entry.root.opcode == result
