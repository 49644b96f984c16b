"""Bodies of loops over a batch, which choose by a predicate what goes around, as XLA's ids have it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.ir.computation import Computation
from hlofuse.pipelines.calls_in_names import is_of_call
from hlofuse.pipelines.likely_ids.front_end_names import constants_of_clone
from hlofuse.pipelines.likely_ids.program_order import in_program_order


def body() -> Computation:
    """Of a loop in the body of another one."""
    around = 'metadata={op_name="jit(f)/while/body/eval_jaxpr'
    state = "(f32[8]{0}, f32[8]{0}, pred[8]{0})"
    text = f"""HloModule m

%condition {{
  %s = {state} parameter(0)
  ROOT %more = pred[] constant(true)
}}

%region_1.2.sunk.clone {{
  %s.1 = {state} parameter(0)
  %x = f32[8]{{0}} get-tuple-element(%s.1), index=0
  %y = f32[8]{{0}} get-tuple-element(%s.1), index=1
  %m = pred[8]{{0}} get-tuple-element(%s.1), index=2
  %constant.3.0 = f32[] constant(2), {around}"}}
  %broadcast.3.0 = f32[8]{{0}} broadcast(%constant.3.0), dimensions={{}}, {around}"}}
  %mul.4.0 = f32[8]{{0}} multiply(%x, %broadcast.3.0), {around}/vmap()/while/body/mul"}}
  %while.5.0 = f32[8]{{0}} select(%m, %mul.4.0, %x), {around}/vmap()/while"}}
  %constant.7..sunk.1.0 = f32[] constant(5)
  %tile.2.0 = f32[8]{{0}} broadcast(%constant.7..sunk.1.0), dimensions={{}}, {around}/vmap()/while/body/e"}}
  %add.4.0 = f32[8]{{0}} add(%y, %tile.2.0), {around}/vmap()/while/body/add"}}
  %while.6.0 = f32[8]{{0}} select(%m, %add.4.0, %y), {around}/vmap()/while"}}
  ROOT %tuple.1.0 = {state} tuple(%while.5.0, %while.6.0, %m)
}}

ENTRY %main {{
  %p = {state} parameter(0)
  ROOT %w = {state} while(%p), condition=%condition, body=%region_1.2.sunk.clone, {around}/vmap()/while"}}
}}
"""
    return next(c for c in parse_module(text).computations if ".sunk" in c.name)


def test_what_is_chosen_bears_the_name_of_the_loop_and_constants_that_of_a_call_around() -> None:
    computation = body()
    assert {x.name for x in constants_of_clone(computation)} == {"constant.3.0", "broadcast.3.0"}


def test_what_is_chosen_was_not_called() -> None:
    called = {x.name for x in body() if is_of_call(x)}
    assert called.isdisjoint({"while.5.0", "while.6.0"})


def test_the_choice_is_made_behind_everything_else_and_what_was_put_into_the_loop_is_no_number() -> None:
    own = [x for x in body().post_order() if x.opcode not in ("parameter", "get-tuple-element", "constant")]
    assert [x.name for x in in_program_order(own)] == [
        "broadcast.3.0",
        "mul.4.0",
        "tile.2.0",
        "add.4.0",
        "while.5.0",
        "while.6.0",
        "tuple.1.0",
    ]
