"""Bytes, times and memory of XLA:TPU's final modules."""

from __future__ import annotations

import json
import re
from math import inf
from pathlib import Path

import pytest

from hlofuse.account.bound import open_end
from hlofuse.account.tpu import TpuAccount, tile_bytes
from hlofuse.account.traffic import border_bytes
from hlofuse.cost.tpu import TpuDevice, tpu_devices, tpu_of
from hlofuse.ir import parse_module
from hlofuse.reports.common.facts import place_of
from hlofuse.reports.verdict.model import tiles_of
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("f32[256,64]{0,1:T(8,128)}", 256 * 64 * 4),
        ("f32[256,64]{1,0:T(8,128)}", 256 * 128 * 4),  # half of each line is padding
        ("f32[9,128]{1,0:T(8,128)}", 16 * 128 * 4),
        ("bf16[9,100]{1,0:T(8,128)(2,1)S(1)}", 16 * 128 * 2),
        ("pred[30,130]{1,0:T(8,128)(4,1)}", 32 * 256),
        ("s4[16,300]{1,0:T(8,128)(8,1)E(4)}", 16 * 384 // 2),
        ("bf16[5,100]{1,0:T(4,128)(2,1)}", 8 * 128 * 2),
        ("s32[1000]{0:T(1024)}", 1024 * 4),
        ("bf16[100]{0:T(256)(128)(2,1)}", 256 * 2),
        ("f32[]{:T(128)}", 128 * 4),
        ("f32[3,5,7]{2,1,0:T(8,128)}", 3 * 8 * 128 * 4),
        ("f32[3,5,7]{2,1,0:T(*,8,128)}", 16 * 128 * 4),  # 3 × 5 rows as one dimension
        ("f32[3,5,7]{2,1,0:T(*,16)}", 3 * 48 * 4),
        ("f32[0,7]{1,0:T(8,128)}", 0),
        ("f32[9,100]{1,0}", 9 * 100 * 4),
    ],
)
def test_tiles_pad_the_bytes_of_an_array(shape: str, size: int) -> None:
    module = parse_module(f"HloModule m\nENTRY e {{\n  ROOT p = {shape} parameter(0)\n}}\n")
    assert module.entry.root.shape.buffer_size == size


MODULE, PADDED, SCALARS, FUSED = (
    Path(__file__).with_name(f"{name}.hlo").read_text()
    for name in ("copied_beside", "padded", "scalars", "fused_collectives")
)


def test_cycles_over_the_clock_are_times_and_copies_hide_behind_kernels() -> None:
    account = TpuAccount(parse_module(MODULE), "v5e", is_final=True)
    rows = account.by_name
    assert rows["k"].us == 3000 / 1500
    assert rows["y"].us == pytest.approx(0.1)
    padded = 1024 * 128 * 4
    copying = padded / 819e9 * 1e6
    assert rows["start"].us == pytest.approx(copying - 0.1)  # the rest runs beside y
    assert account.totals.us == pytest.approx(2.0 + copying)
    assert not account.totals.floors
    # The copy reads HBM and the fusion writes it; what they exchange is in VMEM.
    assert account.totals.hbm_bytes == 2 * padded
    memory = account.memory  # memory_analysis() of libtpu has 0 where only asynchronous starts have tuples
    assert (memory.arguments, memory.outputs, memory.temporary) == (padded, padded, 0)
    assert (memory.vmem, memory.total) == (padded + 512 * 512 * 4, 2 * padded)
    assert TpuAccount(parse_module(MODULE), None).totals.us is None
    assert TpuAccount(parse_module(MODULE), "tpu7x").totals.floors == 2  # its clock is not published


