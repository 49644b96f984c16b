"""`hlofuse.testing` as a project's own tests use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import hlofuse
from hlofuse.ir import HlofuseError
from hlofuse.testing import assert_fusion, assert_kernels
from ..conftest import ROOT

pytest_plugins = ("pytester",)
DUMP = ROOT / "samples" / "cpu" / "softmax" / "before.hlo"
GPU = ROOT / "samples" / "gpu" / "softmax" / "before.hlo"


def test_a_dump_a_text_a_module_and_a_capture_are_the_same() -> None:
    capture = SimpleNamespace(module=lambda _=None: SimpleNamespace(before=DUMP))
    profiles = [
        assert_fusion(program, at_most=4)
        for program in (DUMP, str(DUMP), DUMP.read_text(), hlofuse.load(DUMP), capture)
    ]
    assert all(p == profiles[0] for p in profiles)
    assert profiles[0].figures.kernels == 4


def test_a_module_before_optimizations_is_measured_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  r = f32[2,2]{1,0} reshape(p)\n"
        "  ROOT n = f32[2,2]{1,0} negate(r)\n}\n"
    )
    with pytest.warns(UserWarning, match="APPROXIMATE"):
        assert_fusion(path, at_most=1)


def test_too_many_kernels_are_told_with_the_rules() -> None:
    with pytest.raises(AssertionError, match=r"(?s)4 kernels, 3 allowed.*programs.py:89.*CPU007"):
        assert_fusion(DUMP, at_most=3)


def test_bytes_and_time() -> None:
    assert assert_fusion(GPU, device="h100_sxm", max_bytes="9MB", max_time="4us").figures.us == 3.59
    with pytest.raises(AssertionError, match=r"8\.39 MB moved, 1\.00 MB allowed"):
        assert_fusion(GPU, device="h100_sxm", max_bytes=1_000_000)
    with pytest.raises(AssertionError, match=r"estimated 3\.59 µs"):
        assert_fusion(GPU, device="h100_sxm", max_time="3us")


def test_operations_in_one_kernel() -> None:
    assert_fusion(GPU, device="h100_sxm", together=["divide", "exponential"])
    with pytest.raises(AssertionError, match=r"(?s)no kernel has divide, multiply together.*CPU007 refused"):
        assert_fusion(DUMP, together=["divide", "multiply"])


@pytest.mark.parametrize("program", [3, "missing.hlo", "no\nmodule", ROOT / "samples" / "cpu"])
def test_what_is_no_subject_is_said(program: object) -> None:
    with pytest.raises(HlofuseError):
        assert_fusion(program, at_most=3)


def test_an_assertion_without_a_bound_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="nothing to assert"):
        assert_fusion(DUMP)


def test_functions_are_captured_for_their_target(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = []

    def capture(function: object, *arguments: object, out: Path, **options: object) -> object:
        requested.append((function, arguments, options))
        assert out.parent.is_dir(), "a folder that goes away with the test"
        return SimpleNamespace(module=lambda _=None: SimpleNamespace(before=GPU))

    monkeypatch.setattr(hlofuse, "capture", capture, raising=False)
    found = assert_kernels(len, ("x",), at_most=1, target="gpu", device="h100_sxm")
    assert (found.target, found.device) == ("gpu", "h100_sxm")
    assert requested == [(len, ("x",), {"target": "gpu", "device": "h100_sxm"})]


def test_the_plugin_loads_nothing_before_it_is_used() -> None:
    code = (
        "import sys, pytest, hlofuse.testing, hlofuse.testing.plugin;"
        "print(sorted(m for m in sys.modules if m.partition('.')[0] in ('hlofuse', 'click', 'lark', 'rich')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "['hlofuse', 'hlofuse.testing', 'hlofuse.testing.plugin']\n"


PROGRAM = """
def test_step(fusion_snapshot):
    assert fusion_snapshot({subject!r}{words}).figures.kernels
"""


def run(pytester: pytest.Pytester, program: Path, text: str = "", *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=PROGRAM.format(subject=str(program), words=text))
    # An installed hlofuse brings the plugin under its entry point's name.
    return pytester.runpytest("-p", "no:hlofuse", "-p", "hlofuse.testing.plugin", *options)


def test_a_snapshot_is_written_compared_and_accepted_anew(pytester: pytest.Pytester) -> None:
    run(pytester, DUMP).stdout.fnmatch_lines(["*no snapshot of jit_softmax*--fusion-update*"])
    run(pytester, DUMP, "", "--fusion-update").assert_outcomes(passed=1)
    file = pytester.path / "fusion_snapshots" / "test_it" / "test_step.toml"
    assert "kernels = 4" in file.read_text()
    run(pytester, DUMP).assert_outcomes(passed=1)
    file.write_text(file.read_text().replace("broadcast, divide", "divide, sine"))
    result = run(pytester, DUMP)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*fusion-changed*", "*was*divide, sine*", "*now*broadcast, divide*"])
    run(pytester, DUMP, ", strict=False").assert_outcomes(passed=1)
    run(pytester, DUMP, "", "--fusion-update").assert_outcomes(passed=1)
    run(pytester, DUMP).assert_outcomes(passed=1)


def test_a_snapshot_of_a_gpu_module(pytester: pytest.Pytester) -> None:
    text = ", device='h100_sxm', name='step'"
    run(pytester, GPU, text, "--fusion-update").assert_outcomes(passed=1)
    run(pytester, GPU, text).assert_outcomes(passed=1)
    run(pytester, GPU, text.replace("h100_sxm", "b200")).assert_outcomes(failed=1)
