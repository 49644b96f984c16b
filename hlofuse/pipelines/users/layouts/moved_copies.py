"""Values that were copied to another layout before they were cut into parts, or padded."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.analysis.constants import is_broadcast_of_constant
from hlofuse.analysis.custom_calls import is_library_matmul
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.window import window_dimensions
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.ages_of_program import is_made_by_pass
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.copies import was_bitcast_copied
from hlofuse.pipelines.users.common.holes import last_in_front
from hlofuse.pipelines.users.floats.inserted_converts import is_inserted_convert, readers_past_inserted
from hlofuse.pipelines.users.layouts.other_layouts import is_given_by_library
from hlofuse.pipelines.users.products.side_inputs import is_read_as_addend

_MADE_IN_FRONT = ELEMENTWISE_OPCODES - {"convert"}
"""A convert is named so by others that make one as well."""
_MOVED_BEHIND = ELEMENTWISE_OPCODES | {"pad", "reduce-window", "slice"}
"""What MoveCopyToUsers moves copies behind."""
_PARTS = frozenset({"pad", "slice"})


def with_last_in_place_of_copy(users: list[Instruction]) -> list[Instruction]:
    """The users of such a value, its parts or what pads it, by age and the last of them in front.

    MoveCopyToUsers (`xla/backends/gpu/transforms/move_copy_to_users.cc`) makes each anew, of the value
    itself, and copies that. The copy goes when all parts have been made, and the last takes its place.
    """
    if len(users) < 2 or not all(map(_is_copied_part, users)) or not _is_of_one_copy(users):
        return users
    *others, last = sorted(users, key=lambda u: u.id)
    return [last, *others]


def with_copy_of_part_in_front(part: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of a part that was made so, or of what else was, of which the copy of it came first.

    What the copy is moved behind next (elementwise operations) reads the part as well from then on, as it is
    made. ReshapeDecomposer puts a copy behind a bitcast, too. A product takes the layout that it is given: it
    read the part itself from the start.
    """
    if any(u.id < part.id for u in users):
        return users
    copies = [u for u in users if _is_copy_of(u, part)]
    others = [u for u in users if u not in copies]
    if len(copies) != 1 or not _is_of_copied(part) or any(map(_is_for_product, others)):
        return users
    if _were_moved_in_front(others, part, copies[0]):
        return [*copies, *sorted(others, key=lambda u: u.id)]
    return [*copies, *others] if _is_read_in_front(part) and not is_of_program(part) else users


def with_older_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of what was made anew in front of its copy, those that were there before last.

    They had the copy copied back, and came to read the value when the two transposes cancelled each other.
    """
    if producer.opcode not in _MADE_IN_FRONT or is_of_program(producer):
        return users
    if not any(_is_copy_of(u, producer) for u in users):
        return users
    return sorted(users, key=lambda u: u.id < producer.id)


def with_last_part_of_product_in_front(product: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of the bitcast of a product that DotMerger merged: its parts, if they were copied."""
    if product.opcode != "bitcast" or len(users) < 2 or any(u.opcode != "slice" for u in users):
        return users
    if not any(operation(u) == "dot_general" for u in users) or not all(map(_is_read_copied, users)):
        return users
    return last_in_front(users) if _is_of_one_copy(users) else users


def _is_of_one_copy(parts: list[Instruction]) -> bool:
    """Was what `parts` are of copied once for all of them?

    What a product gives was copied for each part: DotDimensionMerger
    (`xla/hlo/transforms/simplifiers/dot_dimension_merger.cc`) put a bitcast that is younger than they are in
    between. Around Triton's products bitcasts are younger anyhow: HoistFusedBitcasts
    (`xla/backends/gpu/transforms/hoist_fused_bitcasts.cc`) makes them anew. LayoutNormalization made the
    copies transposes when MoveCopyToUsers had made all parts; where they come in turn it made the parts as
    well, and others than the last were not copied ahead of that.
    """
    first, last = min(u.id for u in parts), max(u.id for u in parts)
    (whole, *_) = parts[0].operands
    if is_given_by_library(whole, first):
        return False
    return all(last < copy.id for part in parts for copy in _copies_of(part))


def _copies_of(part: Instruction) -> Iterator[Instruction]:
    """What reads it: of a part one was moved behind in turn, what reads that."""
    for reader in readers_past_inserted(part):
        if reader.opcode in _PARTS:
            yield from _copies_of(reader)
        else:
            yield reader