def test_a_collective_in_fusions_runs_beside_the_kernels_between_them() -> None:
    account = TpuAccount(parse_module(FUSED), "v5e", is_final=True)
    gathered, scattered = account.collectives
    assert gathered.overlap is not None
    assert [i.name for i in gathered.overlap.between] == ["k"]
    assert (gathered.exchange.kind, gathered.exchange.bytes_on_wire) == ("all-gather", 7 << 22)
    # XLA:TPU sums what each device keeps.
    assert (scattered.exchange.kind, scattered.exchange.bytes_on_wire) == ("reduce-scatter", 7 << 19)
    assert scattered.overlap is not None
    assert not scattered.overlap.is_asynchronous
    assert [r.instruction.name for r in account.rows] == ["start", "k", "scatter"]
    # By cost_analysis(): the kernel counts without the array that is gathered beside it.
    assert account.by_name["k"].cost.bytes_accessed == 54_525_952
    cost = account.by_name["start"].cost
    assert (cost.bytes_accessed, cost.unknown) == ((27 << 22) + 4096, 0)
    for device, links in (("v5e", 180e9), ("v6e", 360e9), ("tpu7x", inf)):  # the last one's are not published
        row = TpuAccount(parse_module(FUSED), device, is_final=True).by_name["scatter"]
        assert row.us == pytest.approx((7 << 19) / links * 1e6)
        assert row.is_floor
    elsewhere = parse_module(FUSED.replace("channel_id=1", "channel_id=3", 1))
    assert TpuAccount(elsewhere, "v5e").collectives[0].overlap is None


def test_a_copy_to_the_host_has_only_a_lower_bound() -> None:
    host = MODULE.replace("128)S(1)}, f32[1024,100]{1,0:T(8,128)}", "128)S(5)}, f32[1024,100]{1,0:T(8,128)}")
    assert TpuAccount(parse_module(host), "v5e").by_name["start"].is_floor


@pytest.mark.parametrize("device", tpu_devices().values(), ids=tpu_devices())
def test_numbers_of_devices_agree_with_each_other(device: TpuDevice) -> None:
    """XLA's own peaks are at most the published ones, and a topology, a kind and a dump name the device."""
    assert 0.8 * device.peaks["bf16"] < device.xla_flops <= 1.01 * device.peaks["bf16"]
    assert 0.75 * device.memory_bandwidth < device.xla_memory_bandwidth <= device.memory_bandwidth
    version, _, form = device.xla_version.partition(" ")
    arguments = f"  version: TPU_VERSION_{version}\n" + (f'  variant: "{form}"\n' if form else "")
    assert {tpu_of(device.topology), tpu_of(device.kind), tpu_of(arguments)} == {device.name}
    if device.clock_rate_ghz:
        operations = 2 * device.mxu_size**2 * device.mxus * device.clock_rate_ghz * 1e9
        assert device.peaks["bf16"] / operations == pytest.approx(2 if device.name == "v6e" else 1, rel=0.01)


def test_a_tpu_device_needs_a_module_of_tpu(tmp_path: Path, hlofuse: Run) -> None:
    (tmp_path / "tpu.hlo").write_text(MODULE)
    shown = hlofuse("explain", tmp_path / "tpu.hlo", "--device", "v5e", columns=120)
    assert "2.64 µs est., 1.05 MB HBM + 3.15 MB VMEM moved, ≥ 1.57 MB VMEM temporary" in shown.out
    assert "(XLA:TPU's cycles at 1.5 GHz)" in shown.out
    named = hlofuse("explain", tmp_path / "tpu.hlo", "k", "--device", "v5e", columns=120).out
    assert "k: 2.00 µs.\n  fusion f32[1024,100]{1,0:T(8,128)}\n  The dumps do not say" in named
    assert "bytes; times need --device, such as v5e" in hlofuse("explain", tmp_path / "tpu.hlo").out
    (tmp_path / "early.hlo").write_text(re.sub(', backend_config=.*"}}', "", MODULE))
    early = hlofuse("explain", tmp_path / "early.hlo", "--device", "v5e", columns=120).out
    assert "(at least, by bytes of HBM and products)" in early
    (tmp_path / "other.hlo").write_text("HloModule m\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n")
    refused = hlofuse("explain", tmp_path / "other.hlo", "--device", "v5e")
    assert (refused.status, refused.out) == (2, "")
    assert "hlofuse capture --device v5e" in refused.err


