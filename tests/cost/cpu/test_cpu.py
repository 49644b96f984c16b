"""Times on a CPU: the work of kernels, rates of devices, what is not known, and the fit of a calibration."""

import math
from pathlib import Path

import pytest

from hlofuse.account import Account
from hlofuse.account.cpu import CpuTimes
from hlofuse.cost.cpu import device as cpus
from hlofuse.cost.cpu.device import CHOICE, CpuDevice, chosen_cpu, cpu_names, cpu_text, load_cpu
from hlofuse.cost.cpu.work import Caches
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.text.reader import parse_module
from hlofuse.judge.calibrate import Sample, faster, fitted, probes
from hlofuse.judge.judge import Timed
from hlofuse.judge.worker import own_times
from hlofuse.releases import release_of
from ...fixtures import companion_texts

TEXTS = companion_texts(__file__)

KERNEL = TEXTS["kernel"]
LOOP = TEXTS["loop"].replace("TRIPS", 'backend_config={"known_trip_count":{"n":"100"}}')


def times(release: str = "0.11.1", threads: int = 1) -> CpuTimes:
    return CpuTimes(release_of(release), load_cpu(f"xeon_{threads}_thread{'s' if threads > 1 else ''}"))


def test_an_empty_array_is_one_task() -> None:
    empty = parse_module("HloModule m\nENTRY e { p = f32[0,7] parameter(0)\n  ROOT c = f32[0,7] copy(p) }")
    assert Account(empty, backend="cpu", times=times(threads=2)).totals.us is not None


COMPUTED = LOOP.replace("  ROOT u", "  n = f32[1] negate(v)\n  ROOT u").replace(
    "(a, v, i)\n}", "(a, n, i)\n}"
)
JUST_COMPUTED = COMPUTED.replace("fusion(a, v, i)", "fusion(a, w, i)").replace(
    "  b =", "  w = f32[1] sine(v)\n  b ="
)
ROWS = COMPUTED.replace("4096", "1024,4").replace("f32[1]", "f32[1,4]").replace("(a, n, i)", "(a, n, i, z)")
ROWS = ROWS.replace("  ROOT u", "  z = s32[] constant(0)\n  ROOT u")
CALLED = COMPUTED.replace("fusion(a, v, i), kind=kLoop, calls=f", "call(a, v, i, v), to_apply=f").replace(
    "  n = f32[1] negate(v)", "  w = f32[1] parameter(3)\n  n = f32[1] negate(w)"
)


@pytest.mark.parametrize(
    ("name", "each", "text"),
    [
        ("element one by one", 1, LOOP),
        ("updated row", 1, COMPUTED),
        ("element one by one", 1, CALLED),
        ("updated byte", 4, JUST_COMPUTED),
        ("updated row", 1, JUST_COMPUTED.replace("sine(v)", "copy(v)")),
        ("updated row", 0.25, ROWS),
    ],
)
@pytest.mark.parametrize(("release", "copies"), [("0.10.2", 0), ("0.11.1", 100), ("0.12.0.1", 0)])
def test_an_update_in_a_whole_loop_copies_its_array_in_one_release(
    release: str, copies: int, name: str, each: float, text: str
) -> None:
    """Measured with 2,000 elements: each takes 0.3 ns, or 0.05 where what is written was just computed."""
    work = times(release).work(parse_module(text).entry.root) or {}
    assert work.get(name, 0) == copies * 4096 * each
    if text in (LOOP, COMPUTED):
        at_one_place = text.replace("fusion(a, v, i), kind", "fusion(a, v, k), kind").replace(
            "  b =", "  k = s32[] constant(5)\n  b ="
        )
        work = times(release).work(parse_module(at_one_place).entry.root) or {}
        assert work.get(name, 0) == copies // 100 * 4096 * each


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ("", "", 64),
        ("=EQ", "=LT", 0),
        ("dimensions={0}", "dimensions={1}", 0),
        ("new, old", "old, new", 0),
        ("(i, k, v)", "(i, v, k)", 0),
    ],
)
def test_a_row_chosen_by_its_number_is_written_alone(old: str, new: str, rows: int) -> None:
    """Measured with [256,2048]: 1.3 µs in an iteration; by columns 23, by a mask 83, elsewhere 50."""
    module = parse_module(TEXTS["chosen"].replace(old, new) if old else TEXTS["chosen"])
    (kernel,) = (x for x in module.instructions() if x.opcode == "fusion")
    assert (times().work(kernel) or {}).get("updated row", 0) == rows


