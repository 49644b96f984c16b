"""Ahead of fusion as XLA:CPU: whole programs, single passes and small cases, settled by XLA's own dumps.

`tests/data/cpu-unoptimized.tar.xz` is made by `tests/tools/pack_passes.py`: the 63 programs of the
corpus and 337 random ones, and of every pass a few modules that it changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.pipelines.targets import before_fusion
from hlofuse.trace import Recorder
from ..fixtures import Case, find_case, read_cases
from ..running import lowered
from ..tools.compare_passes import same_structure
from ..tools.module_checks import check_module
from .packed import archive

CASES = read_cases(Path(__file__).parent / "cases")
CPU_CASES = [case for case in CASES if ("EXPECT", "cpu") in case.sections]
PARTS = 8
DIFFERENT = {
    "random_1003",  # a constant that is left out of the dump counts upwards
    "random_1059",  # the same
    "random_2053",  # a constant that is left out of the dump counts upwards
    "random_3029",  # reduction of a concatenation in a second round
}


def simple_steps(step: Pass) -> dict[str, Pass]:
    """The passes in it by name."""
    if isinstance(step, FixedPoint) and isinstance(step.of, Pipeline):
        return simple_steps(step.of)
    if isinstance(step, Pipeline):
        return {name: inner for s in step.steps for name, inner in simple_steps(s).items()}
    return {} if isinstance(step, UnimplementedPass) else {step.name: step}


# No broadcast that comes by StableHLO is out of order; `test_gpu.py` has XLA's answers. No packed program has
# any of the others, the small cases, `test_expanders.py` and, of several devices, `test_collectives.py` do.
NARROW = "f4e2m1fn f8e3m4 f8e4m3 f8e4m3b11fnuz f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu s4 u4".split()
_NEVER_SEEN = {
    "associative-scan-rewriter",
    "all-reduce-promotion",
    "all_to_all_decomposer",
    "async-collective-replacer",
    "batch-dot-simplification",
    "batchnorm_expander",
    "broadcast_canonicalizer",
    "convolution-group-converter",
    "dynamic-index-splitter",
    "dynamic_padder",
    *(f"float-normalization-{kind}" for kind in NARROW),
    "gather_expander",
    "logistic-expander",
    "map-inline",
    "operand_upcaster",
    "permutation_sort_simplifier",
    "reduce-decomposer",
    "result_caster",
    "rng-bit-generator-expander",
    "scan_expander",
    "sharding-remover",
    "shardy-xla",
    "simplify-sorts",
    "strip-memory-placement-annotations",
    "zero_sized_hlo_elimination",
}
PASSES = {name: step for pipeline in before_fusion("cpu") for name, step in simple_steps(pipeline).items()}


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_come_out_as_xla_has_them_ahead_of_fusion(part: int) -> None:
    different = set()
    names = sorted(case for case in archive("cpu") if case.startswith("programs/"))[part::PARTS]
    assert len(names) >= 50
    for case in names:
        texts = archive("cpu")[case]
        out = lowered(parse_module(texts["before"]), "cpu")
        check_module(out.module)
        assert not out.left_alone, case
        if not same_structure(out.module, parse_module(texts["ahead"])):
            different.add(case.removeprefix("programs/"))
    assert different == {name for name in DIFFERENT if f"programs/{name}" in names}


@pytest.mark.parametrize("name", sorted(PASSES.keys() - _NEVER_SEEN))
def test_a_pass_changes_a_module_as_xla_does(name: str) -> None:
    cases = [texts for case, texts in archive("cpu").items() if case.startswith(f"passes/{name}/")]
    assert cases
    for texts in cases:
        module = parse_module(texts["given"])
        assert PASSES[name].run(module, Recorder())
        check_module(module)
        assert same_structure(module, parse_module(texts["left"]))


@pytest.mark.parametrize("case", CPU_CASES, ids=str)
def test_a_small_case_comes_out_as_xla_has_it(case: Case) -> None:
    out = lowered(case.module(), "cpu")
    assert not out.left_alone
    assert same_structure(out.module, case.expected("cpu"))


def test_a_broadcast_is_put_in_order_after_layout_assignment() -> None:
    case = find_case(Path(__file__).parent / "cases" / "broadcasts.hlo", "broadcast_out_of_order")
    out = lowered(case.module(), "cpu").module
    (broadcast,) = (i for i in out.instructions() if i.opcode == "broadcast")
    assert list(broadcast.dimensions) == [1, 2]
    (transpose,) = broadcast.operands
    assert transpose.opcode == "transpose"
    assert transpose.shape.minor_to_major == transpose.operands[0].shape.minor_to_major
