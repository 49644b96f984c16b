"""Slices that stand for what were products of their own, before DotMerger made one of several."""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, operation
from hlofuse.pipelines.users.common.fusions import is_gemm
from hlofuse.pipelines.users.common.holes import last_in_front, without
from hlofuse.pipelines.users.products.reshaped_products import split_of
from hlofuse.pipelines.users.products.taken_prologues import leads_to_gemm_with_prologue


def with_last_behind_merged_in_front(slice_: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a slice: the last took the place of a reshape.

    DotDecomposer had made the product a matrix with a reshape behind it. Where the slice has the reshape's
    shape already that one goes, after all of its users were appended to the slice's
    (`SimplifyConsumerChain`, `xla/hlo/transforms/simplifiers/dot_merger.cc`).
    """
    if not is_behind_merged(slice_):
        return users
    late = [u for u in users if leads_to_gemm_with_prologue(u, slice_)]
    users = [u for u in users if u not in late]
    return [*last_in_front(users), *late]


def with_last_in_place_of_merged(
    producer: Instruction, users: list[Instruction], order: dict[Instruction, int]
) -> list[Instruction]:
    """The users of what products read that DotMerger (`dot_merger.cc`) made one.

    The merged one is the last user when they go, in the order of their ids, which is that of its slices if
    they are equally large. Each stood where in post-order, `order`, its slice is, unless a user behind it may
    be older than what reads the slice. A bitcast is made later, and a fusion may put operands together.
    """
    for merged in users if producer.opcode != "bitcast" else ():
        parts = parts_of_merged(merged)
        if len({x.shape for x in parts}) != 1 or len(parts) < 2:
            continue
        others = [u for u in users if u is not merged]
        listed = sorted([*others, *parts], key=order.__getitem__)
        if [u for u in listed if u not in parts] == others and not _may_be_older(listed, parts):
            return without([*listed, merged], parts)
    return users


def _may_be_older(users: list[Instruction], parts: list[Instruction]) -> bool:
    """May one of the `users` behind one of the `parts` be older than what reads that?"""
    for part in parts:
        behind = [u.id for u in users[users.index(part) :] if u not in parts]
        read = [u.id for u in part.users if is_of_program(u)]
        if not read or any(u > age for u in read for age in behind):
            return True
    return False


def parts_of_merged(merged: Instruction) -> list[Instruction]:
    """The slices for what was `merged`, from the first part on; none if it is no such product."""
    if merged.opcode != "custom-call":
        return []
    results = [merged]
    for x in results:
        results += [u for u in x.users if u.opcode in {"bitcast", "convert", "get-tuple-element"}]
    read = {u for x in results for u in x.users} - set(results)
    if not all(map(_is_part, read)):
        return []
    return sorted(read, key=starts_of_part)


def is_behind_merged(x: Instruction) -> bool:
    """Is it such a slice?"""
    return _was_product(x) and x.operands[0].opcode == "bitcast"


def in_order_of_merged_products(product: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a merged `product` by age, if they stand for what was merged.

    Of one in another layout that was made narrow since, the convert was made anew, row-major, and so were the
    slices. FloatNormalization's stood there when the slices were, so that the bitcasts back tell. That of
    SplitkRewriter, with the product's name, came later: each slice read the bitcast back by one of its own,
    and the last took its place. Gemms that took a slice along came later.
    """
    parts = [u for u in users if not is_gemm(u)]
    if not all(map(_is_part, parts)):
        return users
    aged = [*sorted(parts, key=lambda u: u.id), *filter(is_gemm, users)]
    if product.opcode != "convert" or product.operands[0].opcode != "bitcast":
        return aged
    return last_in_front(aged) if product.op_name else users


def operands_before_merger(
    computation: Computation, in_gemms: dict[Instruction, list[Instruction]]
) -> dict[Instruction, list[Instruction]]:
    """What each product that is part of a merged one read, by the slice that stands for it.

    DotMerger concatenates those of their operands that are not the same, in the order of its slices
    (`CreateMergedConcatOperands`, `xla/hlo/transforms/simplifiers/dot_merger.cc`). `in_gemms` tells what
    gemms read before they took copies along.
    """
    parts: dict[Instruction, list[Instruction]] = {}
    for x in computation:
        if x.opcode == "slice" and _is_part(x):
            parts.setdefault(x.operands[0], []).append(x)
    read = dict[Instruction, list[Instruction]]()
    for merged, slices in parts.items():
        call = _computed_by(merged)
        listed = sorted(slices, key=starts_of_part)
        for k, x in enumerate(listed):
            operands = in_gemms.get(call) or call.operands
            of_part = [_operand_of_part(o, k, len(listed)) for o in operands]
            if of_part != list(operands):
                read[x] = of_part
    return read


def operands_of_part(part: Instruction) -> list[Instruction]:
    """What the product read that such a slice stands for; none if it is no slice of one."""
    if not _is_part(part):
        return []
    start = max(starts_of_part(part))
    made = _computed_by(part.operands[0])
    return [_operand_from(o, start) for o in (split_of(made) or made).operands[:2]]


def _operand_from(operand: Instruction, start: int) -> Instruction:
    """That of those concatenated which begins at `start`, or the `operand` if all had it."""
    merged = _behind_layout(operand)
    if merged.opcode != "concatenate":
        return operand
    (dimension,) = merged.attributes["dimensions"]
    for x in merged.operands:
        if start <= 0:
            return x
        start -= x.shape.dimensions[dimension]
    return operand


def _operand_of_part(operand: Instruction, k: int, count: int) -> Instruction:
    """The one for part `k` of the `count` that were concatenated, or the `operand` if it is that of all."""
    x = _behind_layout(operand)
    return x.operands[k] if x.opcode == "concatenate" and len(x.operands) == count else operand


def _behind_layout(operand: Instruction) -> Instruction:
    """What the `operand` of a merged product was before it got another layout."""
    while operand.opcode in {"bitcast", "transpose"} and len(operand.users) == 1:
        (operand,) = operand.operands
    return operand


def starts_of_part(part: Instruction) -> list[int]:
    """Where the slice for a part begins, by dimension."""
    return [dimension.start for dimension in part.attributes["slice"]]


def _is_part(x: Instruction) -> bool:
    """Was it cut of a merged product? What computes it may have the name of a transpose of it."""
    if x.opcode != "slice" or is_of_program(x):
        return False  # or it is a slice of the program that was made anew
    name = operation(x)
    return name in {"dot_general", "ragged_dot_general"} or (
        name == "transpose" and _is_of_product(x.operands[0])
    )


def _is_of_product(x: Instruction) -> bool:
    x = _computed_by(x)
    return x.opcode == "custom-call" or is_gemm(x)


def _computed_by(x: Instruction) -> Instruction:
    while x.opcode in {"bitcast", "convert", "get-tuple-element"}:
        (x,) = x.operands
    return x


def _was_product(x: Instruction) -> bool:
    return x.opcode == "slice" and not is_of_program(x) and operation(x) == "dot_general"
