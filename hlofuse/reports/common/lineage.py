"""Which instruction of the input of a replay ended where (`Instruction.origin`), and views of values."""

from collections.abc import Iterable, Iterator, Sequence

from hlofuse.analysis.async_ops import is_async_end
from hlofuse.analysis.custom_calls import hands_on
from hlofuse.ir import Instruction, Module, values
from hlofuse.ir.names import Origin, names_in, own_name
from hlofuse.trace import Event
from hlofuse.trace.provenance import final_instructions

_VIEWS = values("bitcast get-tuple-element")


class Lineage:
    """Names of the input, and of fusions in between, with the kernels of the result that hold them."""

    def __init__(self, before: Module, after: Module, events: Sequence[Event]) -> None:
        self._input = {i.name: outermost(i) for i in before.instructions()}
        """By its name each instruction of the input; what is in a fusion counts as the fusion."""
        self._created: dict[str, tuple[int, str]] = {}
        """By the name of an instruction that passes made: its first event, and the origin of its result."""
        self._fused_into: dict[str, str] = {}
        """By the origin of a producer, the origin of the fusion that took it in last."""
        for number, e in enumerate(events):
            if e.event == "fuse" and (producer := own_name(e.origin(0))) is not None:
                self._fused_into[producer] = own_name(e.origin(1)) or e.fusion or ""
            is_renamed = e.event == "rewrite" and len(e.removed) == len(e.added) == 1
            for name, origin in e.created_names():
                if name not in self._input and name not in self._created:
                    first = self.first_event(e.removed[0]) if is_renamed else number
                    self._created[name] = first, own_name(origin) or name
        outer = [x for c in after.computations if c.fusion is None for x in c]
        self._final = final_instructions(outer)
        self._ended: dict[str, str] = {}  # Answers of `final`
        self._members: dict[str, dict[str, None]] = {}
        self._kernels: dict[str, dict[str, None]] = {}
        for x in outer:
            if x.is_fusion and x.called:
                names = (name for part in (*x.fused_computation, x) for name in names_in(part.origin))
                self._members[x.name] = dict.fromkeys(
                    self._input[name].name for name in names if name in self._input
                )
                for name in self._members[x.name]:
                    self._kernels.setdefault(name, {})[x.name] = None

    def origin(self, name: str) -> str:
        """The instruction of the input that yields what the instruction of this name yields."""
        found = self._created.get(name)
        return found[1] if found is not None else name

    def final(self, name: str) -> str:
        """The instruction of the result that yields this value, or its kernel; `name` without one."""
        found = self._ended.get(name)
        if found is None:
            origin = self.origin(name)
            x = self._final.get(origin)
            if x is not None and x.is_get_tuple_element and x.name != origin:
                x = x.operand if x.operand.is_fusion else x
            found = self._ended[name] = x.name if x is not None else name
        return found

    def members(self, kernel: str) -> list[str]:
        """The instructions of the input inside a kernel of the result; the name itself for any other."""
        return list(self._members.get(kernel, {kernel: None}))

    def kernels_of(self, name: str) -> list[str]:
        """The fusions of the result that hold an instruction; what it ended as if none does."""
        return list(self._kernels.get(self.origin(name), ())) or [self.final(name)]

    def last_kernel(self, name: str) -> str:
        """The kernel of the result that took in an instruction last, by itself or inside another one."""
        origin = self.origin(name)
        seen = set()
        while origin not in self._final and origin in self._fused_into and origin not in seen:
            seen.add(origin)
            origin = self._fused_into[origin]
        return self.final(origin)

    def created_names(self) -> Iterable[str]:
        """The names of all instructions that passes made."""
        return self._created.keys()

    def first_event(self, name: str) -> int:
        """The first event after which this, or the one that it alone replaced, exists; 0 for the input's."""
        return self._created[name][0] if name in self._created else 0

    def is_same(self, name: str, other: str | None, origin: Origin) -> bool:
        """True if `other`, of this origin, has this name or yields the same value."""
        return name == other or (other is not None and stands_for(origin, self.origin(name)))


def stands_for(origin: Origin, name: str) -> bool:
    """True if an instruction of this origin yields what the input's instruction `name` yields."""
    return origin == name if isinstance(origin, str) else name in names_in(origin)


def outermost(instruction: Instruction) -> Instruction:
    """The fusion that holds an instruction, and is held by none; itself outside fusions."""
    while (fusion := instruction.fusion_around) is not None:
        instruction = fusion
    return instruction


def is_view(instruction: Instruction) -> bool:
    """It computes nothing and moves nothing: a bitcast, an annotation, the done of an operation."""
    opcode = instruction.opcode
    return opcode in _VIEWS or is_async_end(opcode) or (opcode == "custom-call" and hands_on(instruction))


def through_views(instruction: Instruction) -> Instruction:
    """The instruction that computes the value of a view."""
    while is_view(instruction) and instruction.operands:
        instruction = instruction.operand
    return instruction


def readers(instruction: Instruction) -> Iterator[Instruction]:
    """The readers of its value, directly or through views; each once, in the order of users."""
    stack = [instruction]
    seen = {instruction}
    while stack:
        for user in stack.pop().users:
            if user not in seen:
                seen.add(user)
                if is_view(user):
                    stack.append(user)
                else:
                    yield user


def view_read(producer: Instruction, consumer: Instruction) -> Instruction | None:
    """The user of `producer` through which `consumer` reads it: itself, or a view; None if it does not."""
    if producer in consumer.operands:
        return consumer
    if not any(map(is_view, producer.users)):
        return None
    for operand in consumer.operands:
        user = consumer
        while operand is not producer and is_view(operand) and operand.operands:
            user, operand = operand, operand.operand
        if operand is producer:
            return user
    return None