def _is_of_copied(part: Instruction) -> bool:
    """Can all that it is computed of have been copied?

    LayoutAssignment gives a broadcast any layout, so that it is copied nowhere; what is transposed was copied
    to the layout of `part` already.
    """
    seen = {part}
    left = [part]
    while left:
        x = left.pop()
        if x.opcode == "transpose" or (x.opcode == "broadcast" and not is_broadcast_of_constant(x)):
            return False
        if x.opcode in _MOVED_BEHIND:
            left += [o for o in x.operands if o not in seen]
            seen.update(x.operands)
    return True


def _is_read_in_front(part: Instruction) -> bool:
    """Is it one that copies are moved behind?

    What a library gives, and what is read by copies alone, is copied for each that reads it instead; a window
    along another dimension than the last has the layout of what it reads.
    """
    if part.opcode in ELEMENTWISE_OPCODES:
        is_alone = len(part.operands) == 1 and part.operands[0].opcode != "bitcast"
        is_copied_for_each = all(u.opcode == "transpose" for u in part.users)
        if is_alone and is_given_by_library(part.operands[0], part.id):
            return False
        return is_alone and not is_copied_for_each and not is_inserted_convert(part)
    if part.opcode == "bitcast":
        # A broadcast is left where it is, and may have read it ahead of the copy.
        return was_bitcast_copied(part) and all(u.opcode != "broadcast" for u in part.users)
    if part.opcode == "reduce-window":
        window = window_dimensions(part.attributes.raw("window"))
        return bool(window) and window[-1].size > 1
    return part.opcode == "slice"


def _were_moved_in_front(users: list[Instruction], part: Instruction, copy: Instruction) -> bool:
    """Were all made between `part` and what became of its copy, in front of which they were moved?

    ReduceDecomposer (`xla/hlo/transforms/expanders/reduce_decomposer.cc`) makes reductions anew, later, and
    the bitcast through which GemmRewriter adds the part to a product stands where the sum was.
    """
    if part.opcode != "bitcast" and part.opcode not in _MADE_IN_FRONT:
        return False
    if is_of_program(part) and not is_made_by_pass(part):
        return False
    between = _MADE_IN_FRONT | {"reduce"}
    return all(
        (part.id < u.id < copy.id and u.opcode in between)
        or _is_reduced_in_front(u, part)
        or is_read_as_addend(u)
        for u in users
    )


def _is_for_product(x: Instruction) -> bool:
    """Does a product of a library read it, or what it is converted to for that?"""
    readers = x.users if x.opcode == "convert" else [x]
    return bool(readers) and all(map(is_library_matmul, readers))


def _is_reduced_in_front(x: Instruction, part: Instruction) -> bool:
    return part.id < x.id and x.opcode == "reduce" and all(_is_copy_of(u, x) for u in x.users)


def _is_copy_of(x: Instruction, copied: Instruction) -> bool:
    return x.opcode == "transpose" and x.op_name == copied.op_name


def _is_copied_part(x: Instruction) -> bool:
    if x.opcode not in _PARTS or (is_of_program(x) and not is_made_by_pass(x)):
        return False
    if operation(x) == "dot_general":
        return False  # a part of a merged product
    if x.opcode == "pad" and x.operands[0].opcode == "parameter":
        return False  # which is copied for each that reads it
    return _is_read_copied(x)


def _is_read_copied(x: Instruction) -> bool:
    """Is it read by copies, or by what its copy was moved behind in turn?"""
    readers = readers_past_inserted(x)
    return bool(readers) and all(_takes_copy(u, x) for u in readers)


def _takes_copy(reader: Instruction, x: Instruction) -> bool:
    """Is it a copy of `x`, or what that was moved behind, made anew of `x`?

    A reduction takes in the order of dimensions that the copy had. What is computed element by element goes
    by its opcode from then on, and may be read by others that were made anew than by its copy. Behind an
    inserted convert the opcode tells nothing: FloatNormalization and layout normalization name so as well.
    """
    if reader.opcode in _PARTS:
        return _is_read_copied(reader)
    if reader.opcode == "reduce":
        return is_made_by_pass(reader) and reader.id > x.id
    if reader.opcode in ELEMENTWISE_OPCODES and x in reader.operands and reader.id > x.id:
        return not is_of_program(reader) and any(_takes_copy(u, reader) for u in reader.users)
    return reader.opcode == "transpose"
