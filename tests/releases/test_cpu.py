"""What differs between releases on CPU: small modules with XLA's answers of the release before and after.

Keys of a case: `differs`, the behaviour, rule or knob it isolates; `xla`, the release whose answer needs it.
EXPECT is labelled with the release that answered.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.ir.record import replace
from hlofuse.ir.text.printer import print_module
from hlofuse.passes import make_pass
from hlofuse.pipelines.targets import passes_of
from hlofuse.releases import ANY, Release, behaviours, release_of
from hlofuse.reports.verify.verify import verify_module
from hlofuse.rules.catalogue import catalogue
from hlofuse.trace import Recorder
from ..fixtures import Case, read_cases

CASES = read_cases(Path(__file__).with_name("cpu.hlo"))
_BEHAVIOURS = {
    "embedded_computations_stay",
    "cpu_inlined_computations_stay",
    "cpu_own_expensive",
    "in_place_through_bitcasts",
    "tiles_narrow_types",
    "tiles_unsigned_and_complex",
    "wraps_all_loops",
}


def flipped(release: Release, name: str) -> Release:
    """The release with one difference the other way round."""
    if name in behaviours():
        changed: dict[str, Any] = {name: not getattr(release, name)}
        return replace(release, **changed)
    return replace(release, flipped=frozenset({name}))


def outcome(case: Case, release: Release) -> tuple[str, list[str | None]]:
    """The module after the fusion passes of a release, and the rules that decided."""
    module, recorder = case.module(), Recorder()
    for text in passes_of("cpu", release):
        recorder.begin_pass(text)
        make_pass(text, "cpu", release).run(module, recorder)
    return print_module(module), [event.rule for event in recorder.events]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_release_as_xla_answered(case: Case) -> None:
    answered = [label for word, label in case.sections if word == "EXPECT"]
    assert case.options["xla"] in answered
    assert len(answered) == 2
    for release in answered:
        config = replay_config("cpu", xla=release)
        v = verify_module(CompilationInput(case.module()), case.expected(release), config)
        assert v.exact, (release, str(v.difference))
        assert v.fusion_names == v.fusions


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_difference_is_needed(case: Case) -> None:
    release = release_of(case.options["xla"])
    assert outcome(case, release) != outcome(case, flipped(release, case.options["differs"]))


def test_everything_that_differs_has_a_case() -> None:
    rules = [r for code, r in catalogue().items() if code.startswith(("CPU", "FW"))]
    # No module of a few lines keeps a plain copy until fusion; tests/rules/FW005.hlo has a larger one.
    spans = {r.code for r in rules if r.span != ANY} - {"FW005"}
    knobs = {k.name for r in rules for k in r.knobs if k.by_release}
    assert {case.options["differs"] for case in CASES} == spans | knobs | _BEHAVIOURS


def test_the_first_pass_of_a_process_has_the_numbers_of_its_release() -> None:
    """The rules of a pass are imported with it, and a number of theirs that varies must not come too late."""
    code = """if True:
        from hlofuse.passes.registry import make_pass
        from hlofuse.releases import release_of
        fusion = make_pass("fusion", "cpu", release_of("0.12.0.1"))
        print(fusion.settings.knobs["cpu-min-concatenate-bytes"])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2048.0", done.stderr
