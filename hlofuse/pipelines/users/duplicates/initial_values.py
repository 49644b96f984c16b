"""Numbers that the program writes down, and reductions begin with.

PriorityFusion fuses small constants at its end, into one user after the other (`PriorityFusion::RunImpl`,
`xla/backends/gpu/transforms/priority_fusion.cc`). Each user that is no fusion becomes one then, and is made
the last user of whatever it reads: the order of a constant's users goes on into theirs.
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction


def in_order_of_initial_values(
    constant: Instruction, order: dict[Instruction, int], passes: int
) -> list[Instruction]:
    """The users of a `constant` by age: of the program, and what a pass made anew (from id `passes`) behind.

    Between the two are the reductions of the program. Each had a number of its own to begin with; HloCSE
    (`xla/service/hlo_cse.cc`) came to these in post-order, and left the first.
    """

    def place(user: Instruction) -> tuple[int, int]:
        if user.id >= passes:
            return 2, user.id
        return (1, order[user]) if user.opcode == "reduce" else (0, user.id)

    return sorted(constant.users, key=place)
