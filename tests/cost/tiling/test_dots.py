"""Dots inside generic Triton fusions. XLA makes none by itself, so the figures are worked out by hand."""

from __future__ import annotations

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.ticks import TICKS_PER_SECOND
from hlofuse.cost.tiling.constraints import Refusal, Tiling
from hlofuse.cost.tiling.dot_cost import dot_of, dot_time, peak_matrix_ops
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.ir.graph import Instruction
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE

SIZES = 'backend_config={"sizes":["32"]}'
PLAIN = ((), (), (1,), (0,))


def fusion(config: str = "") -> Instruction:
    text = """HloModule m
c {
  p = f32[512,256]{1,0} parameter(0)
  q = f32[256,128]{1,0} parameter(1)
  e = f32[512,256]{1,0} exponential(p)
  d = f32[512,128]{1,0} dot(e, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}, SIZES
  ROOT r = f32[512,128]{1,0} negate(d)
}
ENTRY e {
  p = f32[512,256]{1,0} parameter(0)
  q = f32[256,128]{1,0} parameter(1)
  ROOT f = f32[512,128]{1,0} fusion(p, q), kind=kCustom, calls=c CONFIG
}"""
    return parse_module(text.replace("SIZES", SIZES).replace("CONFIG", config)).entry.root


def test_a_dot_has_a_tiling_parameter_of_its_own() -> None:
    best = TilingModel(load_device("h100_sxm"), RELEASE).best_tiling(fusion())
    assert isinstance(best, Tiling)
    assert len(best.config.tile_sizes[0]) == 2
    assert all(size <= 256 for size in best.config.tile_sizes[0])
    assert best.estimate.bytes_written == 512 * 128 * 4


def test_the_dots_config_tells_the_tile_of_the_summed_dimension() -> None:
    config = (
        ', backend_config={"fusion_backend_config":{"kind":"__triton","block_level_fusion_config":'
        '{"num_warps":"4","output_tiles":[{"sizes":["64","64"]}]}}}'
    )
    cost = TilingModel(load_device("h100_sxm"), RELEASE).run_time(fusion(config))
    assert isinstance(cost, Tiling), str(cost) if isinstance(cost, Refusal) else ""
    assert (cost.estimate.launch.blocks, cost.estimate.launch.threads) == (16, 128)
    # Each block reads a row of tiles of the left operand and a column of those of the right one.
    assert cost.estimate.bytes_read == 16 * (64 * 256 + 256 * 64) * 4


def test_serial_loop_of_one_wave() -> None:
    device = load_device("h100_sxm")
    dot = dot_of(PLAIN, (512, 256), (256, 128), ("f32", "f32", "f32"))
    assert dot is not None
    time = dot_time(dot, (64, 64), 32, 4, 1, device)
    assert time is not None
    flops = 2 * 64 * 64 * 256 * device.core_count
    assert time.compute == round(flops / peak_matrix_ops(device, "f32") * 4)
    l2_bytes = 16 * (64 + 64) * 256 * 4
    bandwidth = 6.65e12 * device.memory_bandwidth / 2**30 / 3352.32
    l2_time = l2_bytes / bandwidth + 8 * 400e-9
    loop_latency = 8 * 1300 * 4
    assert time.total >= max(loop_latency + time.compute, int(l2_time * TICKS_PER_SECOND))


def test_small_tiles_miss_the_tensor_cores() -> None:
    device = load_device("h100_sxm")
    dot = dot_of(PLAIN, (4096, 4096), (4096, 4096), ("bf16", "bf16", "bf16"))
    assert dot is not None
    small, large = (dot_time(dot, (m, 128), 64, 8, 1, device) for m in (32, 64))
    assert small is not None
    assert large is not None
    assert small.compute == pytest.approx(large.compute / 0.63, rel=1e-6)


def test_what_the_model_leaves_out() -> None:
    types = ("f32", "f32", "f32")
    assert dot_of(((), (), (1, 2), (0, 1)), (8, 4, 4), (4, 4, 8), types) is None
    assert dot_of(((), (), (2,), (0,)), (8, 4, 4), (4, 8), types) is None
