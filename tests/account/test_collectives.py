"""Collectives: who takes part, bytes on the wire, time, what hides it, and arrays gathered to keep a part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.account import Account, KernelTimes
from hlofuse.account.collectives import exchange_of, overlaps
from hlofuse.analysis.async_ops import replica_groups
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.rates import tabled_collective_us
from hlofuse.ir import parse_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.reports.common.model import Place
from hlofuse.reports.verdict.collectives import CollectiveRow, with_constraints
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)

H100 = load_device("h100_sxm")


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{}", ()),
        ("{{0}}", ((0,),)),
        ("{{0,1},{3,2}}", ((0, 1), (3, 2))),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[2,4]<=[4,2]T(1,0)", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("[4,2]<=[2,2,2]T(0,2,1)", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['x'=4] {'x'}", ((0, 1, 2, 3),)),
        ("mesh['x'=2,'y'=2] {}", ((0,), (1,), (2,), (3,))),
        ("mesh['x'=2,'y'=2] {'y'}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2] {1}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2] {'x'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'y','x'}", ((0, 2, 1, 3),)),
        ("mesh['x'=2,'y'=2], device_ids=(3,1,2,0) {'x'}", ((3, 2), (1, 0))),
        ("mesh['x'=2,'one'=1,'y'=4], device_ids=([4,2]T(1,0)) {'y'}", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("mesh['x'=8] {'x':(1)2}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['x'=8] {'x':(4)2}", ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("mesh['x'=8] {'x':(1)2,'x':(4)2}", ((0, 1, 4, 5), (2, 3, 6, 7))),
        ("maximal_mesh[device_id=3] {}", ((3,),)),
    ],
)
def test_groups_in_every_notation(text: str, groups: tuple[tuple[int, ...], ...]) -> None:
    assert replica_groups(text) == groups


@pytest.mark.parametrize("text", ["[8,2]<=[2,8]T(1,2)", "[8,0]<=[8]", "mesh['x'=2] {'y'}"])
def test_groups_that_name_no_devices_are_an_error(text: str) -> None:
    with pytest.raises(HlofuseError, match="names no groups of devices"):
        replica_groups(text)


SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


@pytest.mark.parametrize(
    ("operation", "participants", "wire"),
    [
        # 1,024 numbers of 4 bytes in 4 partitions.
        ("f32[1024] all-reduce(x), channel_id=1, groups=[1,4]<=[4], ALL, to_apply=sum", 4, 6144),
        ("f32[1024] all-reduce(x), channel_id=1, groups={{0,1},{2,3}}, ALL, to_apply=sum", 2, 4096),
        ("f32[1024] all-reduce(x), channel_id=1, groups={{0},{1},{2},{3}}, ALL, to_apply=sum", 1, 0),
        ("f32[1024] all-reduce(x), replica_groups={}, to_apply=sum", 2, 4096),  # across replicas
        ("f32[1024] all-reduce(x), channel_id=1, replica_groups={{0},{1}}, to_apply=sum", 4, 6144),
        ("f32[1024] all-reduce(x), channel_id=1, replica_groups={}, to_apply=sum", 8, 7168),
        ("f32[4096] all-gather(x), channel_id=1, groups=[2,4]<=[8], ALL, dimensions={0}", 4, 12288),
        ("f32[256] reduce-scatter(x), channel_id=1, groups=[2,4]<=[8], ALL, ADDED", 4, 3072),
        ("f32[1024] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}", 4, 3072),
        ("f32[1024] all-to-all(x), channel_id=1, replica_groups={}, dimensions={0}", 4, 3072),
        ("f32[1024] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2}}", 3, 4096),
        ("f32[1024] collective-permute(x), channel_id=1, source_target_pairs={{0,0},{1,1}}", 2, 0),
        ("f32[1024] collective-broadcast(x), channel_id=1, replica_groups={{0,1}}", 2, 4096),
    ],
)  # fmt: skip
def test_bytes_on_the_wire(operation: str, participants: int, wire: int) -> None:
    operation = operation.replace(" groups=", " replica_groups=").replace("ALL", "use_global_device_ids=true")
    operation = operation.replace("ADDED", "dimensions={0}, to_apply=sum")
    text = (
        f"HloModule m, replica_count=2, num_partitions=4\n{SUM}"
        f"ENTRY e {{\n  x = f32[1024] parameter(0)\n  ROOT r = {operation}\n}}\n"
    )
    module = parse_module(text)
    found = exchange_of(module.entry.root, module)
    assert found is not None
    assert (found.participants, found.bytes_on_wire) == (participants, wire)
    assert exchange_of(module.entry.root.operands[0], module) is None


def test_a_start_counts_what_it_starts() -> None:
    text = """HloModule m, num_partitions=2
