"""Going through a computation and replacing instructions (`xla/hlo/ir/dfs_hlo_visitor_with_default.h`)."""

from __future__ import annotations

from collections.abc import Callable

from hlofuse.analysis.side_effects import has_side_effect
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.replacing import replace_instruction, set_attribute


def visit(computation: Computation, handle: Callable[[Instruction], None]) -> None:
    """Hand each instruction to `handle`, operands first (`HloComputation::Accept`).

    Operands are looked at when an instruction is first met, so that what `handle` adds is visited only if
    something met later uses it.
    """
    visited: set[Instruction] = set()
    visiting: set[Instruction] = set()

    def walk(root: Instruction) -> None:
        stack = [root]
        while stack:
            current = stack[-1]
            if current in visited:
                stack.pop()
            elif current in visiting:
                stack.pop()
                visited.add(current)
                if current.computation is not None:
                    handle(current)
            else:
                visiting.add(current)
                below = [*current.operands, *current.control_predecessors]
                stack += reversed([o for o in below if o not in visited])

    for root in [i for i in computation if not i.users and not i.is_root and not i.control_successors]:
        walk(root)
    walk(computation.root)


class Rewriting:
    """The replacements made in one computation (`DfsHloRewriteVisitor`)."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.changed = False

    def replace(self, old: Instruction, new: Instruction, *, preserve_sharding: bool = False) -> bool:
        """`new` takes over from `old` (`ReplaceInstruction`)."""
        said = old.attributes.raw("frontend_attributes")
        if said is not None and new.attributes.raw("frontend_attributes") is None:
            set_attribute(new, "frontend_attributes", said)
        done = replace_instruction(
            old,
            new,
            has_side_effect,
            relay_control_dependencies=True,
            preserve_sharding=preserve_sharding,
        )
        self.changed |= done
        return done
