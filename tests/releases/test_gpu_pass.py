"""Names that are spent before PriorityFusion, in releases where it renames."""

from __future__ import annotations

from hlofuse.ir.text.reader import parse_module
from hlofuse.order.restore import reserve_counted_names


def test_names_that_xla_counted_stay_spent() -> None:
    """concat_then_reduce of XLA 0.5.3: of two reductions each had another name before it was grouped."""
    module = parse_module("""HloModule m

%add {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %e {
  %p = f32[128,128] parameter(0)
  %zero = f32[] constant(0)
  %bitcast.77 = f32[16384] bitcast(%p)
  %reduce = f32[] reduce(%bitcast.77, %zero), dimensions={0}, to_apply=%add
  %bitcast.85 = f32[16384] bitcast(%p)
  %reduce.1 = f32[] reduce(%bitcast.85, %zero), dimensions={0}, to_apply=%add
  ROOT %reduce.11 = f32[128] reduce(%p, %zero), dimensions={0}, to_apply=%add
}
""")
    reserve_counted_names(module)
    assert module.instruction_names.unique("reduce.0") == "reduce.4"
