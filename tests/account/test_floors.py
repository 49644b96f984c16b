"""Floors of a program: what they count, and what a change below them leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.account import Account, Totals
from hlofuse.account.account import replaces_all
from hlofuse.account.bound import ProgramFloor, moved_once
from hlofuse.analysis.cost import Cost
from hlofuse.ir import parse_module
from hlofuse.ir.record import replace
from hlofuse.reports.whatif.model import trial_of
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)

# Ten steps over the rows of `xs`; the carry is copied first, and one row a step is written into `out`.
SCAN = TEXTS["scan"]


def test_inputs_and_results_count_once_however_often_a_loop_runs() -> None:
    """The carry in and out, and the rows; not a result that is an argument, changed in place or not."""
    row = 256 * 4
    assert moved_once(Account(parse_module(SCAN), backend="gpu")) == row + 10 * row + row
    out = "out = f32[10,256]{1,0} "
    fresh = SCAN.replace(f"{out}parameter(2)", f"{out}iota(), iota_dimension=1")
    assert moved_once(Account(parse_module(fresh), backend="gpu")) == row + 10 * row + row + 10 * row
    new = "y = f32[10,256] dynamic-update-slice(a, n, at, zero)\n  s = f32[1,256]{1,0} dynamic-slice(y,"
    given = SCAN.replace("s = f32[1,256]{1,0} dynamic-slice(a,", "n = f32[1,1] constant({{0}})\n  " + new)
    moved = (Account(parse_module(t), backend="gpu").totals.cost.bytes_accessed for t in (SCAN, given))
    assert len(set(moved)) == 1


def test_an_input_counts_as_far_as_kernels_read_it() -> None:
    text = """HloModule m
ENTRY e {
  table = f32[1000,8]{1,0} parameter(0)
  unread = f32[1000,8]{1,0} parameter(1)
  part = f32[10,8]{1,0} slice(table), slice={[0:10], [0:8]}
  other = f32[10,8]{1,0} slice(table), slice={[10:20], [0:8]}
  ROOT r = f32[10,8]{1,0} add(part, other)
}"""
    modules = map(parse_module, (text, text.replace("[10:20]", "[0:10]")))
    assert [moved_once(Account(m, backend="gpu")) for m in modules] == [3 * 10 * 8 * 4, 2 * 10 * 8 * 4]
    # Of `a` the one branch that has it reads ten elements.
    branches = (TEXTS["branches"], TEXTS["branches"].replace("(p, a, i)", "(p, i, a)"))
    found = [moved_once(Account(parse_module(b), backend="gpu")) for b in branches]
    assert found == [2 * 10 * 4, 1000 * 4 + 10 * 4]


@pytest.mark.parametrize(
    ("target", "backend", "is_open"),
    [
        ("xla_ffi_python_gpu_callback", "gpu", True),
        ("xla_ffi_python_cpu_callback", "cpu", True),
        ("cusolver_getrf_ffi", "gpu", True),
        ("__cub$DeviceRadixSort", "gpu", False),
    ],
)
def test_callbacks_and_calls_that_do_more_than_move_bytes_may_take_any_time(
    hlofuse: Run, tmp_path: Path, target: str, backend: str, is_open: bool
) -> None:
    (tmp_path / "c.hlo").write_text(TEXTS["call"].replace("TARGET", target))
    device = ["--device", "h100_sxm"] if backend == "gpu" else []
    options = [tmp_path / "c.hlo", "--target", backend, *device]
    totals = json.loads(hlofuse("explain", *options, "--format", "json").out)["totals"]
    assert (totals["open_ended"] == 1) == is_open
    assert ("not known" in hlofuse("kernels", *options).out) == (is_open and backend == "gpu")
    assert ("c: time not known" in hlofuse("why", *options[:1], "c", *options[1:]).out) == is_open


@pytest.mark.parametrize(
    ("moved", "us", "left"),
    [
        (100, 50.0, (100, 5.0, 50.0)),
        (100, 49.9, (100, 5.0, None)),
        (100, 5.0, (100, 5.0, None)),
        (100, 4.9, None),
        (99, 50.0, None),
        (100, None, (100, 5.0, 50.0)),
        (99, None, None),
    ],
)
def test_a_floor_is_left_as_far_as_it_holds(moved: int, us: float | None, left: object) -> None:
    found = ProgramFloor(100, 5.0, 50.0, ("matmuls", "loops")).below(moved, us)
    assert (found and (found.moved_bytes, found.moved_us, found.us)) == left
    assert found is None or bool(found.keeps) == (found.us is not None)


@pytest.mark.parametrize(
    ("flops", "us", "measure"), [(102, None, False), (103, None, True), (103, 9.0, False)]
)
def test_more_work_without_times_is_to_be_measured(flops: int, us: float | None, measure: bool) -> None:
    base = Totals(8, Cost(flops=100, bytes_read=1000), launches=35)
    if us is not None:
        base = replace(base, modelled_us=10.0, floor_us=0.0)
    after = replace(base, cost=Cost(flops=flops, bytes_read=500), launches=17)
    if us is not None:
        after = replace(after, modelled_us=us)
    assert trial_of(base, after, "replayed").is_to_be_measured is measure


def test_more_code_without_times_is_to_be_measured() -> None:
    """Ten operations become eleven, or twelve: saved launches prove nothing then."""

    def account(n: int) -> Account:
        lines = "".join(f"  x{k} = f32[8]{{0}} negate(x{k - 1})\n" for k in range(1, n))
        first, last = "  x0 = f32[8]{0} parameter(0)\n", f"  ROOT r = f32[8]{{0}} abs(x{n - 1})\n"
        return Account(parse_module(f"HloModule m\nENTRY e {{\n{first}{lines}{last}}}"), backend="cpu")

    base, fewer = Totals(8, Cost(), launches=35), Totals(8, Cost(), launches=17)
    for n, measure in ((10, False), (11, True)):
        accounts = account(9), account(n)
        assert trial_of(base, fewer, "replayed", accounts).is_to_be_measured is measure


def test_a_change_is_of_the_program_as_it_is_if_it_replaces_all_that_differs() -> None:
    def account(*opcodes: str) -> Account:
        lines = "".join(f"  r{k} = f32[8]{{0}} {x}(p)\n" for k, x in enumerate(opcodes))
        results = ", ".join(f"r{k}" for k in range(len(opcodes)))
        shapes = ", ".join(["f32[8]{0}"] * len(opcodes))
        root = f"  ROOT t = ({shapes}) tuple({results})\n"
        text = f"HloModule m\nENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n{lines}{root}}}"
        return Account(parse_module(text), backend="gpu")

    original, prepared = account("sine", "tanh"), account("cosine", "tanh")
    assert replaces_all(account("abs", "tanh"), prepared, original)
    assert not replaces_all(account("cosine", "abs"), prepared, original)
    assert not replaces_all(account("abs", "tanh"), original, original)
    assert not replaces_all(account("abs"), account("tanh"), original)