ENTRY e {
  x = f32[1024] parameter(0)
  s = (f32[1024], f32[2048]) all-gather-start(x), channel_id=1, replica_groups={{0,1}},
    use_global_device_ids=true, dimensions={0}
  ROOT d = f32[2048] all-gather-done(s)
}
"""
    module = parse_module(text)
    start = module.entry.root.operands[0]
    found = exchange_of(start, module)
    assert found is not None
    assert (found.kind, found.participants, found.bytes_on_wire, found.size) == ("all-gather", 2, 4096, 8192)
    assert exchange_of(module.entry.root, module) is None


EIGHT = [list(range(8))]


def test_rates_that_xla_measured() -> None:
    def us(opcode: str, size: int, groups: list[list[int]], device: str = "h100_sxm") -> float | None:
        return tabled_collective_us(load_device(device), opcode, size, groups)

    # Bytes over the rate of the nearest power of two, in default_collective_perf_table.txtpb.
    assert us("all-gather", 1 << 20, EIGHT) == pytest.approx((1 << 20) / 33677287 * 1e3)
    nearest = us("all-gather", 1 << 20, EIGHT)
    assert nearest is not None
    assert us("all-gather", 3 << 19, EIGHT) != pytest.approx(nearest * 1.5)  # as near to 2 MiB: its rate
    assert us("all-gather", (3 << 19) - 1, EIGHT) == pytest.approx(nearest * 1.5, rel=1e-4)
    assert us("all-gather", 1 << 20, [[0, 1, 2, 3, 4, 5]]) == nearest  # 6 is as near to 8 as to 4
    assert us("all-gather", 1 << 20, [[0, 1, 2, 3, 4]]) == us("all-gather", 1 << 20, [[0, 1, 2, 3]])
    assert us("all-gather", 256, EIGHT) == pytest.approx(256 / 32064 * 1e3)  # below 1 KiB, its rate
    kinds = [
        us("collective-permute", 1 << 20, pairs) for pairs in ([[0, 1]], [[0, 1], [1, 2]], [[0, 1], [1, 0]])
    ]
    assert len({*kinds}) == 3
    assert us("all-gather", 1 << 20, [[7, 8]]) is None  # two hosts
    assert us("all-gather", 0, EIGHT) is None
    assert us("ragged-all-to-all", 1 << 20, EIGHT) is None
    assert us("all-gather", 1 << 20, EIGHT, "a100_sxm_80") is None
    assert us("all-gather", 1 << 20, EIGHT, "b200") != nearest


SCHEDULE = """HloModule m, is_scheduled=true, num_partitions=2
{sum}
f {{ a = f32[1024] parameter(0)
  ROOT n = f32[1024] negate(a) }}