def test_padding_and_layout_copies_are_named_with_their_dimension(tmp_path: Path, hlofuse: Run) -> None:
    account = TpuAccount(parse_module(PADDED), "v5e", is_final=True)
    tiles = tiles_of(account, lambda x: place_of(x, account.module))
    # Three reads and writes of 28 added lanes in 64 rows; the copy writes 64 → 128 lanes of 100 → 104 rows.
    lanes, both = 64 * 28 * 2, (104 * 128 - 6400) * 2
    assert [(a["name"], a["padded"], a["bytes"]) for a in tiles.arrays] == [
        ("t", "64 → 128 lanes, 100 → 104 sublanes", both),
        ("k", "100 → 128 lanes", 2 * lanes),
        ("x", "100 → 128 lanes", lanes),
    ]
    assert tiles.products == []
    (copied,) = tiles.copies
    assert (copied["name"], copied["layouts"], copied["reader"]) == ("t", ["{1,0}", "{0,1}"], None)
    (tmp_path / "n.hlo").write_text(
        PADDED.replace("ROOT t =", "t =").replace(
            "copy(k)\n",
            "copy(k)\n  v = (bf16[64,100]{0,1:T(8,128)(2,1)}) tuple(t)\n"
            '  ROOT r = bf16[64,100]{0,1} custom-call(v), custom_call_target="f", '
            'metadata={op_name="f" source_file="p.py" source_line=7}\n',
        )
    )
    read = hlofuse("explain", tmp_path / "n.hlo", columns=120).out
    assert "Layout copies: 1, 43.0 kB; most at p.py:7: {1,0} → {0,1} for r" in read
    (tmp_path / "m.hlo").write_text(PADDED)
    shown = hlofuse("explain", tmp_path / "m.hlo", columns=120).out
    assert "most at t: bf16[64,100], 64 → 128 lanes, 100 → 104 sublanes (+108%)" in shown
    assert "Layout copies: 1, 43.0 kB; most at t: {1,0} → {0,1} for the result" in shown


def test_temporary_memory_is_what_memory_analysis_counts() -> None:
    """By libtpu: two arrays of 512 bytes and two tuples, each in 16 KiB, whose padding counts twice."""
    memory = TpuAccount(parse_module(SCALARS), "v5e", is_final=True).memory
    assert memory.temporary == 4 * (2 * 16384 - 512)
    assert memory.total == memory.temporary + 512 + 512
    # Without a kernel that writes HBM, the scalars of the scalar core take none.
    alone = SCALARS.replace("T(128)}, u32[1]{0:T(128)}) fusion", "T(128)S(1)}, u32[1]{0:T(128)S(1)}) fusion")
    alone = alone.replace("u32[1]{0:T(128)} get-tuple", "u32[1]{0:T(128)S(1)} get-tuple")
    memory = TpuAccount(parse_module(alone), "v5e", is_final=True).memory
    assert (memory.temporary, memory.total) == (0, 1024)


def test_a_sparse_core_may_get_its_arrays_after_the_start() -> None:
    module = parse_module(Path(__file__).with_name("offloaded.hlo").read_text())
    assert TpuAccount(module, "v6e").totals.us is not None


def test_array_constants_count_and_scalars_do_not() -> None:
    text = TEXTS["array_constant"]
    memory = TpuAccount(parse_module(text), "v5e", is_final=True).memory
    assert (memory.constants, memory.total) == (0, 1024)
    text = text.replace("f32[4]{0:T(128)}", "f32[4,2]{1,0:T(8,128)}").replace(
        "{1, 2, 3, 4}", "{{1, 2}, {3, 4}, {5, 6}, {7, 8}}"
    )
    memory = TpuAccount(parse_module(text), "v5e", is_final=True).memory
    assert (memory.constants, memory.total) == (4096, 3 * 4096)


