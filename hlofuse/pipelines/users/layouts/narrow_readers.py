"""What reads in single precision now what it read as a narrow value when layouts were normalized.

FloatNormalization (`xla/hlo/transforms/simplifiers/float_normalization.cc`) came later. It put a convert back
behind such a value, and one to f32 in front of each such reader; SimplifyFPConversions
(`simplify_fp_conversions.cc`) took the pairs away in the order of the walk, and the last user of the convert
back took the place of each.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.shadow_graph import ShadowGraph
from hlofuse.pipelines.users.common.visits import Uses
from hlofuse.pipelines.users.floats.inserted_converts import is_narrow, is_narrowing


def is_convert_back(x: Instruction, wide: frozenset[Instruction]) -> bool:
    """Is it one of a value that others in `wide` read without it?

    That of the program they had read, of a value that was in single precision then.
    """
    if x.opcode != "convert" or not is_narrow(x) or len(x.users) < 2:
        return False
    (source,) = x.operands
    if is_narrow(source) or (source in wide) != is_narrowing(x):
        return False
    return not wide.isdisjoint(source.users)


def read_through(
    graph: ShadowGraph, back: Instruction, wide: frozenset[Instruction], order: Mapping[Instruction, int]
) -> None:
    """Have those in `wide` read the convert `back`, too, each where it stands in the post-`order`."""
    (source,) = back.operands
    value, narrow = graph.of[source], graph.of[back]
    readers = [graph.of[u] for u in (*back.users, *(u for u in source.users if u in wide))]
    for reader in [u for u in value.users if u in readers]:
        value.remove_user(reader)
        reader.operands = [narrow if o is value else o for o in reader.operands]
    narrow.users = sorted(readers, key=lambda u: order[u.source] if u.source else -1)


def read_past(graph: ShadowGraph, back: Instruction, wide: frozenset[Instruction], uses: Uses) -> None:
    """Have them read what it converts again, one by one as `uses` tell."""
    (source,) = back.operands
    nodes = {x.source: x for x in graph.nodes if not x.dead and x.source in {source, back}}
    if len(nodes) < 2:
        return
    value, narrow = nodes[source], nodes[back]
    there = {u.source: u for u in narrow.users if u.source is not None}
    for user in sorted((u for u in source.users if u in wide and u in there), key=lambda u: uses[source, u]):
        narrow.give_user(there[user], value)
