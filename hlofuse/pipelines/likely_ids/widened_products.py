"""Converts that were made for matrix products and convolutions, before others widened what they compute.

Where the device has no products of bf16, FloatNormalization widens them before layouts are assigned
(`OptimizeHloConvolutionCanonicalization` in `xla/service/gpu/nvptx_compiler.cc`). LayoutNormalization makes
those anew that got another layout. All else that is too narrow is widened behind fusions. Numbers in names
grow from turn to turn.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.never_back import never_back
from hlofuse.pipelines.likely_ids.signs_of_passes import CALLS
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming

_TURNS = (Maker.WIDENED_PRODUCTS, Maker.LAYOUT_NORMALIZATION, Maker.FLOAT_NORMALIZATION)


def widened_for_products(makers: Mapping[Instruction, Maker]) -> dict[Instruction, Maker]:
    """Who made the converts that seem to be of the late turn, if some are of the early one."""
    chain = [x for x, maker in makers.items() if maker in _TURNS and _is_named_by_pass(x)]
    told = {x: _evidence(x, makers) for x in chain}
    if Maker.WIDENED_PRODUCTS not in told.values():
        return {}
    chain.sort(key=lambda x: name_before_renaming(x).number)
    indices = [None if (turn := told[x]) is None else _TURNS.index(turn) for x in chain]
    turns = never_back(indices, [1] * len(_TURNS))
    return {
        x: _TURNS[turn]
        for x, turn in zip(chain, turns, strict=True)
        if makers[x] == Maker.FLOAT_NORMALIZATION
    }


def _is_named_by_pass(x: Instruction) -> bool:
    return x.opcode == "convert" and name_before_renaming(x).root == x.opcode and not is_told_of_program(x)


def _evidence(x: Instruction, makers: Mapping[Instruction, Maker]) -> Maker | None:
    """What stands around it tells; None for nothing."""
    if makers[x] == Maker.LAYOUT_NORMALIZATION:
        return Maker.LAYOUT_NORMALIZATION
    wide, narrow = (x.users, x.operands) if x.shape.element_type == "f32" else (x.operands, x.users)
    if any(_is_call(n) for n in wide):
        turned = any(makers.get(n) == Maker.LAYOUT_NORMALIZATION for n in narrow if n.opcode != "transpose")
        return Maker.LAYOUT_NORMALIZATION if turned else Maker.WIDENED_PRODUCTS
    if any(makers.get(n) == Maker.LAYOUT_NORMALIZATION and n.opcode == "transpose" for n in wide):
        return Maker.LAYOUT_NORMALIZATION
    if any(n.opcode == "reduce" or n.opcode in ELEMENTWISE_OPCODES - {"convert"} for n in wide):
        return Maker.FLOAT_NORMALIZATION
    return None


def _is_call(x: Instruction) -> bool:
    return x.opcode in CALLS or (x.opcode == "get-tuple-element" and x.operands[0].opcode in CALLS)
