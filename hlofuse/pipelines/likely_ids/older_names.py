"""What an older front end made, which named after opcodes and numbered through the whole module.

XlaBuilder calls an instruction `multiply.23`, 23 being its id in the module: that of a computation comes
right before those of its instructions, of which the root's is the last. Passes, and clones, take the least
numbers of the opcode that are free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import inf

from hlofuse.analysis.constants import is_constant
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.names import is_told_of_program, name_before_renaming

_MADE_AGAIN = (Maker.REDUCTIONS, Maker.SIMPLIFIER_LAST)
_LATE = (Maker.FUSIONS, Maker.REDUCTIONS, Maker.FLOAT_NORMALIZATION, Maker.SIMPLIFIER_LAST, Maker.ANY)
_NEAR = 64
"""How far apart what is read and its reader may be where numbers of passes are as high."""


def is_named_after_opcodes(module: Module) -> bool:
    """Is nothing named after the framework's operation, unless it is called as the opcode is?"""
    told = False
    for computation in module.computations:
        for x in computation if computation.fusion is None else ():
            if is_told_of_program(x) and name_before_renaming(x).root != x.opcode:
                return False
            told = told or (x.opcode != "parameter" and "/" in (x.op_name or ""))
    return told


def made_by_older_front_end(module: Module) -> frozenset[Instruction]:
    """The instructions outside of fusions that still bear the older front end's name.

    Their numbers lie in the window of their computation, and rise with the data.
    """
    windows: dict[Computation, range] = {}
    highest: dict[str, int] = defaultdict(int)
    """The greatest number of each root that a pass gave for sure."""
    for computation in module.computations:
        if computation.fusion is None:
            window = _window(computation)
            if window:
                windows[computation] = window
            for x in computation:
                root, number = name_before_renaming(x)
                if root == x.opcode and number not in window:
                    highest[root] = max(highest[root], number)
    found: set[Instruction] = set()
    taken: set[int] = set()
    """By what is called, which was written in between."""
    for computation, window in sorted(windows.items(), key=lambda item: -item[1].start):
        numbers = {
            x: number
            for x in computation
            for root, number in [name_before_renaming(x)]
            if root == x.opcode and number in window and number not in taken and _may_be_written(x)
        }
        rising = _rising(computation, numbers, highest)
        # Where passes made all, numbers of several roots are the same.
        if 10 * (len(rising) - len({numbers[x] for x in rising})) <= len(rising):
            found |= rising
        taken.update(window)
    return frozenset(found)


def _rising(
    computation: Computation, numbers: dict[Instruction, int], highest: dict[str, int]
) -> set[Instruction]:
    """Of those with such `numbers` the ones that passes did not give, or that are near others by the data."""
    order = [*computation]
    sure = {x for x, number in numbers.items() if number > highest[x.opcode]}
    below: dict[Instruction, int] = {}
    for x in order:
        below[x] = max((below[o] for o in x.operands), default=0)
        if x.opcode == "parameter":
            below[x] = name_before_renaming(x).number
        elif x in numbers:
            if numbers[x] <= below[x]:
                sure.discard(x)
            elif x in sure or numbers[x] - below[x] <= _NEAR:
                sure.add(x)
                below[x] = numbers[x]
    above: dict[Instruction, float] = {}
    for x in reversed(order):
        above[x] = min((above[u] for u in x.users if u in above), default=inf)
        if x in numbers:
            if numbers[x] >= above[x]:
                sure.discard(x)
            elif x in sure or above[x] - numbers[x] <= _NEAR:
                sure.add(x)
                above[x] = numbers[x]
    return sure


def with_older_makers(
    computation: Computation, makers: Mapping[Instruction, Maker], named: frozenset[Instruction]
) -> dict[Instruction, Maker]:
    """The makers, where names tell no operation of the program from what passes made of it.

    What is `named` by the front end is older than all else, transpositions excepted: LayoutNormalization
    makes them anew under their names. Behind it calls were inlined. What is in a clone is told by turns.
    """
    found = dict(makers)
    if is_clone(computation):
        found.update((x, Maker.FRONT_END) for x in found if found[x] not in _LATE)
        return found
    kept = [x for x in named if x in found and found[x] not in _MADE_AGAIN and x.opcode != "transpose"]
    found.update(dict.fromkeys(kept, Maker.FRONT_END))
    rest = [x for x in computation if x in found and x not in named and found[x] not in _LATE]
    found.update(dict.fromkeys(_first_turns(rest), Maker.INLINER))
    return found


def _first_turns(members: list[Instruction]) -> list[Instruction]:
    """Of those of each root, given in the order of the text, what was made before a pass began at the top.

    What is cloned together is numbered in the order of the text.
    """
    chains: dict[str, list[tuple[int, int, Instruction]]] = {}
    for k, x in enumerate(members):
        if x.op_name or is_constant(x):
            root, number = name_before_renaming(x)
            chains.setdefault(root, []).append((number, k, x))
    return [x for chain in chains.values() for x in _first_turn(sorted(chain))]


def _first_turn(chain: list[tuple[int, int, Instruction]]) -> list[Instruction]:
    """Those up to where two in a row are in front of two others."""
    highest = second = -1
    back = 0
    for k, (_, place, _) in enumerate(chain):
        back = back + 1 if place < second else 0
        if back == 2 or (back and k == len(chain) - 1):
            return [x for *_, x in chain[: k + 1 - back]]
        if place > highest:
            highest, second = place, highest
        elif place > second:
            second = place
    return [x for *_, x in chain]


def _may_be_written(x: Instruction) -> bool:
    """May a front end have made it? It gives all a name but constants, and spares bitcasts."""
    return is_constant(x) or (bool(x.op_name) and x.opcode != "bitcast")


def is_clone(computation: Computation) -> bool:
    return ".clone" in computation.name or ".sunk" in computation.name


def _window(computation: Computation) -> range:
    """The numbers in a computation: behind its parameters, up to its root's, of the entry up to its own."""
    text = computation.name.rpartition(".")[2]
    if is_clone(computation) or not text.isdigit():
        return range(0)
    own = int(text)
    last = own if computation.is_entry else name_before_renaming(computation.root).number + 1
    parameters = (name_before_renaming(x).number for x in computation if x.opcode == "parameter")
    return range(max(parameters, default=0 if computation.is_entry else own) + 1, last)
