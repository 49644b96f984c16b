"""Times measured on this machine: a program's own, and those of flags that are tried on it."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

import hlofuse as library
from hlofuse.ir import parse_module
from hlofuse.judge.judge import Timed
from hlofuse.judge.measure import measured_flags, measured_profile
from hlofuse.reports.verdict import measured
from hlofuse.reports.verdict.model import Suggestion
from hlofuse.reports.whatif.model import Trial

from ..running import Run

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")
PROGRAM = """HloModule small
ENTRY e {
  x = f32[64,64]{1,0} parameter(0)
  y = f32[64,64]{1,0} tanh(x)
  ROOT d = f32[64,64]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@needs_jax
def test_a_program_has_the_time_of_its_fastest_run_and_of_its_kernels() -> None:
    found = measured_profile(parse_module(PROGRAM))
    (module,) = found.modules
    assert found.run_us is not None
    assert 0 < module.total_us < 10 * found.run_us
    assert len(module.times) >= 2
    assert measured_profile(parse_module(PROGRAM)) is found


@needs_jax
def test_a_flag_that_does_not_compile_has_no_time() -> None:
    bad = "--xla_no_such_flag=true"
    times = measured_flags(parse_module(PROGRAM), (), ["--xla_cpu_multi_thread_eigen=false", bad])
    assert set(times) == {"", "--xla_cpu_multi_thread_eigen=false"}


def test_a_module_for_another_device_is_not_measured(hlofuse: Run, samples: Path) -> None:
    result = hlofuse("explain", samples / "gpu" / "gpt2_block", "--measure")
    assert result.status == 2
    assert "--measure runs on this CPU" in result.err


@pytest.mark.parametrize(("us", "counts"), [(90.0, True), (98.5, False), (130.0, False)])
def test_a_flag_counts_above_the_noise_only(us: float, counts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = library.open(PROGRAM, target="cpu").verdict
    trial = Trial(None, "replayed", 5.0, 0, 0, 0)
    flag = Suggestion("flag", "Set it", "", (), 0, trial, flag="--a=b")
    times = {"": Timed([100.0] * 4, {}), "--a=b": Timed([us] * 4, {})}
    monkeypatch.setattr(measured, "measured_flags", lambda *_: times)
    found = measured.with_measured_flags(replace(verdict, suggestions=(flag,)), parse_module(PROGRAM), ())
    assert [s.trial.scaled_us_saved for s in found.suggestions] == ([100.0 - us] if counts else [])
