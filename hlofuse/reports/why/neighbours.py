"""Which pairs a question about two names is about, where a name means several things."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from hlofuse.ir.graph import Instruction
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.lineage import readers, through_views
from hlofuse.reports.common.names import Named

Pair: TypeAlias = tuple[Named, Named]


def neighbours(first: Sequence[Named], second: Sequence[Named], facts: Facts) -> list[Pair]:
    """The pairs of which one reads the other: kernels, and operations of one kernel, one pair of each.

    Where there is no such pair, operations that are neighbours at the input of fusion; else the first ones.
    """
    if len(first) == len(second) == 1 and first[0].name != second[0].name:
        return [(first[0], second[0])]
    pairs = [*_between(first, second, facts), *_inside(first, second, facts)]
    return pairs or _of_operations(first, second, facts)[:1] or [(first[0], second[0])]


def _between(first: Sequence[Named], second: Sequence[Named], facts: Facts) -> list[Pair]:
    """Pairs of different names that read one another, at the input of fusion or after it."""
    wanted: dict[str, Named] = {}
    for b in second:
        wanted.setdefault(facts.final_name(b.name), b)
        wanted.setdefault(b.name, b)
    found: dict[frozenset[str], Pair] = {}
    for a in first:
        names = {a.name, facts.final_name(a.name)}
        around = [n for name in names for n in _around(name, facts)]
        for name in around:
            if name in wanted and wanted[name].name not in names:
                b = wanted[name]
                found.setdefault(frozenset((a.name, b.name)), (a, b))
    return list(found.values())


def _inside(first: Sequence[Named], second: Sequence[Named], facts: Facts) -> list[Pair]:
    """Of every kernel that both names mean: two of its operations of which one reads the other."""
    others = {b.name: b for b in second}
    found = []
    for a in first:
        if a.name in others:
            found += _of_operations([a], [others[a.name]], facts)[:1]
    return found


def _of_operations(first: Sequence[Named], second: Sequence[Named], facts: Facts) -> list[Pair]:
    wanted = {name: b for b in second for name in b.operations or (b.name,)}
    return [
        (replace(a, name=name), replace(wanted[other], name=other))
        for a in first
        for name in a.operations or (a.name,)
        for other in dict.fromkeys(_around(name, facts))
        if other in wanted and other != name
    ]


def _around(name: str, facts: Facts) -> Iterator[str]:
    """What reads it and what it reads, views passed over, at the input of fusion and after it."""
    for module in (facts.before, facts.after):
        instruction = module.get(name)
        if instruction is not None:
            yield from (i.name for i in _related(instruction))


def _related(instruction: Instruction) -> Iterable[Instruction]:
    yield from readers(instruction)
    yield from map(through_views, instruction.operands)