@pytest.mark.parametrize("name", cpu_names())
def test_an_operation_by_itself_takes_far_less_than_a_pair_that_is_reduced(name: str) -> None:
    """Where both stand in one program alone, a fit gives each half of the time."""
    rates = load_cpu(name).rates
    for kind in ("f32", "f64", "s32"):
        alone = rates.get(f"scalar operation {kind}", rates[f"operation {kind}"])
        assert alone < rates.get(f"reduce several {kind}", rates["reduce several f32"])


def test_operands_of_another_rank_are_read() -> None:
    """XLA expands this; a text that holds it is still read."""
    scale = "f32[8]{0} parameter"
    text = f"""HloModule m
ENTRY e {{
  x = f32[4,16,16,8]{{3,2,1,0}} parameter(0)
  a = {scale}(1)
  b = {scale}(2)
  c = {scale}(3)
  d = {scale}(4)
  ROOT n = f32[4,16,16,8]{{3,2,1,0}} batch-norm-inference(x, a, b, c, d), epsilon=0.001, feature_index=3
}}
"""
    (row,) = Account(parse_module(text), backend="cpu", times=times()).rows
    assert row.cost.bytes_accessed > 0


AFTER = TEXTS["after"]


@pytest.mark.parametrize(("size", "level"), [(1024, "l1"), (65536, "l2"), (400_000, "near l3")])
def test_a_value_is_as_far_as_what_was_moved_since_it_was_written(size: int, level: str) -> None:
    account = Account(parse_module(AFTER.replace("SIZE", str(size))), backend="cpu", times=times())
    last = account.by_name["c"].instruction
    assert account.reuse[last][level] >= 0.5


@pytest.mark.parametrize(("size", "level"), [(4096, "l1"), (80_000_000, "memory")])
def test_a_loop_that_goes_through_an_array_finds_each_part_where_the_whole_is(size: int, level: str) -> None:
    module = parse_module(LOOP.replace("4096", str(size)))
    (body,) = (c for c in module.computations if c.name == "body")
    counter, update = times().reuse([body]).values()
    assert update[level] > 0.3
    assert counter == {"l1": 1.0}


def test_the_first_value_of_a_loop_s_large_result_is_in_new_memory() -> None:
    text = (
        LOOP.partition("ENTRY")[0].replace("4096", "20000000")
        + """ENTRY e {
  v = f32[1] parameter(0)
  n = s32[] constant(0)
  z = f32[] constant(0)
  a = f32[20000000] broadcast(z), dimensions={}
  t = (s32[], f32[20000000], f32[1]) tuple(n, a, v)
  w = (s32[], f32[20000000], f32[1]) while(t), condition=condition, body=body
  ROOT r = f32[20000000] get-tuple-element(w), index=1
}
"""
    )
    account = Account(parse_module(text), backend="cpu", times=times())
    (first,) = (own for x, own in account.reuse.items() if x.opcode == "broadcast")
    assert first["fresh"] > 0.99


@pytest.mark.parametrize(("size", "new"), [(2_000_000, [0.0, 0.0, 0.0]), (2_200_000, [0.5, 0.5, 0.0])])
def test_large_temporary_arrays_are_in_new_memory_where_none_was_before(size: int, new: list[float]) -> None:
    """Two are alive in one allocation, 32 or 35.2 MB: measured, 3.1 and 6.1 ns for each element."""
    account = Account(
        parse_module(TEXTS["temporary"].replace("SIZE", str(size))), backend="cpu", times=times()
    )
    shares = {x.name: own.get("fresh", 0.0) for x, own in account.reuse.items()}
    assert [shares[name] for name in "abc"] == pytest.approx(new)


@pytest.mark.parametrize(
    ("given", "has_time"),
    [("64 0", False), ("64,96 0,2", False), ("64,128 0,1", True), ("128 1", True), ("96 2", True)],
)
def test_ynnpack_may_multiply_again_for_each_row_of_a_sum(given: str, has_time: bool) -> None:
    """Measured with an exponential in it: 20 times as long for the first two, no longer for the others."""
    shape, dimensions = given.split()
    text = TEXTS["repeated"].replace("SHAPE", shape).replace("DIMENSIONS", dimensions)
    assert (times().us(parse_module(text).entry.root) is not None) is has_time


@pytest.mark.parametrize(
    ("features", "groups", "us"), [("1,1", 1, 275), ("16,16", 1, 1428), ("1,16", 16, 6963)]
)
def test_convolutions_take_time_for_rows_of_windows(features: str, groups: int, us: float) -> None:
    given, found = map(int, features.split(","))
    text = f"""HloModule m
ENTRY e {{
  x = f32[1,64,64,{given * groups}]{{3,2,1,0}} parameter(0)
  k = f32[9,9,{features}]{{3,2,1,0}} parameter(1)
  ROOT c = f32[1,56,56,{found}]{{3,2,1,0}} convolution(x, k), window={{size=9x9}}, dim_labels=b01f_01io->b01f,
    feature_group_count={groups}
}}
"""
    assert times().us(parse_module(text).entry.root) == pytest.approx(us, rel=0.7)


