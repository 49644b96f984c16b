"""What runs and what it costs: loops, branches, copies, lower bounds, and that all reports agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hlofuse.account import Account, KernelTimes
from hlofuse.account.bound import fusion_floor
from hlofuse.account.cpu import CpuTimes
from hlofuse.account.floor import product_peak, products
from hlofuse.account.traffic import KernelCosts
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir import parse_module
from hlofuse.memory import assign
from hlofuse.releases import AROUND_FUSION as RELEASE
from ..conftest import ROOT
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)

LOOP = TEXTS["loop"]
UNCOUNTED = LOOP.replace("more = s32[] add(n", "more = s32[] multiply(n")
TRIPS = ', backend_config={"known_trip_count":{"n":"7"}}'

ALIASED = ", output_to_operand_aliasing={{}: (0, {})}"


def test_a_loop_counts_as_often_as_it_runs() -> None:
    account = Account(parse_module(LOOP % TRIPS))
    runs = {r.instruction.name: (r.runs, r.per_iteration) for r in account.rows}
    # With a known trip count XLA's runtime does not evaluate the condition.
    assert runs == {"more": (7, False), "y": (7, False), "less": (0, False)}
    assert account.totals.launches == 14
    assert account.totals.cost.bytes_accessed == 7 * (2 * 4096 + 3 * 4)


_STEPS = TEXTS["steps"]


def _us_of_loop(kernels: int, trips: str = TRIPS, flags: tuple[str, ...] = ()) -> float:
    """Microseconds of a loop of small kernels, one after the other, on an H100."""
    step = "  x{} = f32[1024]{{0}} fusion(x{}), kind=kLoop, calls=negated"
    steps = "\n".join(step.format(k + 1, k) for k in range(kernels))
    text = _STEPS.replace("STEPS", steps).replace("LAST", str(kernels)).replace("TRIPS", trips)
    times = KernelTimes(load_device("h100_sxm"), RELEASE, flags=flags)
    us = times.account(parse_module(text)).totals.us
    assert us is not None
    return us


BUFFERS = "--xla_gpu_enable_command_buffer="


@pytest.mark.parametrize(
    ("kernels", "flags", "us"),
    [
        (1, (), 6.5),
        (2, (), 12.5),
        (5, (), 12.5),
        (12, (), 12.5),
        (13, (), 13.1),
        (5, (BUFFERS + "-FUSION",), 32.5),
        (5, (BUFFERS + "+WHILE",), 5.05),
    ],
)
def test_a_gpu_waits_in_a_loop_whose_launches_take_the_host_longer(
    kernels: int, flags: tuple[str, ...], us: float
) -> None:
    """A launch takes the host 6.5 µs and a command buffer 12.5 µs; a kernel takes 1.009 µs."""
    assert _us_of_loop(kernels, flags=flags) == pytest.approx(7 * us, rel=0.005)


@pytest.mark.parametrize(("flags", "us"), [((), 12.5), ((BUFFERS + "-CONDITIONAL",), 6.5 + 12.5)])
def test_a_conditional_in_a_command_buffer_has_no_launches_of_its_own(
    flags: tuple[str, ...], us: float
) -> None:
    """One kernel and a branch of two: three launches, or one and then two."""
    branches = """BRANCH {
  a0 = f32[1024]{0} parameter(0)
  a1 = f32[1024]{0} fusion(a0), kind=kLoop, calls=negated
  ROOT a2 = f32[1024]{0} fusion(a1), kind=kLoop, calls=negated
}