ENTRY e {{
  x = f32[1024] parameter(0)
  before = f32[1024] fusion(x), kind=kLoop, calls=f
  s = f32[1024] all-reduce-start(before), channel_id=1, replica_groups={{{{0,1}}}},
    use_global_device_ids=true, to_apply=sum{config}
  k = f32[1024] fusion(x), kind=kLoop, calls=f
  d = f32[1024] all-reduce-done(s)
  after = f32[1024] fusion(d), kind=kLoop, calls=f
  ROOT t = (f32[1024], f32[1024]) tuple(k, after)
}}
"""
SYNCHRONOUS = ', backend_config={"collective_backend_config":{"is_sync":true}}'


@pytest.mark.parametrize(
    ("communication", "kernel", "config", "exposed", "between"),
    [
        (10.0, 4.0, "", 6.0, ["k"]),  # partly exposed
        (10.0, 10.0, "", 0.0, ["k"]),
        (10.0, 40.0, "", 0.0, ["k"]),  # hidden
        (10.0, 40.0, SYNCHRONOUS, 10.0, []),
        (None, 40.0, "", None, ["k"]),
    ],
)
def test_what_hides_a_collective(
    communication: float | None, kernel: float, config: str, exposed: float | None, between: list[str]
) -> None:
    module = parse_module(SCHEDULE.format(sum=SUM, config=config))
    names = {i.name: i for i in module.entry}
    start = names["s"]
    exchange = exchange_of(start, module)
    assert exchange is not None
    # A launch takes 1 µs, of a collective too, and holds up the kernels.
    times = {names["before"]: 3.0, names["k"]: kernel, names["after"]: 5.0}
    times[start] = None if communication is None else communication + 1  # type: ignore[assignment]
    found = overlaps([module.entry], times, {start: exchange}, 1.0)[start]
    assert found.is_asynchronous is (config == "")
    assert found.exposed_us == exposed
    assert [i.name for i in found.between] == between


STATE = "(s32[], f32[1024])"
PARTS = f"""t = {STATE} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = f32[1024] get-tuple-element(t), index=1"""
REST = f"""test {{ {PARTS}
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT }}
body {{ {PARTS}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  inside = f32[1024] fusion(v), kind=kLoop, calls=f
  ROOT r = {STATE} tuple(next, inside) }}
long {{ {PARTS}
  other = f32[1024] fusion(v), kind=kLoop, calls=f
  ROOT r = {STATE} tuple(i, other) }}
"""
COUNT = '{"known_trip_count":{"n":"5"}}'
BRANCHES = (
    "c = pred[] constant(1)\n  w = CALL conditional(c, z, z), true_computation={}, false_computation={}"
)


@pytest.mark.parametrize(
    ("call", "exposed"),
    [
        (f"w = CALL while(z), condition=test, body=body, backend_config={COUNT}", 20.0 - 5 * 3.0),
        ("w = CALL call(z), to_apply=body", 20.0 - 3.0),
        (BRANCHES.format("body", "long"), 20.0 - 7.0),
        (BRANCHES.format("long", "body"), 20.0 - 7.0),
    ],
)
def test_what_is_called_meanwhile_hides_a_collective(call: str, exposed: float) -> None:
    """A loop with all its iterations, of a conditional the longer branch."""
    text = SCHEDULE.format(sum=SUM, config="").replace("ENTRY", f"{REST}ENTRY")
    lines = f"i = s32[] constant(0)\n  z = {STATE} tuple(i, x)\n  {call.replace('CALL', STATE)}"
    text = text.replace(
        "k = f32[1024] fusion(x), kind=kLoop, calls=f",
        lines + "\n  k = f32[1024] get-tuple-element(w), index=1",
    )
    module = parse_module(text)
    names = {i.name: i for c in module.computations for i in c}
    times = {
        names[n]: us
        for n, us in [("before", 3.0), ("s", 21.0), ("inside", 3.0), ("other", 7.0), ("after", 5.0)]
    }
    start = names["s"]
    exchange = exchange_of(start, module)
    assert exchange is not None
    ran = [c for c in module.computations if c.name in ("body", "long", "e")]
    found = overlaps(ran, times, {start: exchange}, 1.0)
    assert found[start].exposed_us == exposed


def test_what_ends_elsewhere_is_not_known() -> None:
    text = SCHEDULE.format(sum=SUM, config="")
    beginning = text[: text.index("  d = ")] + "  ROOT t = (f32[1024], f32[1024]) tuple(k, s)\n}\n"
    account = KernelTimes(H100, RELEASE).account(parse_module(beginning))
    (one,) = account.collectives
    assert (one.overlap, one.exposed) == (None, None)
    assert account.totals.exposed_collectives_us is None


def test_the_account_counts_what_is_exposed() -> None:
    times = KernelTimes(H100, RELEASE)
    hidden = times.account(parse_module(SCHEDULE.format(sum=SUM, config="")), is_final=True)
    exposed = times.account(parse_module(SCHEDULE.format(sum=SUM, config=SYNCHRONOUS)), is_final=True)
    (one,), (other,) = hidden.collectives, exposed.collectives
    assert (one.us, one.exchange.bytes_on_wire) == (other.us, 4096)
    assert one.us is not None
    assert other.exposed == (one.us, True)
    assert exposed.totals.exposed_collectives_us == one.us
    assert one.exposed is not None
    kernel_us = hidden.by_name["k"].us
    assert kernel_us is not None
    assert one.exposed[0] == pytest.approx(one.us - kernel_us)
    assert exposed.totals.us is not None
    assert hidden.totals.us == pytest.approx(exposed.totals.us - kernel_us)
    alone = times.account(parse_module("HloModule m\nENTRY e {\n  ROOT x = f32[8] parameter(0)\n}\n"))
    assert alone.totals.exposed_collectives_us == 0


def test_without_a_schedule_or_a_rate_it_is_not_known() -> None:
    text = SCHEDULE.format(sum=SUM, config="")
    unscheduled = parse_module(text.replace("is_scheduled=true, ", ""))
    account = KernelTimes(H100, RELEASE).account(unscheduled)
    assert account.collectives[0].overlap is None
    assert account.totals.exposed_collectives_us is None
    assert Account(parse_module(text), backend="gpu").totals.exposed_collectives_us is None
    a100 = KernelTimes(load_device("a100_sxm_80"), RELEASE)
    bounded = a100.account(parse_module(SCHEDULE.format(sum=SUM, config=SYNCHRONOUS)))
    assert bounded.collectives[0].is_floor
    assert bounded.totals.exposed_is_floor
    assert bounded.totals.exposed_collectives_us == bounded.collectives[0].us  # bytes in the device's memory
    on_cpu = Account(parse_module(text.replace("is_scheduled=true, ", "")), backend="cpu").collectives
    assert all(c.overlap is not None and not c.overlap.is_asynchronous for c in on_cpu)


RESHARD = """HloModule m, is_scheduled=true, num_partitions=4