RATED = Path(__file__).with_name("rated.hlo").read_text().split("\n\n")


@pytest.mark.parametrize("text", RATED, ids=lambda text: text.partition("\n")[0][3:])
def test_the_form_of_a_kernel_decides_which_amounts_it_has(text: str) -> None:
    """Amounts of a kernel with two threads, as products of what they count; `NO OTHER`: all of them."""
    work = {k: n for k, n in (times(threads=2).work(parse_module(text).entry.root) or {}).items() if n}
    lines = [line.rpartition(" = ") for line in text.splitlines() if line.startswith("// AMOUNT ")]
    amounts = {k.removeprefix("// AMOUNT "): math.prod(map(float, n.split(" * "))) for k, _, n in lines}
    assert {k: work.get(k, 0) for k in amounts} == pytest.approx(amounts)
    assert "// NO OTHER" not in text or work.keys() == amounts.keys()


def test_small_products_of_another_type_are_timed_as_those_of_f32() -> None:
    device = CpuDevice("x", "", 1, "0.11.1", Caches(1, 2, 3), {"Eigen dot f32 short": 1.0}, {})
    found = [device.us({f"Eigen dot {kind} short": 1e3}) for kind in ("f32", "f16", "f64", "c64")]
    assert found == [1.0, 1.0, 2.0, 2.0]


def test_what_a_divided_kernel_wrote_is_in_the_cache_of_another_core() -> None:
    text = AFTER.replace("1024", "SIZE").replace("SIZE", "70000")
    shares = [Account(parse_module(text), backend="cpu", times=times(threads=n)).reuse for n in (1, 2)]
    alone, divided = (next(v for x, v in s.items() if x.name == "c") for s in shares)
    assert "near l3" not in alone
    assert divided["near l3"] > 0.9


def test_a_chain_of_launches_runs_one_after_the_other() -> None:
    lines = [f"  a{k} = f32[1024] negate({f'a{k - 1}' if k else 'p'})" for k in range(12)]
    text = "\n".join(["HloModule m", "ENTRY e {", "  p = f32[1024] parameter(0)", *lines, "}"])
    launched = [x for x in parse_module(text.replace("  a11", "  ROOT a11")).entry if x.opcode == "negate"]
    assert times().together(launched) == 0


def test_more_launches_than_eight_that_wait_next_to_one_run_at_once() -> None:
    names = [f"a{k}" for k in range(10)]
    lines = [f"  {n} = f32[1024] negate(p)" for n in names]
    result = f"  ROOT t = ({', '.join(['f32[1024]'] * 10)}) tuple({', '.join(names)})"
    text = "\n".join(["HloModule m", "ENTRY e {", "  p = f32[1024] parameter(0)", *lines, result, "}"])
    launched = [x for x in parse_module(text).entry if x.opcode == "negate"]
    assert [times().together(launched[k:]) for k in range(3)] == [10, 1, 0]
    rates = (times().device.us(times().launch_work(100, together)) or 0.0 for together in (0, 1))
    assert next(rates) < next(rates)


def test_lines_at_a_power_of_two_share_few_sets() -> None:
    caches = Caches(48 << 10, 2 << 20, 32 << 20)
    assert caches.level(32 << 10, 64) == "l1"
    assert caches.level(16 << 10, 4096) == "l2"
    assert caches.level(64 << 10, 4096) == "near l3"


def test_a_result_in_an_argument_costs_no_new_memory() -> None:
    text = AFTER.replace("SIZE", "1024")
    given = text.replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {0}: (0, {}) }")
    for written, size in ((text, 4096), (given, None)):
        account = Account(parse_module(written), backend="cpu", times=times())
        last = account.by_name["c"].instruction
        assert (times().work(last, account.reuse[last]) or {}).get("result byte") == size


def test_a_kernel_of_unknown_time_is_not_cheap_but_counted() -> None:
    text = KERNEL.replace("LAYOUT", "1,0").replace(
        "fusion(x, y), kind=kLoop, calls=f", 'custom-call(x, y), custom_call_target="mine"'
    )
    account = Account(parse_module(text), backend="cpu", times=times())
    assert [row.us for row in account.rows] == [None]
    assert account.totals.without_time == 1


