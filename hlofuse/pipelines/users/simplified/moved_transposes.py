"""Values that the program transposed: products took the transposes in, operations went in front of them."""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.names import stack_frame
from hlofuse.pipelines.users.common.constants import is_made_of_nothing
from hlofuse.pipelines.users.common.extents import extent_of, extent_of_frame
from hlofuse.pipelines.users.common.holes import last_at, last_in_front
from hlofuse.pipelines.users.duplicates.merged_reshapes import GonePlaces
from hlofuse.pipelines.users.products.dot_operands import is_dot_of_program


def with_last_in_place_of_transposes(value: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a value with the last in front.

    ReshapeMover (`xla/hlo/transforms/simplifiers/reshape_mover.cc`) has each operation read a transpose that
    undoes that of the program. Either way round they move nothing, so CSE makes them one; where that goes its
    users are appended, and the last takes its place. Layout assignment copies the value for each, and that is
    a transpose with the name of the value. Where the program transposed, the tables of places tell, in which
    there are places of operations that are gone.
    """
    if len(users) < 2 or any(u.opcode != "transpose" or u.op_name != value.op_name for u in users):
        return users
    readers = [v for u in users for v in u.users]
    if not all(map(_reads_nothing_else, readers)) or value.computation is None:
        return users
    module = value.computation.module
    places = [place for v in readers if (place := extent_of(v)) is not None]
    if module is None or not places:
        return users
    gone = [place for k in _frames_of_none(module) if (place := extent_of_frame(module, k)) is not None]
    if any(other.goes_around(place) for other in gone for place in places):
        return users  # transposed behind the operation
    return last_in_front(users) if any(p.goes_around(other) for other in gone for p in places) else users


def with_last_in_place_of_folded(users: list[Instruction], gone: GonePlaces) -> list[Instruction]:
    """The users of a matrix of which one is its product with its own transpose, `x @ x.T`.

    The transpose is written within the product and stood in front of it. TransposeFolding
    (`xla/service/transpose_folding.cc`) makes the product anew, in its place, and the last
    user takes that of the transpose.
    """
    for place, user in enumerate(users):
        product = user.users[0] if user.opcode == "pad" and len(user.users) == 1 else user
        if len(product.operands) < 2 or len(set(product.operands)) > 1 or not is_dot_of_program(product):
            continue
        here = extent_of(product)
        if here is not None and any(here.encloses(it) for it in gone.get(here.context, ())):
            return last_at(users, place)
    return users


def _reads_nothing_else(x: Instruction) -> bool:
    """Does it compute element by element, of one value and constants?"""
    if x.opcode not in ELEMENTWISE_OPCODES:
        return False
    return all(o.opcode == "transpose" or is_made_of_nothing(o) for o in x.operands)


def _frames_of_none(module: Module) -> list[int]:
    """Frames of which nothing is left, nor anything that was called there."""
    tables = module.stack_frames
    used: set[int] = set()
    for computation in module.computations:
        for x in computation:
            for frame in tables.with_callers(stack_frame(x)):
                if frame in used:
                    break
                used.add(frame)
    return [frame for frame in tables.frames if frame not in used]
