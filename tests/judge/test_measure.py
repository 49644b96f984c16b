"""Times measured on this machine: a program's own, and those of flags that are tried on it."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import hlofuse as library
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Module
from hlofuse.ir.record import replace
from hlofuse.judge import measure
from hlofuse.judge.judge import Judge, Refused, Timed, index_limits
from hlofuse.judge.measure import measured_changes, measured_profile
from hlofuse.reports.verdict import measured
from hlofuse.reports.verdict.model import Suggestion
from hlofuse.reports.verdict.phrases import change_line
from hlofuse.reports.whatif.model import Trial
from ..recipes.values import archive
from ..running import Run

Times = Mapping[str | int, Timed]
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")
PROGRAM = """HloModule small
ENTRY e { x = f32[64,64]{1,0} parameter(0)
  y = f32[64,64]{1,0} tanh(x)
  ROOT d = f32[64,64]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""
LOOP = Path(__file__).parents[1] / "recipes" / "data.tar.xz", "stack-the-state/cpu/before/unoptimized.hlo"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_SECONDS", 0.1)


@needs_jax
@pytest.mark.parametrize("text", [PROGRAM, archive(LOOP[0])[LOOP[1]]], ids=["small", "loop"])
def test_a_program_has_the_time_of_its_runs_and_of_its_kernels(text: str) -> None:
    """Tracing takes time of each launch, in a loop more than the kernel: it is not counted."""
    found = measured_profile(parse_module(text))
    (module,) = found.modules
    assert found.run_us is not None
    assert 0 < module.total_us < 1.5 * found.run_us
    assert found.fastest_us <= found.run_us
    assert len(module.times) >= 2
    assert measured_profile(parse_module(text)) is found


@needs_jax
def test_a_program_is_run_with_the_arrays_of_a_file(tmp_path: Path) -> None:
    module = parse_module("HloModule m\nENTRY e { x = f32[3] parameter(0)\n  ROOT y = f32[3] negate(x) }")
    for dtype in ("f4", "f8"):
        np.savez(tmp_path / dtype, np.ones(3, dtype))
    good, bad = (str(tmp_path / f"{dtype}.npz") for dtype in ("f4", "f8"))
    with Judge() as judge:
        judge.compile(module)
        assert len(judge.time(["a"], 0.01, profile=False, inputs=good)["a"].runs) >= 5
        with pytest.raises(Refused, match=r"f8\.npz has float64\[3\]; the program takes float32\[3\]"):
            judge.time(["a"], 0.01, profile=False, inputs=bad)


def test_integers_that_choose_are_drawn_from_what_there_is() -> None:
    module = parse_module(Path(__file__).with_name("choosing.hlo").read_text())
    assert index_limits(module) == {1: 500, 2: 6, 4: 500}


def test_another_device_or_inputs_without_measurement_are_refused(hlofuse: Run, samples: Path) -> None:
    where = {"--inputs=x.npz": "--inputs is for the runs of --measure", "--measure": "runs on this CPU"}
    for option, text in where.items():
        result = hlofuse("explain", samples / "gpu" / "gpt2_block", option)
        assert (result.status, text in result.err) == (2, True)


@needs_jax
def test_a_flag_that_does_not_compile_has_no_time() -> None:
    bad = "--xla_no_such_flag=true"
    times = measured_changes(parse_module(PROGRAM), (), ["--xla_cpu_multi_thread_eigen=false", bad])
    assert set(times) == {"", "--xla_cpu_multi_thread_eigen=false"}


@pytest.mark.parametrize(("us", "counts"), [(90.0, True), (98.5, False), (130.0, False)])
def test_a_flag_counts_above_the_noise_only(us: float, counts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = library.open(PROGRAM, target="cpu").verdict
    trial = Trial(None, "replayed", 5.0, 0, 0, 0)
    flag = Suggestion("flag", "Set it", "", (), 0, trial, flag="--a=b")
    times = {"": Timed([100.0] * 4, {}), "--a=b": Timed([us] * 4, {})}
    monkeypatch.setattr(measured, "measured_changes", lambda *_: times)
    found = measured.with_measured_changes(replace(verdict, suggestions=(flag,)), parse_module(PROGRAM), ())
    assert [s.trial.scaled_us_saved for s in found.suggestions] == ([100.0 - us] if counts else [])


def test_a_measured_gain_is_a_part_of_the_measured_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program took 50 µs alone, and 100 µs beside its change, which saved 90% of that. No estimate."""
    verdict = library.open(PROGRAM, target="cpu").verdict
    trial = Trial(None, "replayed", None, 0, 0, 0, has_more_code=True)
    flag = Suggestion("flag", "Set it", "", (), 0, trial, flag="--a=b")
    given = replace(verdict, suggestions=(flag,), totals=replace(verdict.totals, measured_us=50.0))
    times = {"": Timed([100.0] * 4, {}), "--a=b": Timed([10.0] * 4, {})}
    monkeypatch.setattr(measured, "measured_changes", lambda *_: times)
    found = measured.with_measured_changes(given, parse_module(PROGRAM), ())
    assert [s.trial.scaled_us_saved for s in found.suggestions] == [45.0]
    assert "−45.00 µs (90%) measured" in change_line(found.suggestions[0].trial, found.totals, (), "")


SORTED = """HloModule sorted
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f32[64,512]{1,0} parameter(0)
  y = f32[64,512]{1,0} sort(x), dimensions={1}, to_apply=less
  z = f32[64,1]{1,0} slice(y), slice={[0:64],[511:512]}
  ROOT r = f32[64]{0} reshape(z)
}
"""


@pytest.mark.parametrize(("us", "found"), [(40.0, ["max-not-sort"]), (99.0, [])])
def test_a_change_of_code_is_run(us: float, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(
        module: Module, own: Sequence[str], flags: Sequence[str], changed: Sequence[Module], *_: object
    ) -> Times:
        sorts = [sum(x.opcode == "sort" for x in m.entry) for m in (module, *changed)]
        assert sorts == [1, 0, 1]  # without one, or of integers
        return {"": Timed([100.0] * 4, {}), 0: Timed([us] * 4, {}), 1: Timed([100.0] * 4, {})}

    monkeypatch.setattr(measured, "measured_changes", run)
    verdict = replace(library.open(SORTED, target="cpu").verdict, suggestions=(), untried=())
    verdict = measured.with_measured_changes(verdict, parse_module(SORTED), ())
    assert [s.recipe for s in verdict.suggestions] == found
    assert [s.trial.scaled_us_saved for s in verdict.suggestions] == [60.0] * len(found)


@needs_jax
def test_a_changed_module_is_run_in_turns_with_the_module() -> None:
    sorted_, small = parse_module(SORTED), parse_module(PROGRAM)
    times = measured_changes(sorted_, (), (), [small])
    assert set(times) == {"", 0}
    assert len(times[""].runs) == len(times[0].runs)


def test_a_run_is_the_lower_quartile_and_its_noise_is_between_quarters() -> None:
    """A gain counts as far as every quarter has it: every second run sees as much of a busy machine."""
    timed = Timed([5.0, 9.0, 8.0, 40.0, 7.0, 6.0, 6.5, 30.0], {})
    assert timed.us == 6.5
    assert timed.quarters == [5.0, 8.0, 6.0, 6.5]
    assert timed.noise == pytest.approx(3.0 / 6.5)
    assert timed.least_gain(Timed([4.0, 4.0, 4.0, 38.0, 5.5, 6.0, 5.5, 5.5], {})) == 0.5
    assert timed.least_gain(Timed([4.0, 4.0, 4.0, 38.0, 6.5, 6.5, 5.5, 5.5], {})) == -0.5
