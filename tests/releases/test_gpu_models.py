"""What differs between releases in the cost models and rules for GPU, by XLA's source: it shows in no figure
that XLA prints for a module of a few lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hlofuse.cost.gpu.device import DeviceDescription, load_device
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.ticks import INFINITE
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.cost.tiling.tiling import Tiling
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes import make_pass
from hlofuse.releases import Release, release_of
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, may_be_fused
from hlofuse.trace import Recorder

from .releases_on_gpu import DEVICE, flipped, operation

B200 = load_device("b200")
WINDOW = "f32[523,524] reduce-window(p0, p1), window={size=2x4}, to_apply=add"
NARROW = "u8[4096,4096] add(p0, p0)"
LONG = "u8[4096,4096] concatenate(p0, p0), dimensions={0}"
LAUNCHES = [
    # behaviour, device, operation, shapes of its operands, blocks in the release before and after
    ("unrolls_small_windows", DEVICE, WINDOW, ("f32[524,527]", "f32[]"), ("0.7.2", 2142), ("0.8.3", 536)),
    ("unrolls_further_on_blackwell", B200, NARROW, ("u8[4096,4096]",), ("0.7.2", 32768), ("0.8.3", 16384)),
    ("unrolls_by_width_on_blackwell", B200, NARROW, ("u8[4096,4096]",), ("0.8.3", 16384), ("0.9.2", 8192)),
    ("unrolls_concatenates_on_blackwell", B200, LONG, ("u8[2048,4096]",), ("0.9.2", 16384), ("0.10.2", 4096)),
]


@pytest.mark.parametrize(("behaviour", "device", "line", "operands", "before", "after"), LAUNCHES)
def test_how_far_loops_are_unrolled(
    behaviour: str,
    device: DeviceDescription,
    line: str,
    operands: tuple[str, ...],
    before: tuple[str, int],
    after: tuple[str, int],
) -> None:
    instruction = operation(line, operands)

    def blocks(release: Release) -> int:
        return KernelModel(device, release).launch(instruction).blocks

    assert [blocks(release_of(r)) for r, _ in (before, after)] == [before[1], after[1]]
    assert blocks(flipped(after[0], behaviour)) != after[1]


def test_tables_of_clock_cycles() -> None:
    add = operation("f32[4096] sine(p0)", ("f32[4096]",))
    b300 = replace(B200, compute_capability=(10, 3))

    def flops(device: DeviceDescription, release: Release) -> int:
        return KernelModel(device, release).run_time(add).flops

    before, b200, both = release_of("0.5.3"), release_of("0.6.2"), release_of("0.10.2")
    assert flops(B200, before) == flops(b300, before) == flops(b300, b200)
    assert flops(B200, b200) == flops(B200, both) != flops(B200, before)
    assert flops(b300, both) != flops(b300, b200)


def test_bitcasts_of_another_width() -> None:
    widens = operation("s16[256,2] bitcast(p0)", ("f32[256]",))
    fused = {r: may_be_fused(widens, release_of(r)) for r in ("0.6.2", "0.7.2", "0.8.3")}
    assert fused == {"0.6.2": True, "0.7.2": False, "0.8.3": False}
    first = {r: is_fusible_bitcast(widens, release_of(r)) for r in ("0.6.2", "0.7.2", "0.8.3")}
    assert first == {"0.6.2": True, "0.7.2": True, "0.8.3": False}
    same = operation("s32[256] bitcast(p0)", ("f32[256]",))
    assert all(may_be_fused(same, release_of(r)) for r in ("0.6.2", "0.7.2"))


def test_maps_of_indices_in_words() -> None:
    for release, operator in (("0.9.2", " floordiv "), ("0.10.2", " / ")):
        module = parse_module(GROUPS)
        fusion, user = module.find("f"), module.find("r")
        assert fusion is not None
        assert user is not None
        refusal = TilingModel(DEVICE, release_of(release)).best_tiling(fusion, user)
        assert operator in str(refusal)


def test_large_tiles_inside_a_fusion() -> None:
    """A row that is only there between a broadcast and a reduction."""
    times = {}
    for release in ("0.6.2", "0.7.2"):
        module = parse_module(ROW)
        fusion, user = module.find("f"), module.find("r")
        assert fusion is not None
        assert user is not None
        tiling = TilingModel(DEVICE, release_of(release)).best_tiling(fusion, user)
        assert isinstance(tiling, Tiling)
        times[release] = tiling.exec_time >= INFINITE
    assert times == {"0.6.2": True, "0.7.2": False}


def test_operations_with_other_shardings() -> None:
    left = {}
    for release in ("0.6.2", "0.7.2"):
        module = parse_module(SHARDED)
        make_pass("cse", "gpu", release_of(release)).run(module, Recorder())
        body = module.find("r").operands[0].fused_computation  # type: ignore[union-attr]
        left[release] = sum(x.opcode == "sine" for x in body)
    assert left == {"0.6.2": 1, "0.7.2": 2}


def test_bitcasts_of_equal_dimensions_pass_use_on() -> None:
    """What both read in step is read once."""
    read = {}
    for release in ("0.6.2", "0.7.2"):
        module, model = parse_module(IN_STEP), KernelModel(DEVICE, release_of(release))
        producer, consumer = module.find("e"), module.find("f")
        assert producer is not None
        assert consumer is not None
        read[release] = model.pair_time(producer, consumer).bytes_read
    assert read == {"0.6.2": 8192, "0.7.2": 4096}


GROUPS = """HloModule groups

add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }

body {
  p = f32[512,1024] parameter(0)
  q = f32[512,8,128] bitcast(p)
  z = f32[] constant(0)
  s = f32[512,8] reduce(q, z), dimensions={2}, to_apply=add
  t = f32[512,8,128] broadcast(s), dimensions={0,1}
  d = f32[512,8,128] subtract(q, t)
  ROOT b = f32[512,1024] bitcast(d)
}

ENTRY e {
  x = f32[512,1024] parameter(0)
  f = f32[512,1024] fusion(x), kind=kCustom, calls=body, backend_config={
    "fusion_backend_config":{"kind":"__triton"}}
  ROOT r = f32[512,1024] negate(f)
}
"""

ROW = """HloModule row

add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }

body {
  p = f32[64] parameter(0)
  t = f32[64,32768] broadcast(p), dimensions={0}
  ROOT n = f32[64,32768] negate(t)
}

ENTRY e {
  x = f32[64] parameter(0)
  z = f32[] constant(0)
  f = f32[64,32768] fusion(x), kind=kCustom, calls=body, backend_config={
    "fusion_backend_config":{"kind":"__triton"}}
  ROOT r = f32[64] reduce(f, z), dimensions={1}, to_apply=add
}
"""

SHARDED = """HloModule sharded

body {
  p = f32[64] parameter(0)
  s = f32[64] sine(p), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"a\\"}]>"}
  t = f32[64] sine(p)
  ROOT m = f32[64] multiply(s, t)
}

ENTRY e {
  x = f32[64] parameter(0)
  f = f32[64] fusion(x), kind=kLoop, calls=body
  ROOT r = f32[64] negate(f)
}
"""

IN_STEP = """HloModule in_step

body {
  p = f32[1024] parameter(0)
  q = s32[1024] parameter(1)
  b = f32[1024] bitcast(q)
  n = f32[1024] bitcast(p)
  ROOT m = f32[1024] multiply(b, n)
}

ENTRY e {
  x = s32[1024] parameter(0)
  e = f32[1024] convert(x)
  ROOT f = f32[1024] fusion(e, x), kind=kLoop, calls=body
}
"""
