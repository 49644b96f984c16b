"""Where in a computation a pattern stands, and may be replaced."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.plugins.pattern.match import Found, Matcher
from hlofuse.plugins.pattern.values import Value

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
