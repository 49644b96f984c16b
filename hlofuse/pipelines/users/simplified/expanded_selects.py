"""The derivative of a maximum over windows, which goes to where that was."""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_of_derivative


def with_search_behind(users: list[Instruction]) -> list[Instruction]:
    """The users of what a maximum over windows was taken of, the search for it behind those of the program.

    SelectAndScatterExpander (`xla/service/select_and_scatter_expander.cc`) makes a reduce-window of the value
    and its indices, which comes last and takes the place of the derivative. If a call gave that value, what
    became of its list is told of the derivative as well.
    """
    searches = [u for u in users if u.opcode == "reduce-window" and u.shape.is_tuple and not u.op_name]
    if not searches:
        return users
    ahead = [u for u in users if u not in searches and not is_of_derivative(u)]
    return [*ahead, *(u for u in users if u not in ahead)]
