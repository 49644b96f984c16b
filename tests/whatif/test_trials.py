"""Trials: the gain of a change, when it helps, and what a table of knobs takes as XLA's own values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlofuse
from hlofuse.account import Totals
from hlofuse.analysis.cost import Cost
from hlofuse.ir import parse_module
from hlofuse.ir.record import replace
from hlofuse.reports.comparison.model import Comparison
from hlofuse.reports.verdict.phrases import _gains
from hlofuse.reports.whatif.model import RelaxedRule, Trial, trial_of
from hlofuse.reports.whatif.text import marks_line
from hlofuse.rules.gpu_multi_output_fusion import CONNECTED

PLAIN = Totals(10, Cost(bytes_read=600_000, bytes_written=400_000), launches=20)
TIMED = replace(PLAIN, modelled_us=90.0, floor_us=10.0)
MEASURED = replace(TIMED, measured_us=1000.0)
LACKING = replace(TIMED, memory_bytes=1000, memory_size=900)
FULL = replace(TIMED, peak_temporary_bytes=8 << 20)


def trial(us: float | None = None, launches: int = 0, moved: int = 0, scaled: float | None = None) -> Trial:
    return Trial(None, "", us, 0, launches, moved, scaled)


@pytest.mark.parametrize(
    ("found", "totals", "helps"),
    [
        # A thousandth of the estimated time.
        (trial(0.1001), TIMED, True),
        (trial(0.0999), TIMED, False),
        (trial(-5.0, 10, 500_000), TIMED, False),
        # A thousandth of the measured time counts before the estimate.
        (trial(0.0, scaled=1.001), MEASURED, True),
        (trial(5.0, scaled=0.999), MEASURED, False),
        # Without times a thousandth of the bytes, and no more launches.
        (trial(moved=1001), PLAIN, True),
        (trial(moved=1000), PLAIN, False),
        (trial(moved=1001, launches=-1), PLAIN, False),
        # Or a launch, and no more bytes.
        (trial(launches=1), PLAIN, True),
        (trial(launches=1, moved=-1), PLAIN, False),
        (trial(), PLAIN, False),
        # Times that cannot be compared: only launches count.
        (trial(launches=1), TIMED, True),
        (trial(moved=500_000), TIMED, False),
        # Where the program does not fit, a tenth of the bytes lacking.
        (replace(trial(-50.0), memory_saved=10), LACKING, True),
        (replace(trial(-50.0), memory_saved=9), LACKING, False),
        (replace(trial(-50.0), memory_saved=10), replace(LACKING, memory_size=1000), False),
        # Or a quarter of the temporary memory, in 1% more time.
        (replace(trial(-1.0), temporary_saved=2 << 20), FULL, True),
        (replace(trial(-1.01), temporary_saved=2 << 20), FULL, False),
        (replace(trial(0.0), temporary_saved=(2 << 20) - 1), FULL, False),
        (replace(trial(), temporary_saved=1 << 20), TIMED, True),
        (replace(trial(), temporary_saved=(1 << 20) - 1), TIMED, False),
    ],
)
def test_a_change_helps_from_a_thousandth_on(found: Trial, totals: Totals, helps: bool) -> None:
    assert found.helps(totals) is helps


@pytest.mark.parametrize(
    ("memory", "least"), [(None, 1 << 20), ((4 << 20) - 4, 1 << 20), (4 << 20, 1 << 20), (8 << 20, 2 << 20)]
)
def test_a_change_takes_memory_from_a_quarter_of_all_on(memory: int | None, least: int) -> None:
    for taken in (0, least - 1, least):
        found = replace(trial(), temporary_saved=-taken)
        assert found.takes_memory(replace(TIMED, memory_bytes=memory)) is (taken == least)


@pytest.mark.parametrize("changed", ["has_fewer_library_calls", "has_more_code"])
def test_only_a_change_without_a_time_is_to_be_measured(changed: str) -> None:
    for us, scaled in ((None, None), (1.0, None), (None, 1.0)):
        found = replace(trial(us, scaled=scaled), **{changed: True})
        assert found.is_to_be_measured is (us is None and scaled is None)


def test_a_trial_is_what_was_there_less_what_is_left() -> None:
    after = replace(TIMED, kernels=7, launches=13, modelled_us=70.0, floor_us=6.0, scaled_saving_us=5.0)
    after = replace(after, cost=Cost(bytes_read=500_000, bytes_written=450_000), peak_temporary_bytes=6 << 20)
    assert trial_of(LACKING, replace(after, memory_bytes=400), "").memory_saved == 600
    found = trial_of(FULL, after, "replayed")
    assert (found.temporary_saved, found.memory_saved) == (2 << 20, None)
    assert (found.kernels_saved, found.launches_saved, found.bytes_saved) == (3, 7, 50_000)
    assert found.us_saved == pytest.approx(100.0 - 76.0)
    assert (found.totals, found.how, found.scaled_us_saved) == (after, "replayed", 5.0)
    assert trial_of(PLAIN, after, "").us_saved is None
    assert trial_of(TIMED, replace(after, modelled_us=None), "").us_saved is None
    assert trial_of(TIMED, replace(after, without_time=1), "").us_saved is None
    unknown = replace(TIMED, without_time=1)  # what has a time now may take less than what had none
    assert trial_of(unknown, replace(after, modelled_us=101.0), "").us_saved is None
    assert trial_of(unknown, after, "").us_saved == pytest.approx(24.0)
    assert trial_of(unknown, replace(unknown, modelled_us=101.0), "").us_saved == pytest.approx(-11.0)


@pytest.mark.parametrize(
    ("replayed", "is_marked", "is_other"),
    [
        (TIMED, False, False),
        (replace(TIMED, floors=1), True, False),
        (replace(PLAIN, floors=1), False, False),
        (replace(TIMED, kernels=9), False, True),
        (replace(TIMED, launches=19), False, True),
        (replace(TIMED, modelled_us=91.0), False, True),
    ],
)
def test_times_with_other_bounds_are_marked(replayed: Totals, is_marked: bool, is_other: bool) -> None:
    found = Comparison(TIMED, replayed, (), ())
    assert bool(marks_line([found])) is is_marked
    assert RelaxedRule(CONNECTED, found, (), 0).changes_anything is is_other


def test_the_greatest_gain_is_of_measured_time_then_estimated_then_launches_then_bytes() -> None:
    order = [
        trial(1.0, scaled=3.0),
        trial(2.0),
        trial(1.00001, launches=2),
        trial(1.0, launches=1, moved=9),
        trial(1.0, launches=1, moved=8),
        trial(9.0, scaled=0.5),
        trial(launches=1),
        trial(moved=1),
    ]
    assert sorted(order, key=lambda t: t.gain, reverse=True) == order


@given(st.floats(0, 1e6), st.integers(0, 1000), st.integers(0, 10**9))
def test_what_is_changed_and_changed_back_gains_nothing(us: float, launches: int, moved: int) -> None:
    after = replace(TIMED, modelled_us=us, launches=launches, cost=Cost(bytes_read=moved))
    there, back = trial_of(TIMED, after, ""), trial_of(after, TIMED, "")
    assert there.gain == tuple(-x for x in back.gain)
    assert not (there.helps(TIMED) and back.helps(after))
    assert not trial_of(after, after, "").helps(after)


SUM = """HloModule m
plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[4096,1024]{1,0} parameter(0)
  zero = f32[] constant(0)
  s = f32[4096]{0} reduce(x, zero), dimensions={1}, to_apply=plus
  ROOT n = f32[4096]{0} negate(s)
}
"""


def test_a_device_number_at_its_own_value_is_xla_and_half_the_bandwidth_takes_longer() -> None:
    report = hlofuse.open(parse_module(SUM), target="gpu", device="h100_sxm")
    found = report.what_if(
        sweep={"memory_bandwidth": [3352320000000, 1676160000000], "core_count": [132]}
    ).data
    assert [(a.name, a.unit, a.summary) for a in found.axes] == [
        ("memory_bandwidth", "", "device number"),
        ("core_count", "", "device number"),
    ]
    ((bandwidth, cores),) = found.xla_values
    assert (float(bandwidth), cores) == (3.35232e12, "132")
    assert [p.is_xla for p in found.points] == [True, False]
    own, half = (p.totals.us for p in found.points)
    assert own == found.xla[0].us
    assert found.timed
    assert own is not None
    assert half is not None
    # One launch of 1 µs is no matter of the bandwidth.
    assert half - 1 == pytest.approx(2 * (own - 1), rel=0.01)
    assert not report.what_if(sweep={"memory_bandwidth": [1e12]}).data.points[0].is_xla


def test_a_sweep_on_a_cpu_has_times_and_no_device() -> None:
    module = parse_module(SUM)
    found = hlofuse.open(module, target="cpu").what_if(sweep={"code-duplication-limit": [15]}).data
    assert found.timed
    assert (found.devices, found.axes[0].values) == ((None,), ("15",))


def test_a_loop_of_unknown_length_runs_ten_times_where_changes_are_compared() -> None:
    """What moves out of it costs as much in the one iteration that counts."""
    loop = replace(TIMED, per_iteration=3, iteration_us=50.0)
    hoisted = trial_of(loop, replace(loop, per_iteration=1, iteration_us=30.0), "replayed")
    assert hoisted.us_saved == 0.0
    assert hoisted.gain[0] == pytest.approx(9 * 20.0)
    assert hoisted.helps(loop)
    assert next(_gains(hoisted, loop)) == "−20.00 µs (40%) in each iteration, +20.00 µs once"
    assert not trial_of(loop, loop, "replayed").helps(loop)
    assert not trial_of(loop, replace(loop, iteration_us=51.0), "replayed").helps(loop)


@pytest.mark.parametrize(("us", "floors", "helps"), [(99.9, 0, True), (100.1, 0, False), (99.9, 2, False)])
def test_kernels_of_unknown_time_give_way_to_what_takes_little(us: float, floors: int, helps: bool) -> None:
    base = replace(TIMED, floors=2)
    found = trial_of(base, replace(base, modelled_us=us, floor_us=10.0, floors=floors), "replayed")
    assert found.replaces_unknown(base) is helps
    assert found.helps(base) is helps
    more = replace(found.totals or base, floors=2, without_time=1)
    unknown = next(_gains(replace(found, us_saved=None, totals=more), base))
    assert unknown == "time unknown: library calls change"
    if helps:
        assert next(_gains(found, base)) == (
            "time unknown: pays if what it replaces takes 9.90 µs above its bound"
        )