moved {{ p = f32[16,64] parameter(0)
  ROOT t = f32[64,16] transpose(p), dimensions={{1,0}} }}

part {{
  p = f32[64,16] parameter(0)
  id = u32[] parameter(1)
  table = u32[4] constant({{0,16,32,48}})
  row = u32[1] dynamic-slice(table, id), dynamic_slice_sizes={{1}}
  begin = u32[] reshape(row)
  zero = u32[] constant(0)
  s = f32[{kept},16] dynamic-slice(p, {begin}, zero), dynamic_slice_sizes={{{kept},16}}
  ROOT n = f32[{kept},16] negate(s)
}}

ENTRY e {{
  x = f32[4,64] parameter(0), sharding={{devices=[4,1]<=[4]}}
  other = u32[] parameter(1), sharding={{replicated}}
  g = f32[16,64] all-gather(x), channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true,
    dimensions={{0}}
  f = f32[64,16] fusion(g), kind=kInput, calls=moved
  id = u32[] partition-id()
  r = f32[{kept},16] fusion(f, {index}), kind=kLoop, calls=part
  ROOT t = (f32[{kept},16]{more_shape}) tuple(r{more})
}}
"""


DIVIDED: dict[str, object] = {"kept": 16, "index": "id", "begin": "begin", "more": "", "more_shape": ""}


@pytest.mark.parametrize(
    ("changed", "share"),
    [
        ({}, 4),
        ({"kept": 32}, 2),
        ({"kept": 33}, None),  # more than half
        ({"index": "other"}, None),  # the place depends on data
        ({"begin": "zero"}, None),  # every device keeps the same part
        ({"more": ", f", "more_shape": ", f32[64,16]"}, None),  # something else reads all
        ({"more": ", g", "more_shape": ", f32[16,64]"}, None),
    ],
)
def test_an_array_gathered_to_keep_a_part(changed: dict[str, object], share: int | None) -> None:
    account = Account(parse_module(RESHARD.format(**(DIVIDED | changed))), backend="gpu")
    (gather,) = account.collectives
    assert gather.sharding == "{devices=[4,1]<=[4]}"
    found = gather.resharding
    assert (found.share if found is not None else None) == share
    if found is not None:
        assert (found.gathered_bytes, found.is_whole, len(found.gathers)) == (4096, True, 1)


def test_a_slice_that_is_all_of_a_kernel_keeps_its_part() -> None:
    lines = RESHARD.format(**DIVIDED).replace("  s = ", "  ROOT s = ").split("\n")
    (gather,) = Account(
        parse_module("\n".join(x for x in lines if "negate" not in x)), backend="gpu"
    ).collectives
    assert gather.resharding is not None
    assert gather.resharding.share == 4


def test_the_first_screen_has_the_collectives(hlofuse: Run, tmp_path: Path) -> None:
    (tmp_path / "reshard.hlo").write_text(RESHARD.format(**DIVIDED))
    options = [tmp_path / "reshard.hlo", "--target", "gpu", "--device", "h100_sxm"]
    text = hlofuse("explain", *options).out
    assert "Collectives: 3.07 kB sent by each device, 18.14 µs not hidden by kernels" in text
    assert "  18.14 µs all-gather, 3.07 kB sent, 4 devices, g, synchronous\n" in text
    assert "  gathers the whole array (4.10 kB) on each device, then keeps 1/4:\n" in text
    found = json.loads(hlofuse("explain", *options, "--format", "json").out)
    (gather,) = found["collectives"]
    assert list(gather["resharding"].values()) == [["g"], 4096, True, 4, None]
    assert (gather["time_kind"], gather["overlap"]) == ("estimated", "synchronous")
    assert gather["groups"] == [[0, 1, 2, 3]]
    totals = found["totals"]
    assert totals["exposed_collectives_us"] == gather["exposed_us"]
    assert totals["exposed_collectives_kind"] == "estimated"


ITERATED = TEXTS["iterated"]
ONE_PLACE = TEXTS["one_place"]
GPU = ["--target", "gpu", "--device", "h100_sxm"]
OWN_ROWS = "dynamic-slice(w, k, z), dynamic_slice_sizes={4,64}"


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("dynamic-slice(g, n, zero), dynamic_slice_sizes={1,64}", "iterates over a divided dimension"),
        ("dynamic-slice(g, k, zero), dynamic_slice_sizes={1,64}", "gathers the same array each time"),
        ("slice(g), slice={[0:1], [0:64]}", "gathers the same array each time"),
        ("negate(x)", "gathers the same array each time"),
    ],
)
def test_a_loop_that_gathers_what_it_does_not_change(hlofuse: Run, part: str, line: str) -> None:
    text = ITERATED.replace("PART", part)
    assert (line in hlofuse("explain", "-", *GPU, stdin=text.encode()).out) == ("(g" in part)
    other = text.replace("(m, x, z)", "(m, p, z)").encode()
    assert "each time" not in hlofuse("explain", "-", *GPU, stdin=other).out


@pytest.mark.parametrize(
    ("part", "is_one"),
    [
        ("d = f32[8,64] dynamic-slice(g, k, z), dynamic_slice_sizes={8,64}", True),
        ("d = f32[9,64] dynamic-slice(g, k, z), dynamic_slice_sizes={9,64}", False),
        ("d = f32[16,64] negate(g)", False),
        ("w = f32[16,64] dynamic-update-slice(g, r, k, z)\n d = f32[4,64] " + OWN_ROWS, True),
        ("w = f32[16,64] dynamic-update-slice(g, r, k, z)\n d = f32[16,64] negate(w)", False),
        ("w = f32[32,64] concatenate(g, g), dimensions={0}\n d = f32[4,64] " + OWN_ROWS, True),
        ("w = f32[16,64] copy(g)\n d = f32[4,64] " + OWN_ROWS.replace("k", "i"), False),
    ],
)
def test_a_gather_for_one_place_says_how_to_send_less(hlofuse: Run, part: str, is_one: bool) -> None:
    found = hlofuse("explain", "-", *GPU, stdin=ONE_PLACE.replace("PART", part).encode()).out
    assert ("  g gathers a divided dimension to read or write it at one computed place:" in found) == is_one


@pytest.mark.parametrize(("rows", "zero", "is_less"), [(63, 0, True), (64, 0, False), (63, 1, False)])
def test_a_sum_of_few_rows_of_each_device_says_how_to_send_less(
    hlofuse: Run, rows: int, zero: int, is_less: bool
) -> None:
    """Half of the sum's bytes is the boundary: 2 · 3/4 · 256 rows of 256 B, and 3 · 63 of 260 B."""
    text = TEXTS["rows"].replace("ROWS", str(rows)).replace("ZERO", str(zero))
    found = hlofuse("explain", "-", *GPU, stdin=text.encode()).out
    line = "  r sums 65.5 kB, to which other devices add rows of 49.1 kB:\n    with_sharding_constraint of "
    assert (line in found) == is_less


