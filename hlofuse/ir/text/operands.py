"""Resolves written operands to instructions (`HloParserImpl::ParseOperands`)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from lark import Token

from hlofuse.ir.graph import Computation, Instruction, Instructions, InstructionSequence
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.shape import Shape, compatible
from .errors import Place, Rejected, suggestion
from .literals import implied_element
from .signatures import signature, split_async
from .text import bare
from .tree.nodes import CallNode, InstructionNode, OperandNode


class Scope:
    def __init__(self, name: str, implicit_parameters: bool = False) -> None:
        self.computation = Computation(name)
        self.names = dict[str, Instruction]()
        self.implicit_parameters = implicit_parameters
        self.parameters = dict[int, Instruction]()

    def close(self, root: Instruction | None, where: Place) -> None:
        """Check parameter numbers and set the root: the marked instruction or the last."""
        computation = self.computation
        computation.root = root or computation.instructions[-1]
        for number in range(len(self.parameters)):
            if number not in self.parameters:
                raise Rejected(where, f"parameter {number} of {computation.name} is missing")


class Operands(ABC):
    """Resolves operands; a subclass of the builder makes instructions."""

    @abstractmethod
    def instruction(self, node: InstructionNode, scope: Scope) -> Instruction:
        """Make and add an instruction."""

    def operands(self, call: CallNode, scope: Scope) -> Instructions:
        """The operands of a call; instructions written in place are made first."""
        out = []
        for operand in call.operands:
            if operand.call is not None:
                out.append(self.nested_operand(operand, scope))
            elif operand.name is not None:
                if not self.is_dropped(operand.name, scope):
                    out.append(self.named_operand(operand, scope))
            elif scope.implicit_parameters and operand.shape is not None:
                out.append(self.implicit(operand.shape, None, scope))
            # A shape and nothing else: XLA notes an error but reads on without the operand.
        return out

    def is_dropped(self, name: Token, scope: Scope) -> bool:
        """True for an opcode in an operand's place that names no instruction: XLA skips the operand."""
        if name.type == "NAME" or name in scope.names or scope.implicit_parameters:
            return False
        return signature(name) is not None

    def nested_operand(self, operand: OperandNode, scope: Scope) -> Instruction:
        """An instruction written as an operand, with all nested in it; iterative."""
        assert operand.call is not None
        ready = dict[int, Instruction]()
        stack = [(operand, False)]
        while stack:
            current, inner_done = stack.pop()
            call = current.call
            assert call is not None
            inner = [o for o in call.operands if o.call is not None]
            if inner and not inner_done:
                stack.append((current, True))
                stack.extend((o, False) for o in reversed(inner))
                continue
            ready[id(current)] = self._one_nested(current, scope, ready)
        return ready[id(operand)]

    def _one_nested(
        self,
        operand: OperandNode,
        scope: Scope,
        ready: dict[int, Instruction],
    ) -> Instruction:
        call = operand.call
        assert call is not None
        # Inner instructions stand for themselves under the names they were given.
        plain = [
            o
            if o.call is None
            else OperandNode(None, o.call.opcode.update(value="%" + ready[id(o)].name), [], None, o.start)
            for o in call.operands
        ]
        node = InstructionNode(
            None,
            None,
            operand.shape,
            CallNode(call.opcode, plain, call.payload, call.end),
            [],
            operand.start,
            call.end,
        )
        return self.instruction(node, scope)

    def find(self, token: Token, scope: Scope) -> Instruction:
        name = bare(token)
        named = scope.names.get(name)
        if named is None:
            hint = suggestion(name, scope.names)
            raise Rejected(token, f"{name} is not defined before this place{hint}")
        return named

    def named_operand(self, operand: OperandNode, scope: Scope) -> Instruction:
        """The instruction of that name, or its element after `#`."""
        token = operand.name
        assert token is not None
        name = bare(token)
        declared = operand.shape
        if scope.implicit_parameters and name not in scope.names:
            if declared is None:
                raise Rejected(token, f"the shape of {name} is missing: a single instruction needs it")
            current = self.implicit(declared, name, scope)
        else:
            current = self.find(token, scope)
        path = name
        for number in operand.indices:
            index = int(number)
            if not current.shape.has_index([index]):
                raise Rejected(number, f"{path} is {current.shape} and has no element {index}")
            path += f"#{index}"
            element = scope.names.get(path)
            if element is None:
                element = scope.names[path] = implied_element(scope.computation, current, index, path)
            current = element
        if declared is not None and not compatible(declared, current.shape):
            raise Rejected(
                operand.start,
                f"{path} is {current.shape.text_without_layout}, not {declared.text_without_layout}",
            )
        return current

    def implicit(self, shape: Shape, name: str | None, scope: Scope) -> Instruction:
        number = len(scope.parameters)
        parameter = Instruction(name or f"_{number}", shape, "parameter", payload=str(number))
        scope.parameters[number] = parameter
        scope.computation.append_parsed(parameter)
        scope.names[parameter.name] = parameter
        return parameter


_OWN = with_trait("async")
_MAIN_THREAD = '"main"'


def _is_async(opcode: str) -> bool:
    """True for `async-start`, `async-update`, `async-done` and their short forms such as `dot-start`."""
    return opcode in _OWN or split_async(opcode)[1] is not None


def disagreement(
    opcode: str, operands: InstructionSequence, called: Sequence[Computation], thread: str | None
) -> str | None:
    """The message for an update or done that contradicts its start; None if they agree. `thread` is the
    attribute async_execution_thread. Mirrors `HloParserImpl` (`xla/hlo/parser/hlo_parser.cc`)."""
    if not operands or opcode.endswith("-start") or not _is_async(opcode):
        return None
    start = _start_of(operands[0])
    if start is None:
        return None
    wrapped, stage = split_async(opcode)
    inner = _wrapped_opcode(start)
    if stage is not None and inner is not None and wrapped != inner:
        return f"{opcode} does not belong to {start.name}, which starts {inner}"
    began = start.raw("async_execution_thread") or _MAIN_THREAD
    if thread is not None and thread != began:
        return f"{start.name} runs in the thread {began}, not {thread}"
    if called and (start.opcode != "async-start" or called[0] not in start.called_computations):
        return f"{start.name} does not call {called[0].name}"
    return None


def _start_of(x: Instruction) -> Instruction | None:
    """The start of the async chain of `x`, followed through tuples."""
    indices = []
    while True:
        if x.is_get_tuple_element:
            indices.append(x.tuple_index)
        elif x.opcode == "tuple" and indices:
            x = x.operands[indices.pop()]
            continue
        elif not _is_async(x.opcode) or indices:
            return None
        elif x.opcode.endswith("-start"):
            return x
        if not x.operands:
            return None
        x = x.operand


def _wrapped_opcode(start: Instruction) -> str | None:
    wrapped, stage = split_async(start.opcode)
    if stage is not None:
        return wrapped
    return start.called_computations[0].root.opcode if start.called_computations else None
