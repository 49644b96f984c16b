"""Places at which one window is scattered, which became a slice that is updated and put back.

ScatterExpander (`xla/service/scatter_expander.cc`) makes a loop over the windows, which goes where there is
one. The number of the place, which scatter had read in an array of one element, is taken out of it again
(`HandleReshape`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame


def with_last_in_place_of_element(
    place: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a number; `order` is the post-order.

    What reads it for scatters had read that element; it was appended, and the last took the element's place.
    """
    if place.shape.rank or place.opcode == "bitcast" or not any(_is_window_put_back(u, place) for u in users):
        return users
    made = [u for u in users if _is_window_put_back(u, place) or _is_window(u, place)]
    *others, last = sorted(made, key=order.__getitem__)
    if _was_found_again(place, made, users):
        behind = [u for u in users if u.opcode == "bitcast"]
        in_front = [u for u in users if u not in made and u not in behind]
        return [*in_front, *behind, last, *others]
    at = users.index(made[0])
    return [*users[:at], last, *(u for u in users[at:] if u not in made), *others]


def _was_found_again(place: Instruction, made: list[Instruction], users: list[Instruction]) -> bool:
    """Was `place` found for something else, and again for the scatters, which CSE gave the first then?"""
    here = stack_frame(place)
    if any(here == stack_frame(u) for u in made):
        return False
    return any(here == stack_frame(u) for u in users if u.opcode != "bitcast")


def _is_window(x: Instruction, place: Instruction) -> bool:
    return x.opcode == "dynamic-slice" and not x.op_name and place in x.operands[1:]


def _is_window_put_back(x: Instruction, place: Instruction) -> bool:
    if x.opcode != "dynamic-update-slice" or place not in x.operands[2:]:
        return False
    return operation(x).startswith("scatter")