CONSTRAINED = TEXTS["constrained"]


@pytest.mark.parametrize(
    ("spec", "near"),
    [
        ("{}, {}", "m.py:9 asks for P(None, None)"),
        (r"{}, {\"x\", \"y\"}", "m.py:9 asks for P(None, ('x', 'y'))"),
        (r"{\"x\"}, {}", "before"),  # the dimension stays divided
    ],
)
def test_a_gather_names_the_constraint_that_asks_for_it(spec: str, near: str) -> None:
    named = RESHARD.format(**DIVIDED).replace(
        "dimensions={0}\n", 'dimensions={0}, metadata={op_name="f/tanh"}\n'
    )
    given = CONSTRAINED.replace("SPEC", spec)
    other = given.replace("ROOT", 'u = f32[16,8] tanh(x), metadata={op_name="f/tanh"}\n  ROOT')
    unnamed = named.replace("f/tanh", "f/exp")
    for text, before, expected in (named, given, near), (unnamed, given, "before"), (named, other, "before"):
        (gather,) = Account(parse_module(text), backend="gpu").collectives
        program = parse_module(before)
        (row,) = with_constraints([CollectiveRow(Place("g"), "before", gather)], program)
        assert row.near == expected


def test_work_on_a_gathered_array_of_which_a_part_is_kept(hlofuse: Run, tmp_path: Path) -> None:
    call = 'custom-call(g), custom_call_target="library"'
    text = RESHARD.format(**DIVIDED).replace("fusion(g), kind=kInput, calls=moved", call)
    (tmp_path / "work.hlo").write_text(text)
    out = hlofuse("explain", tmp_path / "work.hlo", "--target", "gpu", "--device", "h100_sxm").out
    assert "  gathers the whole array (4.10 kB), computes with all of it, keeps 1/4:\n" in out
    assert "    divide f by jax.shard_map (g)\n" in out


