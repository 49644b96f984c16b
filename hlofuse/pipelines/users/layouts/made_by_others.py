"""What bears the name of its opcode, but is likely the work of another pass than LayoutNormalization.

Without ids the name is all there is, and AlgebraicSimplifier calls what it makes after its opcode as well.
LayoutNormalization (`xla/service/layout_normalization.cc`) makes anew all that shares a layout, and does so
later: its numbers are the higher ones of each root, by which the makers were guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.maker import Maker

_COMPUTING = ELEMENTWISE_OPCODES - {"convert"}


def opcodes_of_normalization(computation: Computation, makers: Mapping[Instruction, Maker]) -> frozenset[str]:
    """Those of what layout normalization likely made in a `computation`."""
    return frozenset(x.opcode for x in computation if _is_normalized(x, makers))


def is_made_by_others(
    group: Iterable[Instruction], makers: Mapping[Instruction, Maker], opcodes: frozenset[str]
) -> bool:
    """Did others likely make all of a `group` of one layout, which computes something?

    That is told only where layout normalization made something of each of its `opcodes`: a number of its own
    is what a number is found to be too low for. What only moves, or converts, tells nothing by its name.
    """
    members = [*group]
    return (
        any(x.opcode in _COMPUTING for x in members)
        and all(x.opcode in opcodes for x in members)
        and not any(_is_normalized(x, makers) for x in members)
    )


def _is_normalized(x: Instruction, makers: Mapping[Instruction, Maker]) -> bool:
    return makers.get(x) == Maker.LAYOUT_NORMALIZATION
