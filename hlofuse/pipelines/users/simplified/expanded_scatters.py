"""Places at which one window is scattered, which became a slice that is updated and put back.

ScatterExpander (`xla/service/scatter_expander.cc`) makes a loop over the windows, which goes where there is
one. The number of the place, which scatter had read in an array of one element, is taken out of it again
(`HandleReshape`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`).
"""

from __future__ import annotations

from collections.abc import Hashable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import operation, stack_frame
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.holes import last_at, last_in_front, without
from hlofuse.pipelines.users.floats.inserted_converts import readers_past_inserted


def with_last_in_place_of_element(
    place: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of such a number; `order` is the post-order.

    What reads it for scatters had read that element; it was appended, and the last took the element's place.
    """
    bounds = sorted((u for u in users if _is_bound(u, place)), key=order.__getitem__)
    if place.opcode == "bitcast":
        return _as_loops_left_them(users, bounds) if bounds else users
    if place.shape.rank or not any(_is_window_put_back(u, place) for u in users):
        return users
    made = [u for u in users if _is_window_put_back(u, place) or _is_window(u, place)]
    *others, last = sorted(made, key=order.__getitem__)
    own = [u for u in users if u.opcode == "bitcast" or stack_frame(u) == stack_frame(last)]
    is_told = any(u not in own and u not in made for u in users)
    if is_told and 0 != stack_frame(place) == stack_frame(last):  # others had a place of their own until CSE
        own = [*bounds, *(u for u in own if u not in bounds)]
        at = own.index(next(u for u in own if u in made))
        users = [*own[:at], *(u for u in users if u not in own), *own[at:]]
    if bounds:
        return _with_bounds_of_number(users, bounds, [*others, last])
    if _was_found_again(place, made, users):
        behind = [u for u in users if u.opcode == "bitcast"]
        in_front = [u for u in users if u not in made and u not in behind]
        return [*in_front, *behind, last, *others]
    at = min(map(users.index, made))
    return [*users[:at], last, *(u for u in users[at:] if u not in made), *others]


def with_kept_place_in_front(place: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a number, with what a loop keeps of it for its derivative in front.

    A gather at the place had it reshaped first, and kept what it read: that became a reshape of the number
    itself, and took the place of the first.
    """
    if place.shape.rank or not any(_is_window_put_back(u, place) for u in users):
        return users
    kept = [u for u in users if u.opcode == "bitcast" and u.users and all(_is_kept(u, v) for v in u.users)]
    return [*kept, *(u for u in users if u not in kept)]


def with_bounds_around_reshapes(
    place: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of a place kept so, in the derivative's loop, which scatters there.

    ReshapeMover put both comparisons with the bounds of the array behind those reshapes of it that scatter
    brought along; the last took the place of the reshape that they had read. The number itself is read since
    what was made for the first of the scatter's reshapes had gone.
    """
    if not place.shape.rank or place.shape.true_rank or place.opcode == "bitcast":
        return users
    bounds = [u for u in users if u.opcode == "compare" and u.op_name and u.operands[0] is place]
    reshapes = [u for u in users if u.opcode == "bitcast"]
    numbers = [u for u in reshapes if not u.shape.rank]
    if len(bounds) != 2 or len(bounds) + len(reshapes) != len(users):
        return users
    if not any(_is_window_put_back(v, u) for u in numbers for v in u.users):
        return users
    first, last = sorted(bounds, key=order.__getitem__)
    return [last, *numbers, *(u for u in reshapes if u not in numbers), first]


def with_lower_bound_of_place_gone(place: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a `place` that runs on from zero: ScatterExpander compared it with zero first.

    AlgebraicSimplifier (`HandleCompare`, `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`) knows that
    it is not negative, and the last user took the place of that comparison.
    """
    if place.opcode != "iota" or place.shape.rank != 1:
        return users
    bounds = [k for k, u in enumerate(users) if _is_bound(u, place)]
    if len(bounds) != 1 or any(u.opcode != "slice" for k, u in enumerate(users) if k not in bounds):
        return users
    return last_at(users, bounds[0])


def with_windows_behind(
    array: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of an `array` that is scattered into, with the windows taken out of it behind.

    The loop's operands had the place of scatter. Its body was appended, a window first and then what puts
    that back, which took the place as it was the last. A window at a known place was made anew behind.
    """
    if not any(_is_put_back_in(u, array) for u in users):
        return users
    windows = [u for u in users if _is_taken_to_update(u, array)]
    return [*(u for u in users if u not in windows), *sorted(windows, key=order.__getitem__)]


def _with_bounds_of_number(
    users: list[Instruction], bounds: list[Instruction], made: list[Instruction]
) -> list[Instruction]:
    """The users of a number that is compared with its bounds: ReshapeMover put these in front of a reshape.

    The last of them took the reshape's place (`xla/hlo/transforms/simplifiers/reshape_mover.cc`), then the
    last of what is `made` of the scatter that of the element.
    """
    of_scatter = {*bounds, *made}
    at = min(map(users.index, of_scatter))
    others = [u for u in users if u not in of_scatter]
    behind: list[Hashable] = ["reshape", *others[at:], "element", *bounds]
    listed = without([*others[:at], *behind], ["reshape"])
    return [u for u in without([*listed, *made], ["element"]) if isinstance(u, Instruction)]


def with_last_in_place_of_loop(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The `users` of what a scatter of one update became, with the last in place of the loop's tuple.

    The loop had one turn and was put in line (`xla/service/while_loop_simplifier.cc`). A clone of the
    computation since then has them as they are read.
    """
    if not _is_put_back(producer) or producer.computation is None or ".clone" in producer.computation.name:
        return users
    return last_in_front(users)


def _as_loops_left_them(users: list[Instruction], bounds: list[Instruction]) -> list[Instruction]:
    """The users of the one place of several scatters: what was in the loop of one was appended in turn.

    The loop's operands, its place in an iteration and its results read it as well, until it was inlined
    (`xla/service/while_loop_simplifier.cc`).
    """
    if any(u not in bounds and (u.opcode != "concatenate" or u.op_name) for u in users):
        return users
    loops: dict[Hashable, list[Instruction]] = {}
    for user in users:
        loops.setdefault(stack_frame(user) if user in bounds else user, []).append(user)
    listed: list[Hashable] = [("operands", loop) for loop in loops]
    for loop, body in loops.items():
        listed = without([*listed, *body, "element", "results"], [("operands", loop), "element", "results"])
    return [u for u in listed if isinstance(u, Instruction)]


def _is_kept(x: Instruction, user: Instruction) -> bool:
    return user.opcode == "dynamic-update-slice" and x is user.operands[1] and not _is_put_back(user)


def _is_bound(x: Instruction, place: Instruction) -> bool:
    """Does it tell whether the place is within the array?"""
    if x.opcode != "compare" or x.op_name or x.operands[1] is not place or not stack_frame(x):
        return False
    return is_made_of_nothing(x.operands[0])


def _was_found_again(place: Instruction, made: list[Instruction], users: list[Instruction]) -> bool:
    """Was `place` found for something else, and again for the scatters, which CSE gave the first then?"""
    here = stack_frame(place)
    if any(here == stack_frame(u) for u in made):
        return False
    return any(here == stack_frame(u) for u in users if u.opcode != "bitcast")


def _is_taken_to_update(x: Instruction, array: Instruction) -> bool:
    is_window = x.opcode in {"slice", "dynamic-slice"} and not x.op_name and x.operands[0] is array
    return is_window and any(
        _is_put_back_in(v, array) for u in readers_past_inserted(x) for v in (u, *readers_past_inserted(u))
    )


def _is_put_back_in(x: Instruction, array: Instruction) -> bool:
    return _is_put_back(x) and x.operands[0] is array


def _is_window(x: Instruction, place: Instruction) -> bool:
    return x.opcode == "dynamic-slice" and not x.op_name and place in x.operands[1:]


def _is_window_put_back(x: Instruction, place: Instruction) -> bool:
    return _is_put_back(x) and place in x.operands[2:]


def _is_put_back(x: Instruction) -> bool:
    return x.opcode == "dynamic-update-slice" and operation(x).startswith("scatter")
