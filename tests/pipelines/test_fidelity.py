"""The replay against XLA: exact after every pass, every fusion by XLA's name."""

from __future__ import annotations

from itertools import permutations

import pytest

from hlofuse.compilation import CompilationInput, compile, replay_config
from hlofuse.ir import parse_module, print_module
from hlofuse.ir.graph import Module
from hlofuse.reports.verify.model import Verdict
from hlofuse.reports.verify.verify import verify_module
from ..tools.module_checks import verify_module as graph_problems
from .cases import CORPUS, Answered, in_folder, packed

CPU = packed("cpu")
MULTI_OUTPUT = packed("cpu-multi-output")
NUMBERS_UNKNOWN = sorted(name for name in CPU if name.startswith("order-of-computations"))
EXACT = sorted(name for name in MULTI_OUTPUT if not name.startswith("order-of-"))
ORDER_UNKNOWN = sorted(name for name in MULTI_OUTPUT if name.startswith("order-of-results"))


def verdict(case: Answered, option: str | None = None) -> Verdict:
    return verify_module(
        CompilationInput(parse_module(case.before)),
        parse_module(case.after),
        replay_config("cpu", option=option),
        after_passes=[(name, parse_module(text)) for name, text in case.after_passes],
    )


def assert_exact(v: Verdict) -> None:
    assert v.difference is None, str(v.difference)
    assert v.exact
    assert all(p.exact for p in v.passes)
    assert v.fusion_names == v.fusions


def test_there_is_something_to_compare() -> None:
    assert len(CPU) > 300
    assert len(EXACT) > 80
    assert sum(bool(case.after_passes) for case in CPU.values()) > 300


@pytest.mark.parametrize("name", sorted(CPU.keys() - set(NUMBERS_UNKNOWN)))
def test_cpu_is_exact(name: str) -> None:
    assert_exact(verdict(CPU[name]))


@pytest.mark.parametrize("name", NUMBERS_UNKNOWN)
def test_order_of_computations_is_not_in_the_text(name: str) -> None:
    """Fusions in two loops that do not call each other are numbered in the order XLA visits the loops, which
    comes from its earlier passes. The kernels agree, and the names as a whole do."""
    v = verdict(CPU[name])
    assert v.exact
    after = compile(parse_module(CPU[name].before)).after
    assert fusion_names(after) == fusion_names(parse_module(CPU[name].after))


def fusion_names(module: Module) -> list[str]:
    return sorted(i.name for i in module.instructions() if i.opcode == "fusion")


@pytest.mark.parametrize("name", EXACT)
def test_multi_output_is_exact(name: str) -> None:
    assert_exact(verdict(MULTI_OUTPUT[name], "multi-output"))


@pytest.mark.parametrize("name", ORDER_UNKNOWN)
def test_order_of_results_is_not_in_the_text(name: str) -> None:
    """Of pairs that share equally many bytes the one found last is fused first; that is the order of an
    array's users, which XLA has from its earlier passes and a text does not carry. The kernels agree."""
    v = verdict(MULTI_OUTPUT[name], "multi-output")
    assert v.partition
    assert not v.exact


def test_order_of_users_is_not_in_the_text() -> None:
    """The same tie, where it decides which of three siblings become one kernel: with the users of the
    array they read in another order the replay is XLA's."""
    case = MULTI_OUTPUT["order-of-users/random_319"]
    assert not verdict(case, "multi-output").partition
    exact = []
    config = replay_config("cpu", option="multi-output")
    for order in permutations(range(3)):
        before = parse_module(case.before)
        read = before.find("triangular_solve.0")
        assert read is not None
        read.users[:] = [read.users[k] for k in order]
        exact.append(verify_module(CompilationInput(before), parse_module(case.after), config).exact)
    assert any(exact)
    assert not exact[0]


@pytest.mark.parametrize("name", sorted(CPU)[::5])
def test_the_graph_stays_sound_and_the_input_untouched(name: str) -> None:
    before = parse_module(CPU[name].before)
    printed = print_module(before)
    result = compile(before)
    assert graph_problems(result.after) == []
    assert graph_problems(before) == []
    assert print_module(before) == printed


@pytest.mark.skipif(not (CORPUS / "cpu").is_dir(), reason="the whole corpus is not beside this checkout")
def test_the_whole_corpus_is_exact() -> None:
    cases = list(in_folder(CORPUS / "cpu"))
    assert len(cases) >= 63
    for case in cases:
        assert_exact(verdict(case))