"""
    steps = """  x1 = f32[1024]{0} fusion(x0), kind=kLoop, calls=negated
  x2 = f32[1024]{0} conditional(n, x1, x1), branch_computations={one, two}"""
    text = _STEPS.replace("STEPS", steps).replace("LAST", "2").replace("TRIPS", TRIPS)
    both = branches.replace("BRANCH", "one") + branches.replace("BRANCH", "two")
    module = parse_module(text.replace("BODY {", f"{both}BODY {{"))
    total = KernelTimes(load_device("h100_sxm"), RELEASE, flags=flags).account(module).totals.us
    assert total == pytest.approx(7 * us, rel=0.005)


def test_a_loop_of_unknown_length_waits_for_its_condition() -> None:
    """Two launches, that of the condition among them, and 9 µs until the host has read it."""
    assert _us_of_loop(1, trips="") == pytest.approx(2 * 6.5 + 9)
    assert _us_of_loop(1, trips="", flags=(BUFFERS + "+WHILE",)) == pytest.approx(2.01, rel=0.01)


def test_a_loop_that_does_not_tell_counts_one_iteration() -> None:
    account = Account(parse_module(UNCOUNTED % ""))
    assert {r.instruction.name for r in account.rows if r.per_iteration} == {"more", "y", "less"}
    assert account.totals.launches == 3
    assert [loop.kernels for loop in account.loops] == [account.totals.per_iteration]


def test_of_a_conditional_the_dearest_branch_runs() -> None:
    account = Account(parse_module(TEXTS["branches"]))
    assert {r.instruction.name: r.runs for r in account.rows} == {"a": 1, "b": 0}
    assert (account.totals.kernels, account.totals.launches) == (2, 1)


FUSION = TEXTS["fusion"]


def moved(inside: str, call: str) -> tuple[int, int]:
    module = parse_module(FUSION % (inside, call))
    cost = KernelCosts().instruction(module.entry.root)
    return cost.bytes_read, cost.bytes_written


def test_a_slice_behind_a_bitcast_reads_its_own_size() -> None:
    """XLA counts the whole array there, 4 kB."""
    found = moved(
        "  p = f32[32,32] parameter(0)\n  b = f32[1024] bitcast(p)\n"
        "  ROOT s = f32[16] slice(b), slice={[8:24]}",
        "  x = f32[32,32] parameter(0)\n  ROOT f = f32[16] fusion(x), kind=kLoop, calls=inside",
    )
    assert found == (64, 64)


UPDATE = """  p = f32[1024] parameter(0)
  u = f32[4] parameter(1)
  i = s32[] parameter(2)
%s  ROOT r = f32[1024] dynamic-update-slice(%s, u, i)"""
CALL = """  x = f32[1024] parameter(0)
  u = f32[4] parameter(1)
  i = s32[] parameter(2)
  ROOT f = f32[1024] fusion(x, u, i), kind=kLoop, calls=inside"""


def test_an_update_in_place_moves_the_update_and_any_other_the_whole_array() -> None:
    """XLA counts only the update for both."""
    assert moved(UPDATE % ("", "p"), CALL) == (16 + 4, 16)
    assert moved(UPDATE % ("  n = f32[1024] negate(p)\n", "n"), CALL) == (4096 + 16 + 4, 4096)


def test_a_scatter_writes_whole_sectors() -> None:
    scatter = TEXTS["scattered"]
    rows = parse_module(scatter % ("8,64", "1", "0", "0")).entry.root
    columns = parse_module(scatter % ("8,64", "1", "1", "1")).entry.root
    costs = KernelCosts()
    assert costs.instruction(rows).bytes_written == 8 * 64 * 4
    assert costs.instruction(columns).bytes_written == 8 * 64 * 32


_PRODUCT = """HloModule m

ENTRY main {
  a = %(type)s[%(m)d,%(k)d]{1,0} parameter(0)
  b = %(type)s[%(k)d,%(n)d]{1,0} parameter(1)
  ROOT d = %(type)s[%(m)d,%(n)d]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}%(more)s
}
"""


def _product_us(
    device: str, element_type: str, m: int = 1024, k: int = 1024, n: int = 1024, more: str = ""
) -> float | None:
    """The time of a product by XLA's measured rates, launch left out; None for a lower bound."""
    text = _PRODUCT % {"type": element_type, "m": m, "k": k, "n": n, "more": more}
    (row,) = KernelTimes(load_device(device), RELEASE).account(parse_module(text)).rows
    assert row.us is not None
    return None if row.is_floor else row.us - 1


