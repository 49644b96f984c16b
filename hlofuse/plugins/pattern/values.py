"""Values of a graph with its fusions seen through.

XLA has put much of a program into fusions before the fusion passes begin: matrix products for Triton,
softmaxes, what a library takes. A pattern speaks of operations, wherever they are; so a value here is an
instruction together with the fusion one has entered to get there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.plugins.pattern.match import Found, Matcher

STEPS = 8
"""How many operations in a row are passed over between two of a pattern."""


class Value(NamedTuple):
    """An instruction, and the fusions it is in, outermost first."""

    instruction: Instruction
    fusions: tuple[Instruction, ...] = ()

    @property
    def outer(self) -> Instruction:
        """What stands for it in the computation itself."""
        return self.fusions[0] if self.fusions else self.instruction

    def operand(self, number: int) -> Value:
        """An operand, the fusion's own where it is a parameter of the fusion."""
        return settled(Value(self.instruction.operands[number], self.fusions))

    @property
    def operands(self) -> list[Value]:
        return [self.operand(k) for k in range(len(self.instruction.operands))]


def settled(value: Value) -> Value:
    """The value itself, not the parameter by which the inside of a fusion reads it."""
    instruction, fusions = value
    while fusions and instruction.opcode == "parameter":
        instruction, fusions = fusions[-1].operands[instruction.parameter_number], fusions[:-1]
    return Value(instruction, fusions)


def entered(value: Value) -> Value | None:
    """The result inside a fusion; None for what is no fusion, or one of several results."""
    instruction, fusions = value
    if instruction.opcode != "fusion" or instruction.is_multi_output_fusion:
        return None
    return settled(Value(instruction.fused_root, (*fusions, instruction)))


def candidates(value: Value, through: Collection[str]) -> Iterator[tuple[Value, tuple[Value, ...]]]:
    """The operations that may be meant by a value, with those passed over to get there.

    The value itself first, then the inside of a fusion, then what lies behind operations in `through`.
    """
    passed: tuple[Value, ...] = ()
    for _ in range(STEPS):
        yield value, passed
        inside = entered(value)
        if inside is not None:
            value = inside
        elif value.instruction.opcode in through and len(value.instruction.operands) == 1:
            passed = (*passed, value)
            value = value.operand(0)
        else:
            return


def origin(value: Value, through: Collection[str]) -> Value:
    """What a value is in the end, everything passed over: equal for two views of one value."""
    found = value
    for found, _ in candidates(value, through):  # noqa: B007
        pass
    return found


# Where in a computation a pattern stands, and may be replaced.


_CHEAP = frozenset({"broadcast", "bitcast", "iota", "reshape"})
_STEPS = 32  # operations of what is made anew
_MAX_MATCHES = 256  # in which one pattern may stand at one root, before it is given up


@dataclass(frozen=True, slots=True)
class Match:
    """A place where a pattern stands. Names are those of the pattern's text."""

    root: Instruction
    """What the kernel stands for in the computation."""
    operands: Mapping[str, Instruction]
    """The holes that are filled, in order of their numbers: the operands of the kernel."""
    sizes: Mapping[str, int | str]
    """Named sizes and element types."""
    instructions: Mapping[str, Instruction]
    """What each name of the pattern stands for, operations inside fusions included."""
    inside: tuple[Instruction, ...]
    """The instructions of the computation that the kernel takes in, operands first, the root last."""
    values: tuple[Value, ...]
    """Every operation that is taken in, those within fusions one by one."""

    @property
    def size(self) -> int:
        """Operations taken in."""
        return len(self.values)


def find_matches(
    matcher: Matcher, computation: Computation, where: Callable[[Match], bool] | None = None
) -> Iterator[Match]:
    """At most one match for each root, in post-order; the first of several ways that may be replaced."""
    order = computation.post_order()
    place = {x: k for k, x in enumerate(order)}
    at = matcher.search()
    for root in order:
        for found in islice(at(root), _MAX_MATCHES):
            match = _match(matcher, root, found, place)
            if match is not None and (where is None or where(match)):
                yield match
                break


def _match(
    matcher: Matcher, root: Instruction, found: Found, place: Mapping[Instruction, int]
) -> Match | None:
    """None where taking it out would take something from others."""
    values = tuple(dict.fromkeys(found.matched))
    outer = {v.outer for v in values}
    inside = {x for x in outer if x is root or not is_copied(x)}
    if any(x in inside for x in found.holes.values()):
        return None
    for x in inside:
        if has_side_effect(x) or x.control_predecessors or x.control_successors:
            return None
        if x is not root and (x.is_root or any(u not in inside for u in x.users)):
            return None
    numbers = matcher.pattern.graph.holes
    return Match(
        root,
        {name: found.holes[name] for name in numbers if name in found.holes},
        found.sizes,
        {name: value.instruction for name, value in found.names.items()},
        tuple(sorted(inside, key=place.__getitem__)),
        values,
    )


def is_copied(instruction: Instruction) -> bool:
    """What is made of constants and iotas alone is made anew in every kernel: others may use it, too."""
    pending, steps = [instruction], 0
    while pending:
        x = pending.pop()
        steps += 1
        cheap = x.opcode in ELEMENTWISE_OPCODES or x.opcode in _CHEAP
        if x.opcode == "constant":
            cheap = x.shape.is_effective_scalar
        if not cheap or steps > _STEPS:
            return False
        pending += x.operands
    return True