def test_launches_in_a_loop_cost_less_than_others() -> None:
    once, often = (times().device.us(times().launch_work(runs, 0)) or 0.0 for runs in (1, 100))
    assert once > often > 0


def test_a_device_is_the_same_after_writing_and_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in cpu_names():
        device = load_cpu(name)
        file = tmp_path / f"{name}.toml"
        file.write_text(cpu_text(device))
        monkeypatch.setenv(CHOICE, str(file))
        assert chosen_cpu() == device
        assert device.error("total") < 3


@pytest.mark.parametrize(
    ("machine", "threads", "name", "note"),
    [
        ("vendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7B13", 1, "epyc_1_thread", "this machine"),
        ("AMD Ryzen 9 5950X 16-Core Processor", 32, "epyc_2_threads", "this machine of 32 threads"),
        ("Intel64 Family 6 Model 85, GenuineIntel", 2, "xeon_2_threads", "this machine"),
        ("arm", 1, "xeon_2_threads", ""),
    ],
)
def test_the_default_is_the_most_similar_cpu(
    machine: str, threads: int, name: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (cpus.similar_cpu(machine, threads).name, cpus.similar_cpu(machine, threads).similar_to) == (
        name,
        note,
    )
    monkeypatch.delenv(CHOICE)
    assert chosen_cpu() == cpus.similar_cpu(*cpus.this_machine())
    with cpus.assumed_cpu(name):
        assert chosen_cpu() == load_cpu(name)


@pytest.mark.parametrize("text", ["", "threads = 2", "[rates]\na = 'b'"])
def test_another_file_is_no_device(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(HlofuseError, match="not a file of hlofuse calibrate"):
        load_cpu(str(tmp_path / "x.toml"))
    with pytest.raises(HlofuseError, match="no CPU"):
        load_cpu(str(tmp_path / "y.toml"))


def test_similar_amounts_have_a_rate_and_unknown_operations_none() -> None:
    device = load_cpu("xeon_2_threads")
    wide, narrow = (device.us({f"scalar cosine {kind}": 1e6}) for kind in ("f64", "f32"))
    assert wide is not None
    assert narrow is not None
    assert wide > narrow > 0
    assert device.us({"strided read near l3": 1.0}) is not None
    assert device.us({"other mystery": 1.0}) is None


@pytest.mark.parametrize(("missed", "least"), [(5.0, 90.0), (80.0, 80.0)])
def test_a_profile_that_misses_most_of_a_program_does_not_count(missed: float, least: float) -> None:
    passes = Timed([100.0] * 4, {"a": (1, 90.0)}), Timed([99.0] * 4, {"a": (1, missed)})
    for first, second in (passes, passes[::-1]):
        assert faster(first, second) == Timed([99.0] * 4, {"a": (1, least)})


def test_a_fit_finds_the_rates_and_keeps_those_of_a_similar_device() -> None:
    rates = {"a": 2.0, "b": 300.0, "c": 1000.0}
    works = [{"a": 100.0 * k, "b": 7.0 * (k % 5), "c": 1.0} for k in range(1, 40)]
    samples = [Sample("kind", w, sum(rates[n] * amount for n, amount in w.items()) / 1e3) for w in works]
    found = fitted(CpuDevice("x", "", 1, "0.11.1", Caches(1, 2, 3), {}, {}), samples)
    assert all(abs(math.log(found.rates[n] / rates[n])) < 0.1 for n in rates)
    assert found.errors["kind"] < 1.1
    assert any(found.rates["tan f32"] == load_cpu(name).rates["tan f32"] for name in cpu_names())


def test_every_probe_is_a_module_of_its_own() -> None:
    texts = probes()
    assert len(texts) > 150
    assert all(parse_module(text).entry.root for text in texts.values())


def test_kernels_that_run_at_once_share_the_time() -> None:
    found = own_times([("a", 0.0, 4000.0), ("b", 2000.0, 4000.0), ("a", 5000.0, 6000.0)])
    assert found == {"a": (2, 4.0), "b": (1, 1.0)}


@pytest.mark.parametrize(
    ("release", "rows", "tasks"),
    [("0.11.0", 512, 1), ("0.11.1", 128, 1), ("0.11.1", 160, 1.25), ("0.11.1", 384, 1.5), ("0.11.1", 512, 2)],
)
def test_threads_sort_rows_of_32768_elements_at_once_since_0_11_1(
    release: str, rows: int, tasks: float
) -> None:
    sort = parse_module(TEXTS["rows"].replace("ROWS", str(rows))).entry.root
    work = times(release, 2).work(sort)
    assert work is not None
    assert work["sort one f32"] == rows * 256 * 8 / tasks
    assert work["task"] == tasks - 1
