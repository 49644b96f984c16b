"""Converts of the program that were still there, or not as yet, when LayoutNormalization came.

Float normalization put others in and took them away; here they stand for what was read at that time.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import Node, ShadowGraph
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, is_narrowing, is_widening


def merged_converts(
    order: Iterable[Instruction],
    anew: frozenset[Instruction],
    other: frozenset[Instruction],
    wide: frozenset[Instruction],
) -> list[Instruction]:
    """Converts of the program which several read that were made anew, and what was `wide` since CSE.

    One with its name is told apart from those that were put in only by others that read the narrow value.
    """
    converts = [x for x in order if x in other and not wide.isdisjoint(x.users)]
    return [
        x
        for x in converts
        if (is_widening(x) and len(anew & {*x.users} - wide) > 1) or _is_of_narrow_read_by_others(x)
    ]


def _is_of_narrow_read_by_others(x: Instruction) -> bool:
    if x.opcode != "convert" or x.shape.element_type != "f32" or not x.op_name:
        return False
    return is_narrow(x.operands[0]) and len(x.operands[0].users) > 1


def take_from_wide(graph: ShadowGraph, convert: Instruction, wide: frozenset[Instruction]) -> Node:
    """What was `wide` reads the narrow value as yet, here by a node that stands for the converts to come."""
    node = graph.of[convert]
    apart = graph.add(Node(None, node.shape, list(node.operands)))
    apart.users = [u for u in node.users if u.source in wide]
    node.users = [u for u in node.users if u.source not in wide]
    for user in apart.users:
        user.operands = [apart if o is node else o for o in user.operands]
    return apart


def is_narrowed(x: Instruction, wide: frozenset[Instruction]) -> bool:
    """Did some read what was in single precision already, and others a convert of it that is gone?"""
    if x in wide or x.opcode == "convert" or x.shape.element_type != "f32" or x.shape.rank == 0:
        return False
    read_wide = [u in wide for u in x.users]
    return any(read_wide) and not all(read_wide) and not any(u.opcode == "convert" for u in x.users)


def narrow_for_wide(graph: ShadowGraph, x: Instruction, wide: frozenset[Instruction]) -> Node:
    """The convert of the program that those read; SimplifyFPConversions took it away, later."""
    node = graph.of[x]
    later = [u for u in node.users if u.source in wide]
    place = node.users.index(later[0])
    node.users = [u for u in node.users if u not in later]
    convert = graph.add(Node(None, node.shape, [node]))
    node.users.insert(place, node.users.pop())
    convert.users = later
    for user in later:
        user.operands = [convert if o is node else o for o in user.operands]
    return convert


def widened_for_others(
    x: Instruction,
    anew: frozenset[Instruction],
    other: frozenset[Instruction],
    wide: frozenset[Instruction],
) -> list[Instruction]:
    """The users of it that read a convert of the program to f32, where that was made anew.

    Those in `wide` read the narrow value itself. Of what was made anew that nobody else reads the converts
    stand for themselves.
    """
    if x not in other or x not in wide or x.opcode == "convert" or any(map(is_narrowing, x.users)):
        return []
    those = [u for u in x.users if u not in wide]
    if len(those) < len(x.users):
        return those
    return those if x not in anew and len(those) > 1 and anew.issuperset(those) else []


def widen_for_others(graph: ShadowGraph, x: Instruction, others: list[Instruction]) -> Node:
    """That convert, which FloatNormalization took away, later."""
    node = graph.of[x]
    readers = [u for u in node.users if u.source in others]
    convert = graph.add(Node(None, node.shape, []))
    node.users[node.users.index(readers[0])] = convert
    node.users = [u for u in node.users if u not in readers]
    convert.operands, convert.users = [node], readers
    for user in readers:
        user.operands = [convert if o is node else o for o in user.operands]
    return convert
