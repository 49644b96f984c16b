"""Copies as XLA makes them: single rules, and whole programs.

`tests/data/copy-insertion.tar.xz` is made by `tests/tools/pack_copies.py`: the corpus, loops and updates in
place of `tests/tools/loop_programs.py`, and 160 random programs of loops, branches and updates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.copy_insertion.buffer_alias import (
    GpuAliasInfo,
    LoopScheduleLinearizer,
    OptimizeInputOutputBufferAlias,
)
from hlofuse.passes.copy_insertion.copy_insertion import CopyInsertion, PostSchedulingCopyInsertion
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.trace import Recorder
from ..fixtures import Case, companion_texts, read_cases, texts_of
from ..tools.compare_passes import same_structure
from ..tools.module_checks import check_module

TEXTS = companion_texts(__file__)

HERE = Path(__file__).parent
CASES = read_cases(HERE / "copy_cases")
ARCHIVE = HERE.parent / "data" / "copy-insertion.tar.xz"
ALIAS_INFO: dict[str, Callable[[], AliasInfo]] = {
    "cpu": partial(AliasInfo, RELEASE),
    "gpu": partial(GpuAliasInfo, load_device("h100_sxm"), RELEASE),
}
PARTS = 6
DIFFERENT: set[str] = set()


def copies(module: Module) -> list[tuple[str, str]]:
    """What is copied, and in which computation."""
    return sorted(
        (x.computation.name if x.computation else "", x.operands[0].name)
        for x in module.instructions()
        if x.opcode == "copy"
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_is_applied_as_xla_does(case: Case) -> None:
    module = case.module()
    CopyInsertion().run(module, Recorder())
    check_module(module)
    assert same_structure(module, case.expected("cpu"))


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_get_the_copies_that_xla_gives_them(part: int) -> None:
    names = sorted(texts_of(ARCHIVE))[part::PARTS]
    assert len(names) > 40
    different = set()
    for name in names:
        texts, info = texts_of(ARCHIVE)[name], ALIAS_INFO[name.partition("/")[0]]
        module = parse_module(texts["before.hlo"])
        CopyInsertion(info).run(module, Recorder())
        check_module(module)
        if not same_structure(module, parse_module(texts["after.hlo"])):
            different.add(name)
    assert different == {name for name in DIFFERENT if name in names}


def test_a_schedule_makes_the_copies_needless_that_xla_removes() -> None:
    names = [name for name, texts in texts_of(ARCHIVE).items() if "scheduled.hlo" in texts]
    assert len(names) > 30
    for name in names:
        texts = texts_of(ARCHIVE)[name]
        module = parse_module(texts["scheduled.hlo"])
        PostSchedulingCopyInsertion(ALIAS_INFO["gpu"]).run(module, Recorder())
        check_module(module)
        assert same_structure(module, parse_module(texts["rescheduled.hlo"])), name


READ_BETWEEN = TEXTS["read_between"]


def test_a_module_without_a_schedule_runs_in_the_order_that_needs_least_memory() -> None:
    """XLA reads `a` before `b` overwrites it: h100_sxm of 0.11.1 copies `x` alone."""
    module = parse_module(READ_BETWEEN)
    PostSchedulingCopyInsertion(ALIAS_INFO["gpu"]).run(module, Recorder())
    assert copies(module) == [("main", "x")]


UPDATE = """HloModule m{donated}

ENTRY main {{
  cache = f32[8,16]{{1,0}} parameter(0)
  row = f32[1,16]{{1,0}} parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT update = f32[8,16]{{1,0}} dynamic-update-slice(cache, row, at, zero)
}}
"""


@pytest.mark.parametrize(
    ("donated", "expected"),
    [
        ("", [("main", "cache")]),
        (", buffer_donor={ (0, {}) }", [("main", "cache")]),
        (", input_output_alias={ {}: (0, {}, may-alias) }", []),
    ],
)
def test_an_argument_is_overwritten_only_if_a_result_lies_in_its_memory(
    donated: str, expected: list[tuple[str, str]]
) -> None:
    module = parse_module(UPDATE.format(donated=donated))
    CopyInsertion().run(module, Recorder())
    assert copies(module) == expected


def test_a_donor_gets_the_result_of_its_size() -> None:
    module = parse_module(UPDATE.format(donated=", buffer_donor={ (0, {}), (1, {}) }"))
    assert OptimizeInputOutputBufferAlias().run(module, Recorder())
    assert module.attributes.raw("input_output_alias") == "{ {}: (0, {}, may-alias) }"
    assert module.attributes.raw("buffer_donor") == "{ (1, {}) }"
    assert not OptimizeInputOutputBufferAlias().run(module, Recorder())
    assert not OptimizeInputOutputBufferAlias().run(parse_module(UPDATE.format(donated="")), Recorder())


def test_a_copy_is_recorded_with_the_reason_for_it() -> None:
    recorder = Recorder()
    recorder.begin_pass("copy-insertion")
    CopyInsertion().run(parse_module(UPDATE.format(donated="")), recorder)
    [event] = recorder.events
    assert event.added == ("copy.1",)
    assert event.reason == "the argument is not donated"


LOOP = TEXTS["loop"]


def test_reads_of_a_carried_value_come_before_its_next_write() -> None:
    module = parse_module(LOOP)
    assert LoopScheduleLinearizer().run(module, Recorder())
    found = {x.name: [p.name for p in x.control_predecessors] for x in module.instructions()}
    assert found["new"] == ["sum"]
    assert found["sum"] == []  # it would have to run before itself
    assert not LoopScheduleLinearizer().run(module, Recorder())


def test_calls_with_several_callers_are_left_alone() -> None:
    twice = TEXTS["calls_several_callers"]
    recorder = Recorder()
    assert not CopyInsertion().run(parse_module(twice), recorder)
    assert recorder.left_alone
