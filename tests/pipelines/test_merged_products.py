"""What DotMerger joins for products, and takes out of them, as XLA's dumps have it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.front_end_names import named_by_front_end
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_in_turn import makers_in_turn
from hlofuse.pipelines.likely_ids.merged_products import in_order_of_mergers

CALL = 'custom-call(OPERANDS), custom_call_target="__cublas$gemm"'
PROGRAM = f"""HloModule m

ENTRY %main {{
  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %r = f32[8,8]{{1,0}} parameter(2)
  %concatenate.2.0 = f32[8,16]{{1,0}} concatenate(%p, %q), dimensions={{1}}, \
metadata={{op_name="f/OPERATION"}}
  %call.1 = f32[8,16]{{1,0}} {CALL.replace("OPERANDS", "%r, %concatenate.2.0")}
  %slice.4.0 = f32[8,8]{{1,0}} slice(%call.1), slice={{[0:8], [0:8]}}, metadata={{op_name="f/dot_general"}}
  %concatenate.1.0 = f32[8,16]{{1,0}} concatenate(%q, %r), dimensions={{1}}, \
metadata={{op_name="f/OPERATION"}}
  %call.2 = f32[8,16]{{1,0}} {CALL.replace("OPERANDS", "%p, %concatenate.1.0")}
  %convert.1 = bf16[8,16]{{1,0}} convert(%call.2)
  %slice.2.0 = bf16[8,8]{{1,0}} slice(%convert.1), slice={{[0:8], [0:8]}}, metadata={{op_name="f/transpose"}}
  ROOT %tuple.1 = (f32[8,8]{{1,0}}, bf16[8,8]{{1,0}}) tuple(%slice.4.0, %slice.2.0)
}}
"""


@pytest.mark.parametrize(("operation", "is_joined"), [("mul", True), ("concatenate", False)])
def test_what_a_product_reads_was_joined_for_it(operation: str, is_joined: bool) -> None:
    module = parse_module(PROGRAM.replace("OPERATION", operation))
    makers = makers_in_turn(module.entry, named_by_front_end(module)).makers
    of_merger = sorted(x.name for x, maker in makers.items() if maker == Maker.DOT_MERGER)
    joined = ["concatenate.1.0", "concatenate.2.0", "slice.2.0", "slice.4.0"]
    assert (of_merger == joined) == is_joined


def test_one_merger_after_the_other() -> None:
    entry = parse_module(PROGRAM.replace("OPERATION", "mul")).entry
    made = [x for x in entry if x.opcode in ("concatenate", "slice")]
    names = [x.name for x in in_order_of_mergers(made)]
    assert names == ["concatenate.1.0", "slice.2.0", "concatenate.2.0", "slice.4.0"]
