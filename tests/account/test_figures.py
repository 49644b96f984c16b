"""Figures of accounts, worked out by hand: steps of fusion, flips, floors, savings scaled to measurements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlofuse.account import Account, KernelTimes, Totals, account, flips
from hlofuse.account.account import Launched, scaled_saving, scaled_time, share_of_change, totals_of
from hlofuse.account.bound import fusion_floor
from hlofuse.account.figures import KernelTime, PairDetail, StepCost, us
from hlofuse.account.floor import floor_us, scheduled_us
from hlofuse.account.traffic import KernelCosts, scattered_bytes, written_together
from hlofuse.analysis.cost import Cost
from hlofuse.cost.gpu.device import DeviceDescription, load_device
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Instruction
from hlofuse.ir.record import replace
from hlofuse.releases import AROUND_FUSION as RELEASE

H100 = load_device("h100_sxm")


def kernel(total: float, compute: float, read: int, written: int, flops: int) -> KernelTime:
    return KernelTime(total, total, compute, read, written, flops, "loop", 1, 128, True)


STEP = StepCost(kernel(5, 2, 100, 40, 10), kernel(7, 3, 60, 30, 50), kernel(8, 4, 120, 30, 90), 2, True, 1.5)


def test_a_step_saves_its_part_of_the_producer_and_what_the_consumer_takes_less() -> None:
    assert STEP.us_saved == (1.5 + 5) / 2 + 7 - 8
    assert STEP.bytes_less == (100 + 40) // 2 + (60 + 30) - 120 - 30
    assert STEP.us_compute_more == 4 - 3 - 2 / 2
    assert STEP.evaluations == (90 - 50) / 10
    assert [name for name, _ in STEP.kernels] == ["producer", "consumer", "fused"]


def test_a_producer_that_stays_saves_nothing_of_its_own() -> None:
    found = replace(STEP, leaves=False)
    assert found.us_saved == 7 - 8
    assert found.bytes_less == (60 + 30) - 120 - 30
    assert found.us_compute_more == 4 - 3
    assert replace(STEP, producer=kernel(5, 2, 100, 40, 0)).evaluations == 1.0


def test_a_kernel_is_bound_by_what_takes_longer() -> None:
    assert kernel(3, 2, 0, 0, 0).bound_by == "memory"
    assert kernel(2, 3, 0, 0, 0).bound_by == "compute"
    assert kernel(2, 2, 0, 0, 0).bound_by == "memory"
    assert us(1) == pytest.approx(us(1_000_000) / 1_000_000)
    assert PairDetail(STEP, 9.0, 7.5, 2, (), ()).us_saved == 1.5


@pytest.mark.parametrize(
    ("number", "factor", "grows"),
    [
        ("memory_bandwidth", 1.7, True),
        ("memory_bandwidth", 20.0, True),
        ("l2_cache_size", 1 / 3, False),
        ("core_count", 5.0, True),
        ("clock_rate_ghz", 1 / 1.3, False),
        ("fpus_per_core", 6.0, True),
    ],
)
def test_a_flip_is_found_to_a_third_of_a_percent(
    monkeypatch: pytest.MonkeyPatch, number: str, factor: float, grows: bool
) -> None:
    """`pays` is a threshold on one number here; the decision on the device itself is no."""
    start = getattr(H100, number)
    limit = start * factor

    def pays(_model: Any, _producer: Any, device: DeviceDescription) -> bool:
        value: float = getattr(device, number)
        return bool(value >= limit if grows else value <= limit)

    monkeypatch.setattr(flips, "pays", pays)
    model: Any = KernelTimes(H100, RELEASE).model
    (found,) = flips.flips(model, model)
    assert (found.number, found.now) == (number, start)
    assert found.value == pytest.approx(limit, rel=0.004, abs=1)
    there: dict[str, Any] = {number: found.value}
    assert pays(None, None, replace(H100, **there))


@pytest.mark.parametrize(("factor", "count"), [(31.9, 1), (32.1, 0), (1 / 31.9, 1), (1 / 32.1, 0)])
def test_flips_are_looked_for_up_to_a_factor_of_32(
    monkeypatch: pytest.MonkeyPatch, factor: float, count: int
) -> None:
    limit = H100.memory_bandwidth * factor

    def pays(_model: Any, _producer: Any, device: DeviceDescription) -> bool:
        return device.memory_bandwidth >= limit if factor > 1 else device.memory_bandwidth > limit

    monkeypatch.setattr(flips, "pays", pays)
    model: Any = KernelTimes(H100, RELEASE).model
    assert len(flips.flips(model, model)) == count


def test_the_nearest_flip_is_first_and_without_an_estimate_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pays(_model: Any, _producer: Any, device: DeviceDescription) -> bool | None:
        if device.l2_cache_size > H100.l2_cache_size:
            return None
        more_cores, less_memory = device.core_count > 600, device.memory_bandwidth < 2e12
        return more_cores or less_memory

    monkeypatch.setattr(flips, "pays", pays)
    model: Any = KernelTimes(H100, RELEASE).model
    assert [f.number for f in flips.flips(model, model)] == ["memory_bandwidth", "core_count"]
    monkeypatch.setattr(flips, "pays", lambda *_: None)
    assert flips.flips(model, model) == ()


CHAIN = """HloModule m
ENTRY e {
  p = f32[1048576]{0} parameter(0)
  a = f32[1048576]{0} negate(p)
  b = f32[1048576]{0} exponential(a)
  ROOT c = f32[1048576]{0} tanh(b)
}
"""


@pytest.mark.parametrize(("flops", "computes"), [(0, False), (10**9, True)])
def test_the_floor_is_memory_or_arithmetic_whichever_takes_longer(flops: int, computes: bool) -> None:
    account = KernelTimes(H100, RELEASE).account(parse_module(CHAIN))
    found = fusion_floor(account, lambda _: True, flops, H100)
    assert found.bytes_accessed == 2 * 4 * 1048576
    memory = found.bytes_accessed / H100.memory_bandwidth * 1e6
    arithmetic = flops / (2 * H100.core_count * H100.fpus_per_core * H100.clock_rate_ghz * 1e9) * 1e6
    assert (arithmetic > memory) is computes
    assert found.us == pytest.approx(max(memory, arithmetic) + H100.launch_overhead_us)


def test_kernels_that_fusion_cannot_change_keep_their_bytes_and_time() -> None:
    account = KernelTimes(H100, RELEASE).account(parse_module(CHAIN))
    unchanged = account.by_name["b"]
    found = fusion_floor(account, lambda x: x.name != "b", 0, H100)
    assert found.bytes_accessed == account.totals.cost.bytes_accessed == 3 * 2 * 4 * 1048576
    memory = 2 * 2 * 4 * 1048576 / H100.memory_bandwidth * 1e6
    assert unchanged.total_us is not None
    assert found.us == pytest.approx(unchanged.total_us + memory + H100.launch_overhead_us)
    everything = fusion_floor(account, lambda _: False, 0, H100)
    assert everything.bytes_accessed == account.totals.cost.bytes_accessed
    assert everything.us == pytest.approx(account.totals.us)


def test_a_floor_of_bytes_is_bytes_over_the_bandwidth() -> None:
    (row,) = (r for r in Account(parse_module(CHAIN)).rows if r.instruction.name == "a")
    cost = Cost(bytes_read=int(H100.memory_bandwidth), bytes_written=int(H100.memory_bandwidth))
    assert floor_us(row.instruction, cost, H100) == pytest.approx(2e6)


def test_without_a_model_the_scheduler_counts_a_hundredth_of_its_own_costs() -> None:
    """By XLA 0 for what launches nothing, 1000 for a call of a library, else 1."""
    call = 'custom-call(a), custom_call_target="f"'
    text = CHAIN.replace("negate(p)", "bitcast(p)").replace("exponential(a)", call)
    found = {x.name: scheduled_us(H100, lambda _: 3.0, x) for x in parse_module(text).entry}
    assert found == {"p": 0.0, "a": 0.0, "b": 10.0, "c": 0.01}


def launched(
    name: str, us: float | None, runs: int = 1, measured: float | None = None, **how: Any
) -> Launched:
    row = next(r for r in Account(parse_module(CHAIN), backend="gpu").rows if r.instruction.name == name)
    return replace(row, us=us, runs=runs, measured_us=measured, **how)


def test_sums_count_each_run() -> None:
    one = Cost(3, 2, 100, 50, 1)
    rows = [
        launched("a", 2.0, 5, cost=one),
        launched("b", 7.0, 3, cost=one, is_floor=True, per_iteration=True),
        launched("c", 1.0, 4, cost=one, kind="copy"),
    ]
    found = totals_of(rows, timed=True)
    assert (found.kernels, found.launches, found.per_iteration) == (3, 12, 1)
    assert found.cost == Cost(36, 24, 1200, 600, 3)
    assert (found.copies, found.copy_bytes) == (4, 600)
    assert (found.modelled_us, found.floor_us, found.floors) == (2 * 5 + 4, 21, 1)
    assert found.us == 35
    assert totals_of(rows, timed=False).us is None
    assert found.is_floor
    assert not totals_of([rows[0], launched("a", None, 0)], timed=True).is_floor  # never runs
    assert totals_of([rows[0], launched("a", None)], timed=True).is_floor


@pytest.mark.parametrize("kind", ["copy", "library", "fusion"])
@pytest.mark.parametrize(("us", "is_floor"), [(None, False), (5.0, False), (5.0, True)])
@pytest.mark.parametrize(("per_iteration", "in_branch"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("runs", [0, 1, 3])
def test_a_row_counts_as_often_as_it_runs_and_rows_add_up(
    kind: Any, us: float | None, is_floor: bool, per_iteration: bool, in_branch: bool, runs: int
) -> None:
    call = CHAIN.replace("exponential(a)", 'custom-call(a), custom_call_target="f"')
    row = next(r for r in Account(parse_module(call), backend="gpu").rows if r.instruction.name == "b")
    how: dict[str, Any] = {"per_iteration": per_iteration, "in_branch": in_branch, "is_floor": is_floor}
    row = replace(
        row, kind=kind, runs=runs, us=us, cost=Cost(3, 2, 100, 50, 1), wait_us=0.5, once_us=2.0, **how
    )
    time, copies = (us or 0.0) * runs, runs * (kind == "copy")
    has_run, is_open = runs > 0, is_floor and kind == "library"
    expected = Totals(
        1,
        Cost(3 * runs, 2 * runs, 100 * runs, 50 * runs, 1),
        launches=runs,
        per_iteration=per_iteration,
        iteration_us=((us or 0.0) - 2.0) * runs * per_iteration,
        copies=copies,
        copy_bytes=150 * copies,
        in_branches=in_branch,
        without_time=us is None and has_run,
        host_wait_us=0.5 * runs,
        open_ended=is_open and has_run,
        modelled_us=0.0 if is_floor else time,
        floor_us=time if is_floor else 0.0,
        floors=is_floor,
    )
    assert totals_of([row], timed=True) == expected
    nothing, twice = totals_of([], timed=True), totals_of([row, row], timed=True)
    assert twice.cost == Cost(6 * runs, 4 * runs, 200 * runs, 100 * runs, 2)
    for name in set(Totals.__struct_fields__) - {"cost"}:
        zero, one, two = (getattr(t, name) for t in (nothing, expected, twice))
        assert two == (one if one == zero else 2 * one), name


class _Rows:
    """What a saving asks of an account."""

    row_keys = Account.row_keys

    def __init__(self, rows: list[Launched], overhead: float | None = 1.0) -> None:
        self.rows, self.launch_overhead_us = rows, overhead
        measured = sum(r.measured_us or 0.0 for r in rows)
        self.totals = replace(totals_of(rows, timed=True), measured_us=measured)


def saving(base: list[Launched], changed: list[Launched], overhead: float | None = 1.0) -> float | None:
    first: Any = _Rows(base, overhead)
    second: Any = _Rows(changed, overhead)
    found = scaled_saving(first, second)
    left = scaled_time(first, second)
    assert left is None if found is None else left == pytest.approx(first.totals.measured_us - found)
    return found


def test_measured_times_shrink_as_estimates_do() -> None:
    base = [launched("a", 2.0, 1, 10.0), launched("b", 6.0, 1, 20.0), launched("c", 2.0, 1, 6.0)]
    # `a` stays; of 8 µs that were estimated for the others 2 µs are left, so 3/4 of 26 µs are saved.
    changed = [launched("a", 2.0), launched("a", 2.0)]
    assert saving(base, changed) == pytest.approx(26.0 * (1 - 2.0 / 8.0))
    assert saving(base, base) == 0
    assert saving(base, [*base, launched("b", 5.0, 2)]) == pytest.approx(-10.0)


def test_a_change_touches_the_kernels_that_are_not_the_same_after_it() -> None:
    base: Any = _Rows([launched("a", 2.0), launched("b", 3.0, 2), launched("c", 2.0)])
    changed: Any = _Rows([launched("a", 2.0), launched("b", 3.0)])
    assert share_of_change(base, changed) == pytest.approx(8.0 / 10.0)
    assert share_of_change(base, base) == share_of_change(_Rows([]), changed) == 0.0  # type: ignore[arg-type]
    base.times = SimpleNamespace(kind=lambda _: "loop", device=SimpleNamespace(error=lambda _: 2.0))
    assert [account.least_saving(base, changed, apart=a) for a in (False, True)] == [(8 - 3) / 2, 4 - 6]


@pytest.mark.parametrize(
    ("name", "flops", "bytes", "kind", "saved"),
    [
        ("b", 270, 134, "loop", 3 * (9 - 1) - 3 * (5 - 1)),
        ("b", 269, 134, "loop", 0),  # less than nine tenths of the work
        ("b", 270, 135, "loop", 0),  # two operations for each byte
        ("b", 270, 134, "memcpy", 0),
        ("a", 270, 134, "loop", 0),  # nothing is new
        ("b", 500, 151, "loop", 3 * (9 - 1)),  # larger than the cache
    ],
)
def test_kernels_in_the_l2_cache_save_what_they_took(
    name: str, flops: int, bytes: int, kind: str, saved: float
) -> None:
    device = SimpleNamespace(caches=SimpleNamespace(l2=150))
    base, changed = (
        _Rows([launched(n, us, 3, cost=Cost(f, 0, size), launch_us=1.0)])
        for n, us, f, size in (("a", 9.0, 300, 100), (name, 9.0 if name == "a" else 5.0, flops, bytes))
    )
    base.times = SimpleNamespace(kind=lambda _: kind, device=device)  # type: ignore[attr-defined]
    assert account.saving_in_cache(base, changed) == saved  # type: ignore[arg-type]


def test_what_is_not_measured_or_estimated_is_not_scaled() -> None:
    base = [launched("a", 2.0, 1, 10.0), launched("b", 6.0, 1, 20.0)]
    assert saving(base, base[:1], overhead=None) is None
    assert saving([launched("a", 2.0)], []) is None
    assert saving([launched("a", 2.0), *base[1:]], base[1:]) is None
    assert saving(base, [base[0], launched("c", None)]) is None
    assert saving(base, [base[0], launched("c", 3.0, is_floor=True)]) is None
    # The lower bound of a copy is near its time.
    assert saving(base, [base[0], launched("c", 3.0, is_floor=True, kind="copy")]) == pytest.approx(10.0)


def scatter(shape: str, updates: str, window: str, inserted: str, dims: str) -> Instruction:
    module = parse_module(f"""HloModule m
