"""The slice of what a scatter with one index updates, as XLA's dumps of `x.at[1:].add(y)` have it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.front_end_names import named_by_front_end
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_in_turn import makers_in_turn
from hlofuse.pipelines.likely_ids.simplification_rounds import in_rounds

PROGRAM = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %q = f32[7]{0} parameter(1)
  %one = s32[] constant(1)
  %slice.3.0 = f32[7]{0} slice(%p), slice={[1:8]}
  %add.9.0 = f32[7]{0} add(%slice.3.0, %q), metadata={op_name="jit(f)/add"}
  ROOT %dynamic-update-slice.1.0 = f32[8]{0} dynamic-update-slice(%p, %add.9.0, %one), \
metadata={op_name="jit(f)/OPERATION"}
}
"""


@pytest.mark.parametrize(
    ("operation", "maker"),
    [("scatter-add", Maker.SIMPLIFIER_AGAIN), ("dynamic_update_slice", Maker.SIMPLIFIER)],
)
def test_it_was_made_once_what_combines_the_two_was_inlined(operation: str, maker: Maker) -> None:
    module = parse_module(PROGRAM.replace("OPERATION", operation))
    makers = makers_in_turn(module.entry, named_by_front_end(module)).makers
    assert next(found for x, found in makers.items() if x.opcode == "slice") == maker


def test_it_is_of_the_last_time_around() -> None:
    entry = parse_module(PROGRAM.replace("OPERATION", "scatter-add")).entry
    made = [x for x in entry if x.opcode in ("slice", "add")]
    assert [[x.name for x in turn] for turn in in_rounds(made) if turn] == [["add.9.0"], ["slice.3.0"]]


BOUNDS = """HloModule m

ENTRY %main {
  %p = f32[8,3]{1,0} parameter(0)
  %q = f32[1,3]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %zero = s32[] constant(0)
  %last = s32[] constant(7)
  %compare.1.0 = pred[] compare(%zero, %i), direction=LE
  %compare.2.0 = pred[] compare(%last, %i), direction=GE
  %and.1.0 = pred[] and(%compare.1.0, %compare.2.0)
  %broadcast.1.0 = pred[1,3]{1,0} broadcast(%and.1.0), dimensions={}
  %dynamic-slice.1.0 = f32[1,3]{1,0} dynamic-slice(%p, %i, %zero), dynamic_slice_sizes={1,3}
  %select.1.0 = f32[1,3]{1,0} select(%broadcast.1.0, %q, %dynamic-slice.1.0)
  ROOT %dynamic-update-slice.1.0 = f32[8,3]{1,0} dynamic-update-slice(%p, %select.1.0, %i, %zero), \
metadata={op_name="jit(f)/OPERATION"}
}
"""


@pytest.mark.parametrize(
    ("operation", "maker"),
    [("scatter", Maker.SIMPLIFIER_AGAIN), ("dynamic_update_slice", Maker.SIMPLIFIER)],
)
def test_so_are_the_bounds_of_one_index(operation: str, maker: Maker) -> None:
    """Those of a vector of one element had been compared and reduced, `x.at[i].set(y)`."""
    module = parse_module(BOUNDS.replace("OPERATION", operation))
    makers = makers_in_turn(module.entry, named_by_front_end(module)).makers
    found = {x.opcode: who for x, who in makers.items()}
    assert found["compare"] == found["and"] == maker
    assert found["select"] == Maker.SIMPLIFIER
