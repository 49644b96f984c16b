"""Products of which an operand or the result is a slice that a loop reads or writes.

DynamicSliceFusionRewriterV2 (`xla/backends/gpu/transforms/dynamic_slice_fusion_rewriter_v2.cc`), the last
pass ahead of fusion, calls the product along with the slice and with what the offset is made of. What the
offset was read from loses the slice as a user when the last such call is made.
"""

from __future__ import annotations

from typing import NamedTuple

from hlofuse.analysis.tuples import element_given
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import number_in_name
from hlofuse.pipelines.users.common.holes import without

_OFFSETS = {"dynamic-slice": 1, "dynamic-update-slice": 2}
"""The operand from which on they are offsets."""


class _Slicing(NamedTuple):
    opcode: str
    element: int
    """Of what the body of the loop is given: reads and writes are made in the order of those."""


_Called = list[tuple[Instruction, dict[_Slicing, Instruction]]]


def called_slices(computation: Computation) -> _Called:
    """The calls in the order in which they are made, with the slices in each."""
    found = []
    for call in computation:
        if call.opcode == "fusion" and call.fusion_kind == "kCustom":
            slices = {
                _Slicing(x.opcode, element): x
                for x in call.fused_computation
                if x.opcode in _OFFSETS
                and (element := element_given(_outside(call, x.operands[0]))) is not None
            }
            if slices:
                found.append((call, slices))
    return sorted(found, key=lambda one: number_in_name(one[0]))


def without_called_slices(
    producer: Instruction, users: list[Instruction], called: _Called
) -> list[Instruction]:
    """The users of what offsets are: the last took the place of each slice that is called now.

    Whoever reads what a call writes reads it back from there since: that slice came with the call.
    """
    if not called:
        return users
    last: dict[_Slicing, tuple[Instruction, Instruction]] = {}
    for call, slices in called:
        for slicing, x in slices.items():
            if any(_is_same(call, o, producer) for o in x.operands[_OFFSETS[x.opcode] :]):
                last[slicing] = call, x
    for user in users:
        there = _slicing(user)
        if there is not None:
            last.pop(there, None)  # something else reads it too
    if not last:
        return users
    calls = [call for call, _ in called]
    back = {u: by for u in users if (by := _written_by(u)) is not None and by in calls}
    listed = [u for u in users if u not in calls and u not in back]
    for slicing, (_, x) in sorted(last.items(), key=lambda one: one[0]):
        _insert(listed, slicing, x)
    for call in calls:
        listed += [call] * (call in users)
        listed += [u for u in users if back.get(u) is call]
        gone = [x for by, x in last.values() if by is call]
        # What the call writes is replaced, and the call and what it read go along with that.
        listed = without(listed, sorted(gone, key=lambda x: x.opcode == "dynamic-slice"))
    return listed


def with_calls_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of `producer` with the calls behind that took a slice along which is still a user."""
    slices = [u for u in users if u.opcode == "slice"]
    calls = [
        u
        for u in users
        if u.opcode == "fusion"
        and u.fusion_kind == "kCustom"
        and any(_is_same_slice(u, x, s) for x in u.fused_computation for s in slices)
    ]
    return [*(u for u in users if u not in calls), *sorted(calls, key=number_in_name)]


def _is_same_slice(call: Instruction, inside: Instruction, outside: Instruction) -> bool:
    ranges = outside.attributes.get("slice")
    return _is_same(call, inside, outside) and inside.attributes.get("slice") == ranges


def _insert(users: list[Instruction], slicing: _Slicing, x: Instruction) -> None:
    """Reads come ahead of writes."""
    ahead = [u for u in users if u.opcode == slicing.opcode and (_slicing(u) or slicing) <= slicing]
    if ahead:
        users.insert(users.index(ahead[-1]) + 1, x)
        return
    later = [u for u in users if u.opcode in (slicing.opcode, "dynamic-update-slice")]
    users.insert(users.index(later[0]) if later else len(users), x)


def _written_by(x: Instruction) -> Instruction | None:
    """The call, if any, that wrote what `x` is a slice of."""
    if x.opcode != "dynamic-slice":
        return None
    written = x.operands[0]
    return written.operands[0] if written.opcode == "get-tuple-element" else written


def _slicing(x: Instruction) -> _Slicing | None:
    element = element_given(x.operands[0]) if x.opcode in _OFFSETS else None
    return None if element is None else _Slicing(x.opcode, element)


def _outside(call: Instruction, x: Instruction) -> Instruction:
    """What a call is given for its parameter `x`."""
    return call.operands[x.parameter_number] if x.opcode == "parameter" else x


def _is_same(call: Instruction, inside: Instruction, outside: Instruction) -> bool:
    """Is `inside` what `call` computes anew of `outside`?"""
    if inside.opcode == "parameter":
        return _outside(call, inside) is outside
    if (inside.opcode, inside.shape) != (outside.opcode, outside.shape):
        return False
    if inside.opcode == "constant":
        return inside.literal == outside.literal
    pairs = zip(inside.operands, outside.operands, strict=True)
    return inside.opcode != "get-tuple-element" and all(_is_same(call, a, b) for a, b in pairs)
