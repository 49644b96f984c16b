"""What LayoutNormalization made anew, told by what is beside it.

Operations that nothing stands between are laid out alike, so LayoutNormalization
(`xla/service/layout_normalization.cc`) made all of them anew or none, and called them after their opcodes.
What the framework calls the same is told by that, and what other passes had made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers import MOVES
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming

_LAID_ALIKE = (ELEMENTWISE_OPCODES | MOVES) - {"convert"}
_AHEAD = (Maker.FRONT_END, Maker.INLINER, Maker.SIMPLIFIER, Maker.SIMPLIFIER_AGAIN)
_SPREAD = (Maker.SIMPLIFIER, Maker.SIMPLIFIER_AGAIN)


def laid_beside(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What seems to be older than it is."""
    laid = {
        x: None for x, maker in makers.items() if maker == Maker.LAYOUT_NORMALIZATION and _is_laid_alike(x)
    }
    found = [x for x in _connected([*laid], makers) if x not in laid]
    laid.update(dict.fromkeys(found))
    between = _between_in_numbers(laid, makers)
    laid.update(dict.fromkeys(between))
    found += between
    spread = [
        x
        for x, maker in makers.items()
        if maker in _SPREAD and x.opcode in ("broadcast", "iota") and not is_told_of_program(x) and x.users
        if all(u in laid or makers.get(u) == Maker.LAYOUT_NORMALIZATION for u in x.users)
        if any(u in laid for u in x.users)
    ]
    return found + spread


def computed_of_laid(makers: Mapping[Instruction, Maker]) -> list[Instruction]:
    """What seems to be of the first simplification, but reads what was laid out anew, no bitcast between."""
    found: dict[Instruction, None] = {}
    for x, maker in makers.items():
        if maker == Maker.SIMPLIFIER and x.opcode in ELEMENTWISE_OPCODES and not is_told_of_program(x):
            arrays = (o for o in x.operands if o.opcode in ELEMENTWISE_OPCODES)
            if any(o in found or makers.get(o) == Maker.LAYOUT_NORMALIZATION for o in arrays):
                found[x] = None
    return [*found]


def _is_laid_alike(x: Instruction) -> bool:
    return x.opcode in _LAID_ALIKE and x.shape.true_rank > 1 and not _is_laid_as_given(x)


def _is_laid_as_given(x: Instruction) -> bool:
    """Does nothing stand between it and what the program is given, or gives back, laid out in order?"""
    if x.computation is None or not x.computation.is_entry:
        return False
    root = x.computation.root
    given = (o for o in x.operands if o.opcode == "parameter")
    is_result = x is root or (root.opcode == "tuple" and root in x.users)
    return is_result or any(o.shape.is_row_major for o in given)


def _may_be_laid(x: Instruction, makers: Mapping[Instruction, Maker]) -> bool:
    return makers.get(x) in _AHEAD and _is_laid_alike(x) and name_before_renaming(x).root == x.opcode


def _connected(pending: list[Instruction], makers: Mapping[Instruction, Maker]) -> Iterable[Instruction]:
    """Those that are `pending`, and what nothing stands between.

    What is added to its transposition is read as if it were another one: no bitcast shows that.
    """
    seen = dict.fromkeys(pending)
    for x in pending:
        turned = {o.operands[0] for o in x.operands if o.opcode == "transpose"}
        for near in (*x.operands, *x.users):
            if near not in seen and near not in turned and _may_be_laid(near, makers):
                seen[near] = None
                pending.append(near)
    return seen


def _between_in_numbers(
    laid: Mapping[Instruction, None], makers: Mapping[Instruction, Maker]
) -> list[Instruction]:
    """Of the framework's operations those with numbers between two of such ones."""
    chains: dict[str, list[Instruction]] = {}
    for x in makers:
        if _is_laid_alike(x) and name_before_renaming(x).root == x.opcode:
            chains.setdefault(x.opcode, []).append(x)
    found: list[Instruction] = []
    for chain in chains.values():
        chain.sort(key=lambda x: name_before_renaming(x).number)
        waiting: list[Instruction] | None = None
        for x in chain:
            if x in laid:
                found += waiting or []
                waiting = []
            elif waiting is not None:
                if makers[x] not in _AHEAD or _is_beside_framework(x, makers):
                    waiting = None
                else:
                    waiting.append(x)
    return found


def _is_beside_framework(x: Instruction, makers: Mapping[Instruction, Maker]) -> bool:
    """Is there something beside it that bears a name of the framework's only?"""
    return any(
        makers.get(n) in _AHEAD and _is_laid_alike(n) and name_before_renaming(n).root != n.opcode
        for n in (*x.operands, *x.users)
    )
