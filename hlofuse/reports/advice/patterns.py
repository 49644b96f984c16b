"""What matchers of several subjects ask about instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.literals import scalar_of
from hlofuse.reports.advice.recipe import Finding
from hlofuse.reports.advice.situation import Situation

SMALL = 1 << 20
"""Bytes that a kernel moves in less time than its launch takes."""
LARGE = 1 << 16
_FREE = ("bitcast", "reshape", "copy", "transpose", "broadcast", "convert")

Find = Callable[[Situation], Iterable[Finding]]


def each(where: Callable[[Instruction], object], *opcodes: str, backend: str = "") -> Find:
    """Finds the instructions of these opcodes for which `where` is true, those inside of fusions left out."""

    def find(s: Situation) -> Iterator[Finding]:
        candidates = s.unfused(*opcodes) if backend in ("", s.backend) else ()
        return (Finding(x.name) for x in candidates if where(x))

    return find


def source(x: Instruction) -> Instruction:
    """What `x` only shows in another form or type."""
    while x.opcode in _FREE:
        x = x.operands[0]
    return x


def readers(x: Instruction) -> Iterator[Instruction]:
    """The users, bitcasts passed over."""
    for user in x.users:
        yield from readers(user) if user.opcode == "bitcast" else (user,)


def only_reader(x: Instruction) -> Instruction | None:
    """The one user, bitcasts passed over."""
    found = list(readers(x))
    return found[0] if len(found) == 1 else None


def origins(x: Instruction, limit: int = 60) -> list[Instruction]:
    """What `x` is worked out from by elementwise operations and changes of form, nearest first."""
    found, seen = [x], {x}
    for i in found:
        if i.opcode in _FREE or i.opcode in ELEMENTWISE_OPCODES or i.opcode == "concatenate":
            found += (fresh := [o for o in dict.fromkeys(i.operands) if o not in seen and len(seen) < limit])
            seen.update(fresh)
    return found


def has(instructions: Iterable[Instruction], *opcodes: str) -> bool:
    return any(i.opcode in opcodes for i in instructions)


def is_constant(x: Instruction, value: int | None = None) -> bool:
    """True for a scalar constant, broadcast or not."""
    constant = source(x)
    return constant.opcode == "constant" and (value is None or scalar_of(constant) == value)


def sum_of(x: Instruction | None) -> Instruction | None:
    """The sum that `x` is, or that a library call takes first."""
    inside = x.called_computations[0] if x is not None and x.opcode == "fusion" else [x]
    sums = [i for i in inside if i is not None and i.opcode == "reduce" and combines_by(i, "add")]
    is_first = len(sums) == 1 and (sums[0] is x or sums[0].operands[0].opcode == "parameter")
    return sums[0] if is_first else None


def combines_by(x: Instruction, opcode: str) -> bool:
    """True for a reduction or scatter by this operation."""
    return bool(x.called_computations) and x.called_computations[0].root.opcode == opcode


def is_product(x: Instruction) -> bool:
    """True for a matrix product, also as a fusion or a library call."""
    if x.opcode == "fusion":
        return has(x.called_computations[0], "dot")
    return x.opcode == "dot" or "gemm" in (x.attributes.raw("custom_call_target") or "")


def is_draw(x: Instruction) -> bool:
    """True where random bits become a number: the 9 lowest of 32 are shifted out."""
    return (
        x.opcode == "shift-right-logical" and is_constant(x.operands[1], 9) and has(x.operands, "xor", "or")
    )