@pytest.mark.parametrize(
    ("types", "precision", "passes"),
    [
        ("f32 f32", "highest,highest", 6),
        ("f32 f32", "high,high", 3),
        ("f32 bf16", "highest,highest", 3),
        ("bf16 bf16", "highest,highest", 1),
    ],
)
def test_products_of_several_passes_are_named(hlofuse: Run, types: str, precision: str, passes: int) -> None:
    """By XLA:TPU's estimates such a product takes 5.7 and 2.9 times a default one (2048 × 2048 on a v5e)."""
    a, b = (f"{kind}[1024,1024]{{1,0:T(8,128)}}" for kind in types.split())
    text = f"""HloModule m, is_scheduled=true
ENTRY e {{ a = {a} parameter(0)
  b = {b} parameter(1)
  ROOT y = f32[1024,1024]{{1,0:T(8,128)}} convolution(a, b), dim_labels=bf_io->bf, \
operand_precision={{{precision}}} }}
"""
    row = TpuAccount(parse_module(text), "v5e").by_name["y"]
    assert row.us == pytest.approx(max(2 * 1024**3 / 197e12 * passes, row.cost.bytes_accessed / 819e9) * 1e6)
    shown = hlofuse("explain", "-", "--device", "v5e", columns=120, stdin=text.encode()).out
    less = {6: " (high 3, default 1)", 3: " (default 1)"}.get(passes)
    assert (f"Precision: 1 product in {passes} MXU passes{less}; most at y" in shown) == (passes > 1)


@pytest.mark.parametrize(("rounds", "shift"), [(15, "shift-left"), (14, "shift-left"), (15, "add")])
def test_random_bits_of_a_hash_are_named(hlofuse: Run, rounds: int, shift: str) -> None:
    shape = "u32[1024,1024]{1,0:T(8,128)}"
    lines = [f"x0 = {shape} parameter(0)", f"n = {shape} parameter(1)"]
    for k in range(rounds):
        lines += [f"l{k} = {shape} {shift}(x{k}, n)", f"r{k} = {shape} shift-right-logical(x{k}, n)"]
        lines += [f"o{k} = {shape} or(l{k}, r{k})", f"x{k + 1} = {shape} xor(o{k}, x{k})"]
    hash = "\n".join([*lines[:-1], f"ROOT {lines[-1]}"])
    call = f"ROOT f = {shape} fusion(a, b), kind=kLoop, calls=h"
    text = f"HloModule m, is_scheduled=true\nh {{\n{hash}\n}}\nENTRY e {{ a = {shape} parameter(0)\n"
    text += f"b = {shape} parameter(1)\n{call}\n}}"
    shown = hlofuse("explain", "-", "--device", "v5e", columns=120, stdin=text.encode()).out
    assert ("Random bits: 1 kernel, 15.36 µs (100%), most at f; " in shown) == (
        (rounds, shift) == (15, "shift-left")
    )


def test_memory_names_an_array_that_is_mostly_padding(tmp_path: Path, hlofuse: Run) -> None:
    text = TEXTS["two_tilings"]
    (tmp_path / "m.hlo").write_text(text)
    shown = " ".join(hlofuse("memory", tmp_path / "m.hlo").out.split())
    assert ": Change its shape, such as by merging small dimensions: all but 8.19 kB" in shown
    (tmp_path / "n.hlo").write_text(text.replace("f32[1024,2]", "f32[16,128]"))
    assert "Change its shape" not in hlofuse("memory", tmp_path / "n.hlo").out


def test_a_view_in_a_fusion_of_its_own_is_read_by_its_reader() -> None:
    module = parse_module(TEXTS["view_inside"])
    reads, _ = border_bytes(module.entry.root)
    assert list(reads.values()) == [4096]


