"""What a function computes of a value it is given, and its caller as well, as `isfinite(x)` beside
`isclose(x, y)`.

HloCSE (`xla/service/hlo_cse.cc`) keeps the caller's where its walk meets that first, and appends the readers
in the function.
"""

from __future__ import annotations

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, outermost_call


def with_readers_in_function_behind(producer: Instruction, users: list[Instruction]) -> list[Instruction]:
    """The users of such a value of the caller's, or of what it is reshaped to, those in functions behind.

    A function that reads both a value and what is computed of that alone was given the value.
    """
    computed = producer.operands[0] if producer.opcode == "bitcast" else producer
    if computed.opcode not in ELEMENTWISE_OPCODES or len(computed.operands) != 1:
        return users
    if not is_of_program(computed) or outermost_call(computed):
        return users
    given = {outermost_call(u) for u in computed.operands[0].users if u is not computed}
    called = {outermost_call(u) for u in users} - {""}
    return sorted(users, key=lambda u: outermost_call(u) != "") if called and called <= given else users
