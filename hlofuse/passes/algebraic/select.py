"""Selections (`HandleSelect`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.facts import is_all
from hlofuse.passes.common import make

_OF_PREDS = {"GT": "or", "GE": "or", "LT": "and", "LE": "and"}


def handle_select(c: Context, select: Instruction) -> None:
    condition, yes, no = select.operands
    if yes is no and c.replace_if_compatible(select, yes):
        return
    if is_all(condition, True) and c.replace_if_compatible(select, yes):
        return
    if is_all(condition, False) and c.replace_if_compatible(select, no):
        return
    if condition.opcode == "not":
        c.replace(select, make.add(select, "select", select.shape, [condition.operands[0], no, yes]))
        return
    if select.shape.element_type == "pred" and _of_preds(c, select):
        return
    _with_update(c, select)


def _of_preds(c: Context, select: Instruction) -> bool:
    condition, yes, no = select.operands
    if is_all(yes, True) and is_all(no, False):
        c.replace(select, condition)
    elif is_all(yes, False) and is_all(no, True):
        c.replace(select, make.unary(select, "not", condition))
    elif condition.opcode == "compare" and condition.operands == [yes, no]:
        direction = str(condition.attributes.raw("direction"))
        if direction in _OF_PREDS:
            c.replace(select, make.binary(select, _OF_PREDS[direction], yes, no))
        else:
            c.replace(select, no if direction == "EQ" else yes)
    else:
        return False
    return True


def _with_update(c: Context, select: Instruction) -> None:
    """Either an array or the same with a part updated: select only the part."""
    condition, yes, no = select.operands
    for update, other in ((no, yes), (yes, no)):
        if update.opcode != "dynamic-update-slice" or update.operands[0] is not other:
            continue
        if len(update.users) != 1 or update.users[0].operands.count(update) != 1:
            continue
        part, starts = update.operands[1], update.operands[2:]
        sizes = part.shape.dimensions
        new_condition = condition
        if condition.shape.dimensions:
            new_condition = make.dynamic_slice(select, condition, starts, sizes)
            new_condition.shape = part.shape.with_element_type("pred")
        old = make.dynamic_slice(select, other, starts, sizes)
        branches = (old, part) if update is no else (part, old)
        chosen = make.select(select, new_condition, *branches)
        c.replace(select, make.dynamic_update_slice(select, other, chosen, starts))
        return