def test_products_take_the_time_that_xla_measured_where_it_did() -> None:
    """A measured size takes its measured rate, any other one between those around it."""
    # 252,764 GFLOP/s in XLA's table.
    assert _product_us("h100_sxm", "bf16") == pytest.approx(2 * 1024**3 / 252_764e9 * 1e6)
    around = [_product_us("h100_sxm", "bf16", n=n) for n in (1024, 1500, 2048)]
    assert None not in around
    assert around == sorted(around)  # type: ignore[type-var]
    assert _product_us("b200", "bf16") != _product_us("h100_sxm", "bf16") == _product_us("h200", "bf16")
    # Not measured: the device, the type, the precision; and a matrix times a vector waits for memory.
    for unmeasured in (
        _product_us("a100_sxm_80", "bf16"),
        _product_us("gb200", "bf16"),
        _product_us("h100_sxm", "f16"),
        _product_us("h100_sxm", "f32", more=", operand_precision={highest,highest}"),
        _product_us("h100_sxm", "bf16", m=1, k=8192, n=8192),
    ):
        assert unmeasured is None


def test_the_highest_precision_has_the_bound_of_the_cores_and_a_sort_that_of_its_passes() -> None:
    """132 processors with 128 cores at 1.98 GHz; two exchanges beyond the tile are one and five passes."""
    device = load_device("h100_sxm")
    more = ", operand_precision={highest,highest}"
    exact = parse_module(_PRODUCT % {"type": "f32", "m": 4096, "k": 4096, "n": 4096, "more": more})
    (row,) = KernelTimes(device, RELEASE).account(exact).rows
    assert row.is_floor
    assert row.us == pytest.approx(4096**3 / (132 * 128 * device.clock_rate_ghz * 1e3) + 1, rel=1e-4)
    assert _product_us("h100_sxm", "f32", more=more.replace("highest", "high")) is not None
    text = """HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[4096,16384] parameter(0)
  ROOT s = f32[4096,16384] sort(x), dimensions={1}, to_apply=less }"""
    (row,) = KernelTimes(device, RELEASE).account(parse_module(text)).rows
    read = 6 * (4096 * 16384 * 4 - device.l2_cache_size)
    assert row.us == pytest.approx(read / device.memory_bandwidth * 1e6 + 1)


