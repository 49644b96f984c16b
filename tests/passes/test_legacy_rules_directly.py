"""Rules of gpu-legacy that no module reaches as XLA hands it to them: asked with modules of our own."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_expensive
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.merging import MergingModel
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Module
from hlofuse.releases import release_of
from hlofuse.rules.fusion_heroes import heroes_verdict
from hlofuse.rules.gpu_instruction_fusion import (
    GpuFusionState,
    GpuPair,
    producer_has_several_results,
    producer_is_scatter,
)
from hlofuse.rules.settings import AS_XLA, Settings
from ..running import find

RELEASE = release_of("0.4.35")


def pair(module: Module, producer: str, consumer: str) -> GpuPair:
    model = MergingModel(load_device("v100"), RELEASE)
    state = GpuFusionState(True, RELEASE, AS_XLA, is_expensive, model=model)
    p, c = find(module, producer), find(module, consumer)
    return GpuPair(p, c, c.operands.index(p), state)


SCATTER = """HloModule m

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (x: f32[64], i: s32[4,1], u: f32[4]) -> f32[64] {
  %x = f32[64]{0} parameter(0)
  %i = s32[4,1]{1,0} parameter(1)
  %u = f32[4]{0} parameter(2)
  %s = f32[64]{0} scatter(%x, %i, %u), update_window_dims={}, inserted_window_dims={0}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%add
  %abs = f32[64]{0} abs(%s)
  ROOT %neg = f32[64]{0} negate(%abs)
}
"""


def test_nothing_follows_a_scatter() -> None:
    module = parse_module(SCATTER)
    verdict = producer_is_scatter(pair(module, "s", "abs"))
    assert verdict is not None
    assert verdict.reason == "do not fuse into the output of scatter"
    assert producer_is_scatter(pair(module, "abs", "neg")) is None


SEVERAL = """HloModule m

%two (p: f32[64]) -> (f32[64], f32[64]) {
  %p = f32[64]{0} parameter(0)
  %n = f32[64]{0} negate(%p)
  %b = f32[64]{0} abs(%p)
  ROOT %t = (f32[64]{0}, f32[64]{0}) tuple(%n, %b)
}

ENTRY %main (x: f32[64]) -> f32[64] {
  %x = f32[64]{0} parameter(0)
  %f = (f32[64]{0}, f32[64]{0}) fusion(%x), kind=kLoop, calls=%two
  %g = f32[64]{0} get-tuple-element(%f), index=0
  ROOT %e = f32[64]{0} exponential(%g)
}
"""


def test_a_multi_output_fusion_is_no_producer() -> None:
    module = parse_module(SEVERAL)
    assert producer_has_several_results(pair(module, "f", "g")) is not None
    assert producer_has_several_results(pair(module, "g", "e")) is None


UNTILED = """HloModule m

%tiled (p: f32[64,64]) -> f32[64,64] {
  %p = f32[64,64]{1,0} parameter(0)
  ROOT %t = f32[64,64]{1,0} transpose(%p), dimensions={1,0}
}

%chain (q: f32[64,64]) -> f32[64,64] {
  %q = f32[64,64]{1,0} parameter(0)
  %a = f32[64,64]{1,0} abs(%q)
  ROOT %n = f32[64,64]{1,0} negate(%a)
}

%deep (r: f32[64,64]) -> f32[64,64] {
  %r = f32[64,64]{1,0} parameter(0)
  %s = f32[64,64]{1,0} multiply(%r, %r)
  ROOT %m = f32[64,64]{1,0} negate(%s)
}

ENTRY %main (x: f32[64,64]) -> (f32[64,64], f32[64,64]) {
  %x = f32[64,64]{1,0} parameter(0)
  %f = f32[64,64]{1,0} fusion(%x), kind=kInput, calls=%tiled
  %c = f32[64,64]{1,0} fusion(%f), kind=kLoop, calls=%chain
  %d = f32[64,64]{1,0} fusion(%f), kind=kLoop, calls=%deep
  ROOT %o = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(%c, %d)
}
"""


def test_a_tiled_transpose_stays_at_the_end() -> None:
    module = parse_module(UNTILED)
    model = MergingModel(load_device("v100"), RELEASE)
    f, c, d = (find(module, name) for name in "fcd")
    assert heroes_verdict(f, c, model, Settings()) is None
    for first, second in ((f, d), (d, f)):
        verdict = heroes_verdict(first, second, model, Settings())
        assert verdict is not None
        assert verdict.reason == "tiled transpose would become untiled"