@pytest.mark.parametrize(
    ("operation", "read", "written"),
    [
        ("{1,0} scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0}, PLACES", 808, 800),
        ("{0,1} scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0}, PLACES", 808, 6400),
        ("{1,0} dynamic-update-slice(a, u, z, z)", 804, 800),
        ("{1,0} negate(a)", 25_600, 25_600),
    ],
)
def test_an_update_of_an_argument_costs_its_part_alone_or_in_a_fusion(
    operation: str, read: int, written: int
) -> None:
    """A scatter writes whole sectors for each window."""
    places = "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"
    table = f"f32[64,100]{operation.partition(' ')[0]}"
    others = "i = s32[2,1] parameter(1)\n u = f32[2,100] parameter(2)\n z = s32[] parameter(3)"
    given = f"a = {table} parameter(0)\n {others}"
    body = f"{given}\n ROOT r = f32[64,100]{operation.replace('PLACES', places)}"
    summed = "sum {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}"
    call = f"{given}\n ROOT r = {table} fusion(a, i, u, z), kind=kLoop, calls=f"
    for text in (f"ENTRY e {{\n {body}\n}}", f"f {{\n {body}\n}}\nENTRY e {{\n {call}\n}}"):
        reads, writes = border_bytes(parse_module(f"HloModule m\n{summed}\n{text}\n").entry.root)
        assert (sum(reads.values()), writes) == (read, {0: written})


def test_a_gather_of_rows_reads_whole_tiles() -> None:
    text = TEXTS["gathered_rows"]
    (row,) = TpuAccount(parse_module(text), "v5e").rows
    assert row.cost.bytes_read == 64 * 8 * 256 * 4 + 128 * 4
    assert row.cost.bytes_written == 64 * 256 * 4
    (plain,) = TpuAccount(parse_module(re.sub(r":T\([^}]*", "", text)), "v5e").rows
    assert plain.cost.bytes_read == 64 * 200 * 4 + 64 * 4


def test_bytes_are_those_of_cost_analysis() -> None:
    """By libtpu: a semaphore takes a tile, a tuple 512 bytes; a gather of elements reads a tile for each."""
    start = TpuAccount(parse_module(MODULE), "v5e").by_name["start"].cost
    padded = 1024 * 128 * 4
    assert (start.bytes_read, start.bytes_written) == (padded + 512, 3 * padded + 4096)
    text = TEXTS["gathered_and_scattered"]
    rows = TpuAccount(parse_module(text), "v5e").by_name
    assert rows["g"].cost.bytes_read == 128 * 4 * 1024 + 512
    assert rows["k"].cost.bytes_written == 5 * 1024 * 4
    tiles = 128 * 4 * 1024
    assert (rows["r"].cost.bytes_read, rows["r"].cost.bytes_written) == (tiles + 512 + 512, tiles)
    # Nested or not, a gather reads a tile for each element and a scatter writes it, too.
    assert [tile_bytes(rows[name].instruction) for name in "gkr"] == [tiles, 2 * tiles, 2 * tiles]
    assert rows["r"].us == pytest.approx(2 * tiles / 738e9 * 1e6, rel=1e-3)
    assert not rows["r"].is_floor
    last = "f32[5000]{0:T(1024)} fusion(k, i, g), kind=kCustom, calls=inner"
    reversed_ = text.replace(last, "f32[5000]{0:T(1024)} reverse(k), dimensions={0}")
    row = TpuAccount(parse_module(reversed_), "v5e").by_name["r"]
    assert open_end(row) == "XLA:TPU counts 41.0 kB, but no time"
    # A reshape to other tiles takes longer than its bytes.
    reshaped = text.replace(last, "f32[8,625]{1,0:T(8,128)} reshape(k)")
    row = TpuAccount(parse_module(reshaped), "v5e").by_name["r"]
    assert row.us == pytest.approx(6 * 2 * 5120 * 4 / 819e9 * 1e6)
    assert not row.is_floor