def test_a_copy_to_the_host_takes_its_link_except_what_kernels_hide() -> None:
    module = parse_module(TEXTS["host"])
    device = load_device("h100_sxm")
    rows = KernelTimes(device, RELEASE).account(module).rows
    assert sum(r.us or 0.0 for r in rows[1:]) == pytest.approx(2**30 / 64e3 + 1)
    found = assign(module, "gpu", device)
    assert (found.host, found.total // 2**30) == (2**30, 3)


def test_no_time_is_below_what_has_to_move() -> None:
    """A product, of which XLA's model of kernels has no estimate, takes at least its arithmetic."""
    module = parse_module(_PRODUCT % {"type": "f16", "m": 4096, "k": 4096, "n": 4096, "more": ""})
    device = load_device("h100_sxm")
    (row,) = KernelTimes(device, RELEASE).account(module).rows
    assert row.is_floor
    assert row.us == pytest.approx(2 * 4096**3 / (132 * 4 * 512 * 2 * 1.8295201e9) * 1e6 + 1, rel=0.01)
    totals = KernelTimes(device, RELEASE).account(module).totals
    assert (totals.floors, totals.modelled_us) == (1, 0.0)
    assert totals.us == totals.floor_us == row.us


@pytest.mark.parametrize(
    ("device", "bounded"),
    [("h100_sxm", "bf16 f16 f32 f64 cores"), ("v100", "f32 f64 cores"), ("a6000", ""), ("mi350", "")],
)
def test_matrix_units_without_numbers_bound_nothing(device: str, bounded: str) -> None:
    """Tensor cores of a V100 are faster than the cores that XLA lists; an A6000's take float32, too."""
    found = [t for t in "bf16 f16 f32 f64 cores".split() if product_peak(load_device(device), t)]
    assert found == bounded.split()


SAMPLES = [
    "cpu/softmax",
    "cpu/gpt2_block",
    "cartpole/cpu/scan",
    "gpu/softmax",
    "gpu/gpt2_block",
    "cartpole/gpu/baseline",
]


@pytest.mark.parametrize("name", SAMPLES)
def test_reports_never_disagree(hlofuse: Run, name: str, tmp_path: Path) -> None:
    """Every figure that two commands share is the same figure."""
    folder = ROOT / "samples" / name
    on = ("--device", "v100" if "cartpole" in name else "h100_sxm") if "gpu" in name else ()

    def reported(*arguments: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(hlofuse(*arguments, "--format", "json").out)
        return found

    explained = reported("explain", folder, *on)
    totals = explained["totals"]
    assert isinstance(totals, dict)
    rows = explained["kernels"]
    assert isinstance(rows, list)
    assert totals["kernels"] == len(rows)
    assert totals["launches"] == sum(r["runs"] for r in rows)
    assert totals["bytes"] == sum(r["bytes"] * r["runs"] for r in rows)
    if on:
        assert totals["time_us"] == pytest.approx(sum(r["time_us"] * r["runs"] for r in rows), rel=1e-4)
    final = tmp_path / "final.hlo"
    assert hlofuse("replay", folder, *on, "--until", "end", "-o", final).status == 0
    (counted,) = reported("stats", final)["modules"]
    shared = ("kernels", "launches", "bytes", "flop", "copies", "cost")
    assert {k: counted["totals"][k] for k in shared} == {k: totals[k] for k in shared}
    same = reported("diff", final, final, *on)
    assert {k: same["after"]["totals"][k] for k in (*shared, "time_us")} == {
        k: totals[k] for k in (*shared, "time_us")
    }
    checked = reported("check", folder, *on, "--max-kernels", "9999")["modules"]
    assert isinstance(checked, list)
    figures = checked[0]["figures"]
    assert (figures["kernels"], figures["bytes"]) == (totals["kernels"], totals["bytes"])
    if on:
        assert figures["us"] == pytest.approx(totals["time_us"], abs=0.01)
    assert totals["temporary_bytes"] <= totals["memory_bytes"]
    ranked = reported("what-if", folder, *on)
    assert ranked["after"] == totals
    assert ranked["before"] == explained["before"]


@pytest.mark.parametrize("kind", ["Forward", "BackwardInput", "BackwardFilter"])
def test_a_convolution_of_cudnn_takes_as_long_as_its_multiplications_at_least(kind: str) -> None:
    arrays = {
        "x": "f16[64,56,56,256]{3,2,1,0}",
        "w": "f16[256,3,3,256]{3,2,1,0}",
        "y": "f16[64,56,56,256]{3,2,1,0}",
    }
    result, *operands = list({"Forward": "yxw", "BackwardInput": "xyw", "BackwardFilter": "wxy"}[kind])
    text = f"""HloModule m
ENTRY e {{
  p = {arrays[operands[0]]} parameter(0)
  q = {arrays[operands[1]]} parameter(1)
  c = ({arrays[result]}, u8[0]{{0}}) custom-call(p, q), window={{size=3x3 pad=1_1x1_1}},
    dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$conv{kind}"
  ROOT r = {arrays[result]} get-tuple-element(c), index=0
}}"""
    call = next(i for i in parse_module(text).entry if i.opcode == "custom-call")
    # Borders of padding read nothing: 54 of 56 rows have three rows of the kernel, two have two.
    flops = 2 * 64 * (54 * 3 + 2 * 2) ** 2 * 256 * 256
    assert products(call) == [(flops, call)]


@pytest.mark.parametrize(
    ("target", "results", "read", "written"),
    [
        ("TopK", "(f32[64,8]{1,0}, s32[64,8]{1,0})", 64 * 32000 * 4, 2 * 64 * 8 * 4),
        # The last result is memory to work in.
        ("xla.gpu.ext.cub_sort_keys", "(f32[64,32000]{1,0}, u8[1024]{0})", 64 * 32000 * 4, 64 * 32000 * 4),
        ("a_kernel_of_ours", "(f32[64,8]{1,0}, s32[64,8]{1,0})", 0, 0),
    ],
)
def test_a_library_reads_its_operands_and_writes_its_results(
    target: str, results: str, read: int, written: int
) -> None:
    """XLA counts nothing for a custom call; of one that nobody knows nothing is sure."""
    text = f"""HloModule m
ENTRY e {{
  x = f32[64,32000]{{1,0}} parameter(0)
  ROOT c = {results} custom-call(x), custom_call_target="{target}"
}}"""
    (row,) = Account(parse_module(text)).rows
    assert (row.cost.bytes_read, row.cost.bytes_written) == (read, written)


@pytest.mark.parametrize(("trips", "n"), [(TRIPS, 7), ("", 1)])
def test_a_loop_in_a_small_call_is_one_launch_and_costs_all_its_iterations(trips: str, n: int) -> None:
    text = (
        (UNCOUNTED % trips).replace("ENTRY main {", "inside {")
        + """
ENTRY main {
  p = f32[1024] parameter(0)
  ROOT c = (s32[], f32[1024]) call(p), to_apply=inside, frontend_attributes={xla_cpu_small_call="true"}
}
"""
    )
    called, alone = (
        Account(parse_module(text), backend="cpu"),
        Account(parse_module(UNCOUNTED % trips), backend="cpu"),
    )
    (row,) = called.rows
    assert (row.runs, row.per_iteration, called.totals.cost) == (1, not trips, alone.totals.cost)
    timed = Account(parse_module(text), backend="cpu", times=CpuTimes(RELEASE))
    endless = Account(parse_module(text.replace(trips, "")), backend="cpu", times=CpuTimes(RELEASE))
    added = (timed.rows[0].us or 0.0) - (endless.rows[0].us or 0.0)
    assert added == pytest.approx((n - 1) * endless.totals.iteration_us, rel=0.1)
    floors = [fusion_floor(a, lambda _: True, 0, None).bytes_accessed for a in (called, alone)]
    assert floors[0] == floors[1] <= called.totals.cost.bytes_accessed
    assert row.cost.flops == 1024 * n + n + (not trips)


def test_the_lower_bound_reads_what_was_not_written_of_an_array_updated_in_place() -> None:
    text = TEXTS["updated_in_place"]
    alone = text.replace("(f32[1024], f32[1024]) tuple(updated, read)", "f32[8,128] bitcast(read)")
    # Read: the update, its place and the rest of the cache. Written: the update if it leaves, and the result.
    for program, written in ((text, 32 + 4096), (alone, 4096)):
        account = Account(parse_module(program), backend="gpu")
        floor = fusion_floor(account, lambda _: True, 0, None).bytes_accessed
        assert floor == 32 + 4 + (4096 - 32) + written <= account.totals.cost.bytes_accessed


@pytest.mark.parametrize(("blocks", "aliased", "written"), [(6, "", 4096), (1, "", 4096), (1, ALIASED, 0)])
def test_a_kernel_of_triton_writes_its_result_and_says_its_blocks(
    blocks: int, aliased: str, written: int
) -> None:
    config = f"backend_config={{grid_x = {blocks} : i32, grid_y = 1 : i32}}"
    call = f'custom-call(p), custom_call_target="__gpu$xla.gpu.triton"{aliased}, {config}'
    text = f"HloModule m\n\nENTRY e {{\n  p = f32[1024] parameter(0)\n  ROOT c = f32[1024] {call}\n}}\n"
    assert KernelCosts().instruction(parse_module(text).entry.root).bytes_accessed == written