def test_a_result_that_the_devices_do_not_divide(hlofuse: Run) -> None:
    out = hlofuse("explain", "-", *GPU, stdin=TEXTS["undivided"].encode()).out
    assert "  4 devices do not divide 13: a result stays divided only if padded to 16\n" in out


def test_a_collective_without_a_line_has_that_of_its_neighbour(hlofuse: Run, tmp_path: Path) -> None:
    """What XLA's partitioner adds has none. XLA combines sums over the same devices alone."""
    (tmp_path / "m.hlo").write_text(TEXTS["without_lines"])
    options = ["--target", "gpu", "--device", "h100_sxm", "--stage", "fusion-input"]
    lines = hlofuse("explain", tmp_path / "m.hlo", *options, "--limit", 0).out.splitlines()
    (gather,) = (line for line in lines if " all-gather, 3.07 kB sent, 4 devices" in line)
    (total,) = (line for line in lines if " all-reduce, 6.14 kB sent, 4 devices" in line)
    assert ", for a.py:3, " in gather
    assert ", from a.py:3, " in total
    assert (
        "Not combined with s.1: other devices." in hlofuse("explain", tmp_path / "m.hlo", "r", *options).out
    )


def test_every_collective_is_shown_where_it_is_asked_for(hlofuse: Run, tmp_path: Path) -> None:
    collective = (
        "sum_{0} = f32[{0}] all-reduce(given_{0}), channel_id={0}, replica_groups=[2,2]<=[4], to_apply=sum"
    )
    lines = [f"given_{n} = f32[{n}] parameter({n - 1})\n" + collective.format(n) for n in range(1, 6)]
    text = TEXTS["without_lines"].partition("  w = ")[0].replace("m, ", "m, is_scheduled=true, ")
    root = (
        "ROOT t = ("
        + ", ".join(f"f32[{n}]" for n in range(1, 6))
        + ") tuple(sum_1, sum_2, sum_3, sum_4, sum_5)\n}"
    )
    (tmp_path / "m.hlo").write_text("\n".join([text, *lines, root]))
    options = [tmp_path / "m.hlo", "--target", "gpu", "--device", "h100_sxm"]
    assert "2 more (--limit 0 shows all)" in hlofuse("explain", *options).out
    assert hlofuse("explain", *options, "--limit", "0").out.count(" all-reduce, ") == 5


