"""Single folds, as XLA's dumps of the pass have them in larger programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.common.evaluation import CannotEvaluate, evaluate
from hlofuse.trace import Recorder
from ..fixtures import companion_texts
from ..tools.module_checks import check_module

TEXTS = companion_texts(__file__)

FOLDING = Path(__file__).parent / "cases" / "constant_folding.hlo"


def folded(text: str) -> Module:
    module = parse_module(text)
    assert HloConstantFolding().run(module, Recorder())
    check_module(module)
    return module


def test_a_choice_whose_branch_repeats_a_value_stays() -> None:
    """A broadcast is not folded, not even in a branch."""
    module = parse_module(TEXTS["choice_whose_branch"])
    assert not HloConstantFolding().run(module, Recorder())


def test_the_bitcast_of_a_constant_reads_it_as_it_lies() -> None:
    module = folded(TEXTS["bitcast_constant_reads"])
    assert module.entry.root.literal.canonical_text.replace(" ", "") == "{{1,3,5},{2,4,6}}"


def test_a_scatter_into_a_scalar_adds_its_one_update() -> None:
    assert folded(TEXTS["scatter_into_a_scalar"]).entry.root.literal.canonical_text == "3"


def test_a_long_chain_of_moves_is_not_evaluated() -> None:
    steps = "".join(f"  r{k} = f32[2] reverse(r{k - 1}), dimensions={{0}}\n" for k in range(1, 3000))
    text = (
        f"HloModule m\nENTRY e {{\n  r0 = f32[2] parameter(0)\n{steps}  ROOT r = f32[2] negate(r2999)\n}}\n"
    )
    with pytest.raises(CannotEvaluate):
        evaluate(parse_module(text).entry.root.operands[0])


@pytest.mark.parametrize("size", [1, 45_000_001])
def test_operations_on_elements_that_a_text_leaves_out_become_such_constants(size: int) -> None:
    """XLA knows the elements and folds what reads them, unless there are too many."""
    module = parse_module(f"""HloModule m

%sum (a: s32[], b: s32[]) -> s32[] {{
  %a = s32[] parameter(0)
  %b = s32[] parameter(1)
  ROOT %c = s32[] add(%a, %b)
}}

ENTRY %e () -> (s32[{size}], s32[]) {{
  %base = s32[{size}]{{0}} constant({{...}})
  %index = s32[1]{{0}} constant({{0}})
  %update = s32[] constant(3)
  %set = s32[{size}]{{0}} scatter(%base, %index, %update), update_window_dims={{}},
    inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=0, to_apply=%sum
  %zero = s32[] constant(0)
  %total = s32[] reduce(%base, %zero), dimensions={{0}}, to_apply=%sum
  ROOT %r = (s32[{size}]{{0}}, s32[]) tuple(%set, %total)
}}
""")
    assert HloConstantFolding().run(module, Recorder()) == (size == 1)
    check_module(module)
    assert [x.opcode for x in module.entry.root.operands] == [
        "constant" if size == 1 else "scatter",
        "reduce",  # no text leaves out a scalar
    ]


def test_a_sort_of_elements_that_a_text_leaves_out_is_folded() -> None:
    module = folded(TEXTS["sort_elements_text"])
    assert module.entry.root.opcode == "constant"


def test_equal_operations_on_elements_that_a_text_leaves_out_are_one_constant() -> None:
    """XLA sees that the results are equal and merges them, which no text shows."""
    module = folded(TEXTS["equal_operations_elements"])
    x, y, z = module.entry.root.operands
    assert {x.opcode, y.opcode, z.opcode} == {"constant"}
    assert x is y
    assert x is not z


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("reverse(%c), dimensions={0}", "{5,6},{3,4},{1,2}"),
        ("reverse(%c), dimensions={0,1}", "{6,5},{4,3},{2,1}"),
        ("dynamic-slice(%c, %one, %zero), dynamic_slice_sizes={1,2}", "{3,4}"),
        ("dynamic-slice(%c, %nine, %zero), dynamic_slice_sizes={2,2}", "{3,4},{5,6}"),
    ],
)
def test_elements_that_only_move_are_known(operation: str, expected: str) -> None:
    """A start that would reach beyond the array is moved into it."""
    rows = expected.count("{")
    module = folded(f"""HloModule m

ENTRY %e () -> f32[{rows},2] {{
  %c = f32[3,2]{{1,0}} constant({{ {{ 1, 2 }}, {{ 3, 4 }}, {{ 5, 6 }} }})
  %zero = s32[] constant(0)
  %one = s32[] constant(1)
  %nine = s32[] constant(9)
  ROOT %r = f32[{rows},2]{{1,0}} {operation}
}}
""")
    assert module.entry.root.literal.canonical_text.replace(" ", "") == "{" + expected + "}"


@pytest.mark.parametrize(("taken", "opcode"), [(1, "clamp"), (2, "dynamic-slice")])
def test_one_number_of_a_counter_is_its_place(taken: int, opcode: str) -> None:
    module = parse_module(f"""HloModule m

ENTRY %e (k: s32[]) -> s32[{taken}] {{
  %k = s32[] parameter(0)
  %n = s32[7]{{0}} iota(), iota_dimension=0
  ROOT %r = s32[{taken}]{{0}} dynamic-slice(%n, %k), dynamic_slice_sizes={{{taken}}}
}}
""")
    AlgebraicSimplifier(Options()).run(module, Recorder())
    check_module(module)
    assert opcode in {i.opcode for i in module.entry}