def test_kernels_and_diff_have_the_times_of_a_tpu(tmp_path: Path, hlofuse: Run) -> None:
    (tmp_path / "a.hlo").write_text(MODULE)
    (tmp_path / "b.hlo").write_text(MODULE.replace('"3000"', '"6000"'))
    listed = json.loads(hlofuse("kernels", tmp_path / "a.hlo", "--device", "v5e", "--format", "json").out)
    assert {k["name"]: k["time_us"] for k in listed["kernels"]}["k"] == 2.0
    shown = hlofuse("diff", tmp_path / "a.hlo", tmp_path / "b.hlo", "--device", "v5e", columns=200).out
    assert "estimated time on v5e: 2.64 µs → 4.64 µs (+76%)" in shown
    (tmp_path / "c.hlo").write_text(FUSED)
    counted = hlofuse("stats", tmp_path / "c.hlo").out
    assert "3 kernels" in counted
    assert "not counted" not in counted


@pytest.mark.parametrize(
    ("operand", "result", "attributes", "tiles", "size"),
    [
        # Rows of 100 lanes in tiles of 8 by 128; a result that is padded moves no more.
        ("f32[500,100]{1,0:T(8,128)}", "f32[64,100]{1,0:T(8,128)}", "{1} {0} {1,100}", 64, 4096),
        ("f32[500,300]{0,1:T(8,128)}", "f32[64,3]{1,0:T(8,128)}", "{1} {0} {1,3}", 64, 4096),
        ("f32[500,300]{1,0:T(8,128)}", "f32[64,300]{1,0:T(8,128)}", "{1} {0} {1,300}", 64, 3 * 4096),
        ("bf16[4096]{0:T(1024)(128)(2,1)}", "bf16[32,2]{1,0:T(8,128)(2,1)}", "{} {0} {1}", 64, 2048),
    ],
)
def test_each_slice_of_a_gather_touches_whole_tiles(
    operand: str, result: str, attributes: str, tiles: int, size: int
) -> None:
    offset, collapsed, slices = attributes.split()
    indices = "s32[32,2]" if offset == "{}" else "s32[64]"
    text = f"""HloModule m
ENTRY e {{
  x = {operand} parameter(0)
  i = {indices} parameter(1)
  ROOT g = {result} gather(x, i), offset_dims={offset}, collapsed_slice_dims={collapsed}, \
start_index_map={{0}}, index_vector_dim={2 if offset == "{}" else 1}, slice_sizes={slices}
}}
"""
    assert tile_bytes(parse_module(text).entry.root) == tiles * size


def test_a_program_that_does_not_fit_says_so(tmp_path: Path, hlofuse: Run) -> None:
    (tmp_path / "m.hlo").write_text(MODULE.replace("f32[1024,100]", "f32[20480000,100]"))
    (tmp_path / "hlofuse.json").write_text(
        '{"schema": "hlofuse.stamp/1", "backend": "tpu", "device": "v5e", "error": "RESOURCE_EXHAUSTED: no"}'
    )
    shown = hlofuse("explain", tmp_path / "m.hlo", "--device", "v5e", columns=120).out
    assert "Note: XLA did not finish: RESOURCE_EXHAUSTED: no." in shown
    assert "21.0 GB do not fit in 17.2 GB (16 GiB) (arrays, advice: hlofuse memory)" in shown
    assert "not fit" not in hlofuse("explain", tmp_path / "m.hlo", "--device", "v5p").out


def test_a_loop_that_xla_creates_for_a_scatter_is_named_with_its_line(tmp_path: Path, hlofuse: Run) -> None:
    text = TEXTS["scatter_loop"]
    of_first_sum = text.replace('"1500"}', '"1500"}, metadata={source_file="p.py" source_line=20}')
    for kind, line, label in (("scatter", 10, "  loop for scatter"), ("while", 20, "")):
        for program, place in ((text, 10), (of_first_sum, line)):
            (tmp_path / "m.hlo").write_text(program.replace("/scatter", f"/{kind}"))
            shown = hlofuse("explain", tmp_path / "m.hlo", "--device", "v5e", columns=120).out
            assert re.search(rf"y, 70 times +p\.py:{place}{label}$", shown, re.MULTILINE)
