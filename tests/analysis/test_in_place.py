"""What never works in place has no operand that it overwrites, and will have none."""

from __future__ import annotations

from hlofuse.analysis.in_place import in_place_pairs, never_in_place
from hlofuse.ir import parse_module
from hlofuse.ir.fusing import append_producer
from hlofuse.releases import AROUND_FUSION as RELEASE

TEXT = """HloModule m

%inside (p: f32[8,4]) -> f32[32] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %flat = f32[32]{0} bitcast(%p)
}

%sums (q: f32[32]) -> f32[32] {
  %q = f32[32]{0} parameter(0)
  ROOT %twice = f32[32]{0} add(%q, %q)
}

ENTRY %main (x: f32[8,4], row: f32[1,4], k: s32[]) -> f32[32] {
  %x = f32[8,4]{1,0} parameter(0)
  %row = f32[1,4]{1,0} parameter(1)
  %k = s32[] parameter(2)
  %update = f32[8,4]{1,0} dynamic-update-slice(%x, %row, %k, %k)
  %loop = f32[32]{0} fusion(%update), kind=kLoop, calls=%inside
  %sum = f32[32]{0} fusion(%loop), kind=kLoop, calls=%sums
  %aliased = f32[32]{0} fusion(%sum), kind=kLoop, calls=%sums, output_to_operand_aliasing={{}: (0, {})}
  ROOT %last = f32[32]{0} negate(%aliased)
}
"""


def test_an_update_makes_a_kernel_work_in_place_that_ends_in_a_bitcast() -> None:
    module = parse_module(TEXT)
    found = {i.name: i for i in module.entry}
    pairs = {name: len(in_place_pairs(i, RELEASE)) for name, i in found.items()}
    assert pairs == dict.fromkeys(found, 0) | {"update": 1, "aliased": 1}
    assert {name for name, i in found.items() if never_in_place(i)} == {"sum", "last"}
    append_producer(found["loop"], found["update"])
    assert len(in_place_pairs(found["loop"], RELEASE)) == 1
