"""Following a record: the names XLA gave fusions do not clash with those of fusions no record tells about."""

from __future__ import annotations

from hlofuse.compilation import CompilationInput, compile
from hlofuse.ir import parse_module, print_module
from hlofuse.trace.priority_record import FusionStep, PriorityRecord

TEXT = """HloModule m

ENTRY e {
  p = f32[64,64] parameter(0)
  n = f32[64,64] negate(p)
  a = f32[64,64] add(n, p)
  c = f32[] constant(3)
  b = f32[32] broadcast(c), dimensions={}
  ROOT t = (f32[64,64], f32[32]) tuple(a, b)
}"""


def test_a_constant_fused_at_the_end_gets_another_name() -> None:
    record = PriorityRecord([FusionStep(fusion="fusion.1", producer="n", consumer="a")])
    after = compile(CompilationInput(parse_module(TEXT), record=record), "gpu", device="h100_sxm").after
    names = [x.name for x in after.entry if x.opcode == "fusion"]
    assert len(names) == 2
    assert len(set(names)) == 2
    assert print_module(parse_module(print_module(after))) == print_module(after)
