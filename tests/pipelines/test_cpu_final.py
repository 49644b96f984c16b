"""XLA:CPU's passes after fusion against XLA's dumps, and what is launched against the runtime's thunks."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import pytest

from hlofuse.analysis.kernels import is_small_call
from hlofuse.analysis.launches import LaunchKind, launch_of
from hlofuse.compilation import compile
from hlofuse.ir import parse_module
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module
from hlofuse.matching.kernels import KernelKeys
from hlofuse.passes.base import Pass
from hlofuse.passes.cpu.calls import parallel_tasks
from hlofuse.pipelines.targets import after_fusion
from hlofuse.trace import Recorder
from ..fixtures import texts_of
from ..tools.module_checks import verify_module as graph_problems

DATA = Path(__file__).parent.parent / "data" / "cpu-final.tar.xz"
COPIES = "copy-insertion"
TASKS = re.compile(r', backend_config=\{"outer_dimension_partitions":\[([^]]*)\]\}')

THUNKS: dict[str, LaunchKind] = {
    "kernel": "kernel",
    **dict.fromkeys(("ynn-fusion", "dot", "convolution", "fft", "sort", "topk", "custom-call"), "library"),
    "copy": "copy",
    **dict.fromkeys(("rng-seed", "rng-get-and-update-state", "infeed", "outfeed"), "host"),
    **dict.fromkeys(("replica-id", "partition-id"), "host"),
}
HISTORY = {"random_loop"}
"""A call is numbered after calls that earlier passes inlined; no text carries those."""
COPIES_COUNT = {"exchange_in_loop", "linear_algebra", "random_loop"}
"""Whether a loop is small depends on the copies that copy insertion puts into it."""


NAMES = sorted(texts_of(DATA))


def module_of(name: str, stage: str) -> Module:
    """The module without the numbers of tasks, which depend on the machine that compiled."""
    return parse_module(TASKS.sub("", texts_of(DATA)[name][f"{stage}.hlo"]))


def passes() -> list[Pass]:
    """The single passes after fusion and those that run until nothing changes, in order."""
    return [step for pipeline in after_fusion("cpu") for step in pipeline.steps]


def run(steps: list[Pass], module: Module) -> Module:
    for step in steps:
        step.run(module, Recorder())
    return module


def launches(module: Module, without: str = "") -> Counter[tuple[str, str]]:
    """Names and kinds of what the entry launches, and what it runs through control flow."""
    found: Counter[tuple[str, str]] = Counter()
    computations = [module.entry]
    for computation in computations:  # grows while it is walked
        for x in computation:
            launch = launch_of(x, "cpu")
            if launch is not None and launch.kind != without:
                found[x.name, launch.kind] += 1
            if x.opcode in ("while", "conditional", "call") and not is_small_call(x):
                computations += x.called_computations
    return found


def assert_equal_structure(actual: Module, expected: Module) -> None:
    structures = KernelKeys()
    assert structures.module(actual).key == structures.module(expected).key


def test_there_is_something_to_compare() -> None:
    assert len(NAMES) > 80
    assert sum(len(p["launches.txt"].splitlines()) for p in texts_of(DATA).values()) > 900


@pytest.mark.parametrize("name", NAMES)
def test_launches_are_the_thunks_of_the_runtime(name: str) -> None:
    final = module_of(name, "final")
    sorts = {x.name for x in final.instructions() if x.opcode == "sort"}
    thunks: Counter[tuple[str, str]] = Counter()
    for line in texts_of(DATA)[name]["launches.txt"].splitlines():
        kind, _, instruction = line.partition(" ")
        if kind != "copy" or instruction not in sorts:  # a sort may copy its operands first
            thunks[instruction, THUNKS[kind]] += 1
    assert launches(final) == thunks


@pytest.mark.parametrize("name", NAMES)
def test_kernels_have_the_tasks_of_two_threads(name: str) -> None:
    text = texts_of(DATA)[name]["simplified.hlo"]
    found = ((line.split(), TASKS.search(line)) for line in text.splitlines())
    given = {cells[cells[0] == "ROOT"].lstrip("%"): m[1] for cells, m in found if m is not None}
    for x in parse_module(text).entry:
        if x.opcode not in ("while", "conditional", "call"):
            counts = [int(n.strip('"')) for n in given.get(x.name, "1").split(",")]
            assert parallel_tasks(x, 2) == math.prod(counts), x.name


@pytest.mark.parametrize("name", NAMES)
def test_passes_before_copy_insertion(name: str) -> None:
    steps = passes()
    until = next(k for k, step in enumerate(steps) if step.name == COPIES)
    actual = run(steps[:until], copy_module(compile(module_of(name, "input")).after))
    expected = module_of(name, "simplified")
    assert graph_problems(actual) == []
    assert launches(actual) == launches(expected)
    assert_equal_structure(actual, expected)


@pytest.mark.parametrize("name", NAMES)
def test_passes_after_copy_insertion(name: str) -> None:
    steps = passes()
    after = next(k for k, step in enumerate(steps) if step.name == COPIES) + 1
    actual = run(steps[after:], module_of(name, "copied"))
    expected = module_of(name, "final")
    assert graph_problems(actual) == []
    if name not in HISTORY:
        assert launches(actual) == launches(expected)
    assert_equal_structure(actual, expected)


@pytest.mark.parametrize("name", sorted(set(NAMES) - COPIES_COUNT))
def test_final_kernels_from_the_input_of_fusion(name: str) -> None:
    final = compile(module_of(name, "input")).final
    assert launches(final, without="copy") == launches(module_of(name, "final"), without="copy")
