"""Products with a vector that ReshapeMover moved, as XLA's dumps of each pass have them."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.front_end_names import named_by_front_end
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_in_turn import makers_in_turn
from hlofuse.pipelines.likely_ids.moved_products import is_moved_product, is_sum_of_moved
from hlofuse.pipelines.likely_ids.simplification_rounds import in_rounds
from tests.pipelines.made import op, text_of

_OF = op("dot_general")
_ADDING = "to_apply=%region"
_SHAPES = {"array": "f32[8,4,6]{2,1,0}", "rows": "f32[8,6]{1,0}", "vector": "f32[6]{0}"}
_PARAMETERS = "\n".join(
    [
        "  %array = f32[8,4,6]{2,1,0} parameter(0)",
        "  %rows = f32[8,6]{1,0} parameter(1)",
        "  %vector = f32[6]{0} parameter(2)",
        "  %short = f32[8]{0} parameter(3)",
        "  %zero = f32[] constant(0)",
    ]
)


def _product(array: str, vector: str, spread: str, summed: str, shape: str, *more: str) -> str:
    kind = _SHAPES[array]
    return text_of(
        [
            f"%broadcast.7.0 = {kind} broadcast(%{vector}), dimensions={spread}, {_OF}",
            f"%multiply.3.0 = {kind} multiply(%{array}, %broadcast.7.0), {_OF}",
            *more,
            f"%reduce.2.0 = {shape} reduce(%multiply.3.0, %zero), dimensions={summed}, {_ADDING}, {_OF}",
        ],
        _PARAMETERS,
    )


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        (_product("rows", "vector", "{1}", "{1}", "f32[8]{0}"), False),
        (_product("array", "rows", "{0,2}", "{2}", "f32[8,4]{1,0}"), False),  # of each batch a matrix
        (_product("array", "vector", "{2}", "{2}", "f32[8,4]{1,0}"), True),  # two dimensions were one
        (_product("rows", "short", "{0}", "{0}", "f32[6]{0}"), True),  # the matrix was transposed
    ],
)
def test_it_was_moved_if_no_pass_makes_it_so(text: str, moved: bool) -> None:
    product, total = parse_module(text).entry.instructions[-2:]
    assert is_moved_product(product) == moved
    assert is_sum_of_moved(total) == moved


def test_a_product_of_the_program_was_not() -> None:
    text = _product("array", "vector", "{2}", "{2}", "f32[8,4]{1,0}").replace("multiply.3", "mul.3")
    assert not is_moved_product(parse_module(text).entry.instructions[-2])


def test_what_took_the_reshape_in_is_of_the_next_simplification() -> None:
    module = parse_module(_product("array", "vector", "{2}", "{2}", "f32[8,4]{1,0}"))
    makers = makers_in_turn(module.entry, named_by_front_end(module)).makers
    made = [x for x, maker in makers.items() if maker == Maker.SIMPLIFIER_AGAIN]
    turns = [[x.name for x in turn] for turn in in_rounds(made) if turn]
    assert turns == [["multiply.3.0"], ["broadcast.7.0", "reduce.2.0"]]


def test_what_has_a_higher_number_is_no_older() -> None:
    """Nothing else would tell so of a product with a number, which the first simplification may have made."""
    later = f"%multiply.4.0 = f32[8,6]{{1,0}} multiply(%rows, %rows), {op('div')}"
    module = parse_module(_product("array", "vector", "{2}", "{2}", "f32[8,4]{1,0}", later))
    makers = makers_in_turn(module.entry, named_by_front_end(module)).makers
    assert next(maker for x, maker in makers.items() if x.name == "multiply.4.0") == Maker.SIMPLIFIER_AGAIN