def test_a_device_without_rates_has_lower_bounds(hlofuse: Run, tmp_path: Path) -> None:
    lines = [
        f"  r{n} = f32[1024] all-reduce(x{n}), channel_id={n}, replica_groups=[2,2]<=[4],"
        f" use_global_device_ids=true, to_apply=sum\n  x{n + 1} = f32[1024] negate(r{n})"
        for n in range(1, 4)
    ]
    body = "\n".join(lines)
    text = f"HloModule m, is_scheduled=true, num_partitions=4\n{SUM}ENTRY e {{\n"
    text += f"  x1 = f32[1024] parameter(0)\n{body}\n"
    text += "  ROOT end = f32[1024] negate(x4)\n}\n"
    (tmp_path / "equal.hlo").write_text(text)
    found = hlofuse("explain", tmp_path / "equal.hlo", "--target", "gpu", "--device", "a100_sxm_80").out
    assert "Collectives: 12.3 kB sent by each device, ≥ " in found
    assert found.count("2 groups of 2 devices") == 3  # three lines, each under its name without source lines


REPEATED = TEXTS["repeated"]


@pytest.mark.parametrize(
    ("first", "second", "size", "is_noted"),
    [
        ("jvp()", "remat2", 8, True),
        ("jvp()", "checkpoint/rematted_computation/mul", 8, True),
        ("jvp()", "remat2", 4, False),
        ("jvp()", "dot_general", 8, False),
        ("transpose(jvp())", "remat2", 8, False),
    ],
)
def test_a_gather_that_a_checkpoint_repeats(
    hlofuse: Run, tmp_path: Path, first: str, second: str, size: int, is_noted: bool
) -> None:
    text = REPEATED.replace("FIRST", first).replace("SECOND", second)
    text = text.replace("SIZE", str(size)).replace("WHOLE", str(4 * size))
    (tmp_path / "repeated.hlo").write_text(text)
    found = hlofuse("explain", tmp_path / "repeated.hlo", "--target", "gpu", "--device", "h100_sxm").out
    assert ("6.14 kB sent to gather again" in found) == is_noted
    assert ("keeps up to 8.19 kB" in found) == is_noted


def test_sums_over_all_that_was_gathered_of_which_a_part_is_kept(hlofuse: Run, tmp_path: Path) -> None:
    """A cumulative sum along a divided dimension; a part that no device's number chooses is not one."""
    found = []
    for number in ("id", "other"):
        (tmp_path / "sums.hlo").write_text(TEXTS["sums"].replace("NUMBER", number))
        found.append(hlofuse("explain", tmp_path / "sums.hlo", "--target", "gpu", "--device", "h100_sxm").out)
    line = "computes with all of it, keeps 1/4:\n    divide f by jax.shard_map (g)\n"
    assert [line in out for out in found] == [True, False]