last {{ a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }}
ENTRY e {{
  x = {shape} parameter(0)
  i = s32[8,1] parameter(1)
  u = {updates} parameter(2)
  ROOT s = {shape} scatter(x, i, u), update_window_dims={{{window}}}, inserted_window_dims={{{inserted}}},
    scatter_dims_to_operand_dims={{{dims}}}, index_vector_dim=1, to_apply=last
}}""")
    return module.entry.root


@pytest.mark.parametrize(
    ("found", "together", "moved"),
    [
        (scatter("f32[64,64]{1,0}", "f32[8,64]", "1", "0", "0"), 256, 8 * 256),
        (scatter("f32[64,64]{1,0}", "f32[8,64]", "1", "1", "1"), 4, 8 * 64 * 32),
        (scatter("f32[64,64]{0,1}", "f32[8,64]", "1", "1", "1"), 256, 8 * 256),
        (scatter("f32[64,8,4]{2,1,0}", "f32[8,8,4]", "1,2", "0", "0"), 128, 8 * 128),
        (scatter("f32[64,8,4]{2,1,0}", "f32[8,8,2]", "1,2", "0", "0"), 8, 8 * 8 * 32),
        (scatter("f32[64,8]{1,0}", "f32[8,8]", "1", "0", "0"), 32, 8 * 32),
        (scatter("f32[64,7]{1,0}", "f32[8,7]", "1", "0", "0"), 28, 8 * 32),
    ],
)
def test_a_window_writes_whole_sectors(found: Instruction, together: int, moved: int) -> None:
    assert written_together(found) == together
    assert scattered_bytes(found) == moved
    cost = KernelCosts().instruction(found)
    # The sectors are read, as are the indices and the updates.
    assert cost.bytes_written == moved
    assert cost.bytes_read == moved + 8 * 4 + found.operands[2].shape.byte_size


def moved(inside: str, call: str, result: str = "f32[16]") -> tuple[int, int]:
    module = parse_module(f"HloModule m\ninside {{\n{inside}\n}}\nENTRY e {{\n{call}\n}}\n")
    cost = KernelCosts().instruction(module.entry.root)
    return cost.bytes_read, cost.bytes_written


def test_a_fusion_reads_what_its_parts_read_at_most_all() -> None:
    call = "  x = f32[64] parameter(0)\n  ROOT f = f32[%d] fusion(x), kind=kLoop, calls=inside"
    two = """  p = f32[64] parameter(0)
  a = f32[%d] slice(p), slice={[0:%d]}
  b = f32[%d] slice(p), slice={[1:%d]}
  ROOT r = f32[%d] add(a, b)"""
    assert moved(two % (8, 8, 8, 9, 8), call % 8) == (2 * 32, 32)
    assert moved(two % (40, 40, 40, 41, 40), call % 40) == (256, 160)
    large = "  p = f32[64] parameter(0)\n  c = f32[64] constant({...})\n  ROOT r = f32[64] add(p, c)"
    one = "  p = f32[64] parameter(0)\n  c = f32[] constant(1)\n  b = f32[64] broadcast(c), dimensions={}\n"
    one += "  ROOT r = f32[64] add(p, b)"
    assert moved(large, call % 64) == (512, 256)
    assert moved(one, call % 64) == (256, 256)


def test_a_result_that_stands_twice_is_written_once() -> None:
    inside = """  p = f32[64] parameter(0)
  n = f32[64] negate(p)
  s = f32[8] slice(p), slice={[0:8]}
  ROOT t = (f32[64], f32[64], f32[8]) tuple(n, n, s)"""
    call = """  x = f32[64] parameter(0)
  ROOT f = (f32[64], f32[64], f32[8]) fusion(x), kind=kLoop, calls=inside"""
    assert moved(inside, call) == (256, 256 + 32)


@given(st.integers(1, 64), st.integers(1, 64))
def test_a_slice_reads_itself(start: int, size: int) -> None:
    inside = (
        f"  p = f32[128] parameter(0)\n  ROOT s = f32[{size}] slice(p), slice={{[{start}:{start + size}]}}"
    )
    call = f"  x = f32[128] parameter(0)\n  ROOT f = f32[{size}] fusion(x), kind=kLoop, calls=inside"
    assert moved(inside, call) == (4 * size, 4 * size)
