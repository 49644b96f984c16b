"""What a rewrite works with: the computation, the options, and ways to replace an instruction."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.algebraic.options import Options
from hlofuse.passes.common.rewriting import replaced


class Context:
    """One run over one computation (`AlgebraicSimplifierVisitor`)."""

    def __init__(self, computation: Computation, options: Options) -> None:
        self.computation = computation
        self.options = options
        self.changed = False

    def replace(self, old: Instruction, new: Instruction, *, preserve_sharding: bool = False) -> bool:
        """`new` takes over from `old` (`ReplaceInstruction`)."""
        done = replaced(old, new, preserve_sharding=preserve_sharding)
        self.changed |= done
        return done

    def same_shape(self, a: Shape, b: Shape) -> bool:
        if self.options.layout_sensitive:
            return a.key == b.key
        return a.key_ignoring_layout == b.key_ignoring_layout

    def replace_if_compatible(self, old: Instruction, new: Instruction) -> bool:
        """Only for an instruction of the same shape that nothing has to run ahead of
        (`ReplaceInstructionIfCompatible`)."""
        if old.control_predecessors or not self.same_shape(old.shape, new.shape):
            return False
        return self.replace(old, new, preserve_sharding=True)


def either_way(x: Instruction) -> Iterator[tuple[Instruction, Instruction]]:
    """Both orders of two operands."""
    a, b = x.operands
    yield a, b
    yield b, a
