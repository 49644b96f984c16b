"""What counts as broken, what as changed, and which kernels came of which."""

from __future__ import annotations

import pytest

from hlofuse.ir import HlofuseError, replace
from hlofuse.reports.check import Code, Finding, Level, Profile
from hlofuse.reports.check.check import compare
from hlofuse.reports.check.model import RefusedEdge
from .profiles import nothing_refused, profile

BASE = profile("m.py:3 f | kLoop: add, tanh", "m.py:9 g | kInput: reduce", us=10.0, device="h100_sxm")


def found(
    now: Profile, base: Profile = BASE, *, strict: bool = False, tolerance: float = 0.0
) -> list[Finding]:
    return compare(now, base, nothing_refused, strict=strict, tolerance=tolerance)


def codes(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(f.code.value, f.level.value) for f in findings]


def gpu(*lines: str, moved: int = 1000, us: float = 10.0) -> Profile:
    return profile(*lines, moved=moved, us=us, device="h100_sxm")


def test_the_same_kernels_are_no_finding() -> None:
    assert found(BASE) == []


def test_lines_that_moved_are_no_finding() -> None:
    assert found(gpu("m.py:5 f | kLoop: add, tanh", "m.py:11 g | kInput: reduce"), strict=True) == []


def test_code_that_moved_to_another_file_is_no_finding() -> None:
    assert found(gpu("n.py:1 h | kLoop: add, tanh", "n.py:2 g | kInput: reduce"), strict=True) == []


@pytest.mark.parametrize(
    ("us", "moved", "level"), [(9.9, 1000, "warning"), (10.0, 1000, "error"), (9.9, 1001, "error")]
)
def test_more_kernels_in_less_time_are_a_warning(us: float, moved: int, level: str) -> None:
    now = gpu(
        "m.py:3 f | kLoop: add", "m.py:4 f | kLoop: tanh", "m.py:9 g | kInput: reduce", us=us, moved=moved
    )
    assert ("more-kernels", level) in codes(found(now))
    assert ("more-kernels", "error") in codes(found(now, strict=True))


def test_a_fusion_that_fell_apart_is_told_as_one_with_both_sides() -> None:
    now = gpu("m.py:3 f | kLoop: add", "m.py:4 f | kLoop: tanh", "m.py:9 g | kInput: reduce", moved=1200)
    findings = found(now)
    assert codes(findings) == [("more-kernels", "error"), ("more-bytes", "error"), ("fusion-split", "error")]
    split = findings[-1]
    assert [k.what for k in split.before] == ["kLoop: add, tanh"]
    assert [k.what for k in split.now] == ["kLoop: add", "kLoop: tanh"]
    assert str(split.where) == "m.py:3 f"
    assert findings[0].where == split.where, "figures stand where something came in"


def test_better_is_a_note_that_asks_for_an_update() -> None:
    findings = found(gpu("m.py:3 f | kLoop: add, reduce, tanh", moved=900, us=8.0))
    assert findings[0].code is Code.FEWER
    assert "2 kernels → 1" in findings[0].message
    assert {f.level for f in findings} == {Level.NOTE}


def test_other_operations_with_equal_figures_are_a_warning_and_with_strict_an_error() -> None:
    now = gpu("m.py:3 f | kLoop: add, sine", "m.py:9 g | kInput: reduce")
    assert codes(found(now)) == [("fusion-changed", "warning")]
    assert codes(found(now, strict=True)) == [("fusion-changed", "error")]


def test_strict_objects_to_what_is_better_as_well() -> None:
    findings = found(gpu("m.py:3 f | kLoop: add, tanh"), strict=True)
    assert codes(findings) == [("better", "note"), ("kernel-gone", "error")]


@pytest.mark.parametrize(("moved", "us"), [(1010, 10.0), (1000, 10.1), (1010, 10.1)])
def test_bytes_and_time_may_grow_by_the_tolerance(moved: int, us: float) -> None:
    lines = "m.py:3 f | kLoop: add, tanh", "m.py:9 g | kInput: reduce"
    assert found(gpu(*lines, moved=moved, us=us), tolerance=0.01) == []
    assert {f.level for f in found(gpu(*lines, moved=moved, us=us))} == {Level.ERROR}


def test_a_time_that_only_one_side_has_is_not_compared() -> None:
    base = gpu("m.py:3 f | kLoop: add")
    without = Profile(
        base.name, base.target, base.device, "", profile("m.py:3 f | kLoop: add").figures, base.kernels
    )
    assert found(base, without) == []


def test_times_for_two_cpus_are_not_compared() -> None:
    here, there = (replace(profile("a | b", us=us), cpu=cpu) for us, cpu in ((9.0, "a"), (1.0, "b")))
    assert codes(compare(here, there, nothing_refused)) == [("time-not-compared", "warning")]
    assert codes(compare(here, replace(there, cpu="a"), nothing_refused)) == [("more-time", "error")]


def test_estimates_are_compared_where_the_measured_time_of_the_baseline_cannot_be() -> None:
    base, now = gpu("a | b", us=1.0), gpu("a | b", us=9.0)
    measured = replace(base, figures=replace(base.figures, measured_us=2.0))
    assert codes(compare(now, measured, nothing_refused)) == [
        ("more-time", "error"),
        ("time-not-compared", "warning"),
    ]


def test_figures_of_another_device_are_refused() -> None:
    with pytest.raises(HlofuseError, match="is for h100_sxm, the input for b200"):
        found(profile("m.py:3 f | kLoop: add", device="b200"))


def test_reasons_are_asked_for_only_where_something_changed() -> None:
    def never() -> list[RefusedEdge]:
        raise AssertionError("asked for nothing")

    assert compare(BASE, BASE, never) == []


def test_unrelated_kernels_of_one_function_stay_apart() -> None:
    base = profile("m.py:1 f | kLoop: add, tanh", "m.py:2 f | kLoop: cosine, sine")
    now = profile(*(f"m.py:{n} f | kLoop: {op}" for n, op in enumerate(["add", "tanh", "cosine", "sine"])))
    splits = [f for f in found(now, base) if f.code is Code.SPLIT]
    assert [[k.what for k in f.before] for f in splits] == [["kLoop: add, tanh"], ["kLoop: cosine, sine"]]


def test_a_kernel_that_joins_two_others_makes_one_group_of_them() -> None:
    base = profile("m.py:1 f | kLoop: add", "m.py:2 f | kLoop: sine", "m.py:3 f | kLoop: cosine")
    now = profile("m.py:1 f | kLoop: add, cosine, sine")
    assert codes(found(now, base)) == [("better", "note"), ("fusion-merged", "note")]
