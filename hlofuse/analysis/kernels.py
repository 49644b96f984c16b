"""Kernels of a module, the unit in which fusion is counted; loops that launch, and their iterations."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from msgspec import Struct

from hlofuse.ir.attributes.metadata import SourceLocation
from hlofuse.ir.graph import Computation, Computations, Instruction, Instructions, Module
from hlofuse.ir.grouping import reach
from hlofuse.ir.opcodes import values, with_trait
from hlofuse.ir.shape import INTEGER_TYPES
from .async_ops import fused_collective, is_async_end
from .custom_calls import is_annotation
from .elementwise import moves_no_data

_SAME_VALUE = values("bitcast convert copy copy-done copy-start opt-barrier reshape")
MIRRORED = {
    "LT": "GT",
    "LE": "GE",
    "GT": "LT",
    "GE": "LE",
}
"""The direction of a comparison with its sides exchanged."""
_WHOLE = -1  # in place of the number of a tuple's element: the value is no tuple
_MOST = 100  # sums, or readers, that are read; a loop that counts has a few, as has an expanded operation


@dataclass(frozen=True, slots=True)
class _Linear:
    """`offset`, or the loop's counter plus `offset`."""

    counts: bool
    offset: int


def counted_trips(loop: Instruction, *, most: bool = False) -> int | None:
    """The iterations of a loop that counts by a constant from a constant to a constant; None for any other.
    Copies, conversions, tuples, fusions and calls may stand between; XLA's analysis stops at some of them.
    `most`: the iterations after which a loop ends at the latest, where it may end for another reason."""
    called = dict(loop.called)
    if len(called) != 2:  # a text that is cut
        return None
    counter = _Counter(loop, set())
    conditions = [counter.source(called["condition"].root, _WHOLE)[0]]
    for x in conditions if most else ():  # grows while it is walked
        if x.opcode == "and" and len(conditions) < _MOST:
            conditions += (counter.source(o, _WHOLE)[0] for o in x.operands)
    found = (_trips_until(x, loop) for x in conditions if x.opcode == "compare")
    return min((trips for trips in found if trips is not None), default=None)


def _trips_until(compare: Instruction, loop: Instruction) -> int | None:
    """The iterations until the comparison of a loop's condition is false, as `counted_trips`."""
    counter = _Counter(loop, set())
    left, right = (counter.linear(x) for x in compare.operands)
    if left is None or right is None or left.counts == right.counts:
        return None
    direction = str(compare.raw("direction"))
    if right.counts:
        left, right, direction = right, left, MIRRORED.get(direction, direction)
    first = _Counter(None, counter.types).linear(loop.operand, counter.index)
    step = counter.linear(dict(loop.called)["body"].root, counter.index)
    if first is None or step is None or not step.counts or not step.offset:
        return None
    begin, end = first.offset + left.offset, right.offset
    trips = _trips(begin, end, step.offset, direction)
    if trips is None:
        return None
    total = trips * step.offset
    numbers = (first.offset, first.offset + total, begin, begin + total, end, abs(step.offset))
    return trips if all(_holds(t, numbers) for t in counter.types) else None


def _trips(begin: int, end: int, step: int, direction: str) -> int | None:
    """The steps from `begin` until the comparison with `end` is false; None if it never is."""
    if direction in ("GT", "GE"):
        begin, end, step, direction = -begin, -end, -step, MIRRORED[direction]
    if direction == "EQ":
        return int(begin == end)
    if direction == "NE":
        trips, rest = divmod(end - begin, step)
        return trips if trips >= 0 and not rest else None
    end += direction == "LE"
    if begin >= end:
        return 0
    return -((begin - end) // step) if step > 0 else None


def _holds(element_type: str, numbers: Iterable[int]) -> bool:
    """True if the type has all these numbers, so that no conversion or addition changes one."""
    if element_type not in INTEGER_TYPES:
        return False
    bits = int(element_type[1:])
    least, most = (-(1 << bits - 1), 1 << bits - 1) if element_type[0] == "s" else (0, 1 << bits)
    return all(least <= n < most for n in numbers)


class _Counter(Struct, eq=False):
    """Values in a loop, as numbers or relative to its counter; outside of any loop, as numbers."""

    _loop: Instruction | None
    types: set[str]  # Element types that values have on their path; `source` and `linear` add to them
    index: int | None = None  # Element of the loop's tuple that counts, once `linear` comes to it
    _looked_at: int = 0

    def linear(self, x: Instruction, index: int | None = _WHOLE) -> _Linear | None:
        """The value of `x`, or of this element of it; None for what is neither a number nor the counter."""
        self._looked_at += 1
        if index is None or self._looked_at > _MOST:
            return None
        x, index = self.source(x, index)
        if x.is_constant and index == _WHOLE and x.element_type in INTEGER_TYPES:
            try:
                return _Linear(False, int((x.payload or "").strip("{} ")))
            except ValueError:  # many elements
                return None
        if x.opcode in ("add", "subtract") and index == _WHOLE:
            self.types.add(x.element_type)
            left, right = (self.linear(o) for o in x.operands)
            if left is None or right is None or (right.counts and (left.counts or x.opcode == "subtract")):
                return None
            offset = right.offset if x.opcode == "add" else -right.offset
            return _Linear(left.counts or right.counts, left.offset + offset)
        if not x.is_parameter or _only_caller(x) is not self._loop or self._loop is None:
            return None
        if self._is_carried(self._loop, index):
            return _Counter(None, self.types).linear(self._loop.operand, index)
        if self.index in (None, index):
            self.index = index
            return _Linear(True, 0)
        return None

    def source(self, x: Instruction, index: int) -> tuple[Instruction, int]:
        """The instruction that computes the value, and the element of its result."""
        while True:
            opcode = x.opcode
            if index == _WHOLE and x.is_array and x.element_type != "pred":
                self.types.add(x.element_type)
            if opcode in _SAME_VALUE:
                index = _WHOLE if opcode == "copy-start" else index
                x = x.operand
            elif opcode == "get-tuple-element" and index == _WHOLE:
                x, index = x.operand, x.tuple_index
            elif opcode == "tuple" and index != _WHOLE:
                x, index = x.operands[index], _WHOLE
            elif opcode in ("fusion", "call") and x.called:
                x = x.to_apply.root
            elif opcode == "while" and self._is_carried(x, index):
                x = x.operand
            elif opcode == "parameter" and (caller := _only_caller(x)) is not None:
                if caller is self._loop:
                    return x, index
                if caller.opcode in ("fusion", "call"):
                    x = caller.operands[x.parameter_number]
                elif caller.is_while and self._is_carried(caller, index):
                    x = caller.operand
                else:
                    return x, index
            else:
                return x, index

    def _is_carried(self, loop: Instruction, index: int) -> bool:
        """True if each iteration passes the element on as it got it."""
        body = dict(loop.called)["body"]
        source, place = _Counter(loop, self.types).source(body.root, index)
        return source is body.parameter and place == index


def origin(x: Instruction) -> Instruction:
    """The instruction that computes a value, outside of the fusions, calls and loops that pass it on."""
    return _Counter(None, set()).source(x, _WHOLE)[0]


def _only_caller(parameter: Instruction) -> Instruction | None:
    """The instruction whose operand it is; None for the entry's, and where several call its computation."""
    computation = parameter.computation
    if computation is None or len(computation.callers) != 1:
        return None
    return computation.first_caller


# Nothing runs for these: values that are there already, views of them, and bookkeeping.
NO_KERNEL: frozenset[str] = with_trait("no-kernel")

# These run other computations, whose kernels count in their place.
CONTROL_FLOW: frozenset[str] = with_trait("control-flow")
COLLECTIVES = with_trait("collective") | with_trait("collective-start")


def is_kernel(instruction: Instruction) -> bool:
    """True for an instruction that is launched as work of its own."""
    opcode = instruction.opcode
    if opcode in CONTROL_FLOW:
        return is_small_call(instruction)
    if opcode in NO_KERNEL or is_async_end(opcode):
        return False
    if opcode == "custom-call":
        return not is_annotation(instruction)
    if opcode == "fusion" and instruction.called:
        is_call = instruction.fused_root.opcode == "custom-call"
        return not is_call or fused_collective(instruction)[1] != "done"
    return not (opcode in ("reshape", "transpose") and moves_no_data(instruction))


SMALL_CALL = "xla_cpu_small_call"  # Frontend attribute of a call that XLA:CPU compiles whole, as one kernel


def is_small_call(instruction: Instruction) -> bool:
    """True for a call that is one kernel: what it calls is compiled into it (`EmitCallThunk`)."""
    return instruction.opcode == "call" and instruction.frontend_attributes.get(SMALL_CALL) == "true"


def launched_computations(of: Module | Instruction, *, branches: bool = True) -> Computations:
    """The entry and the computations that it runs through while, conditional, call and async-start, entry
    first.

    Computations that are applied element by element (of a reduce, a sort, a fusion) are not among
    them, nor are those without callers, nor without `branches` those of a conditional. Of an instruction,
    what runs in it, through small calls as well."""
    order = [of.entry] if isinstance(of, Module) else of.called_computations
    seen, whole = set(order), isinstance(of, Module)
    for computation in order:  # grows while it is walked
        for instruction in computation:
            if not branches and instruction.opcode == "conditional":
                continue
            if instruction.opcode in CONTROL_FLOW and not (whole and is_small_call(instruction)):
                for callee in instruction.called_computations:
                    if callee not in seen:
                        seen.add(callee)
                        order.append(callee)
    return order


def iter_kernels(computation: Computation) -> Iterator[Instruction]:
    """The kernels among a computation's own instructions, oldest first."""
    return (i for i in computation if is_kernel(i))


def kernels(module: Module) -> Instructions:
    """Every kernel of a module, each once however often its loop runs, in computations' order."""
    return [i for c in launched_computations(module) for i in iter_kernels(c)]


def computed_in(fusion: Instruction) -> Iterator[Instruction]:
    """The operations of a fusion: its instructions but parameters, with the contents of nested fusions."""
    for i in fusion.fused_computation:
        if i.is_fusion and i.called:
            yield from computed_in(i)
        elif not i.is_parameter:
            yield i


def inside(kernel: Instruction) -> Iterable[Instruction]:
    """The operations of a kernel: those of a fusion (`computed_in`), or itself."""
    return computed_in(kernel) if kernel.is_fusion and kernel.called else (kernel,)


def end_of(kernel: Instruction) -> Instruction:
    """The root inside a fusion; another instruction itself."""
    return kernel.fused_root if kernel.is_fusion else kernel


# A line of the user's program, as a user names it.

_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d{1,9})")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """`model.py:42`; the file with as much of its path as the user gives."""

    file: str
    line: int

    def is_of(self, instruction: Instruction, module: Module) -> bool:
        """The dump says that the operation comes from this line, or from a package that this line calls."""
        bearer = source_bearer(instruction, module)
        return any(
            place is not None
            and place.line == self.line
            and (f"/{place.file}".endswith(f"/{self.file}") or self.file.endswith(f"/{place.file}"))
            for place in (module.source_of(bearer), module.called_from(bearer))
        )


def source_line(text: str) -> SourceLine | None:
    """The line that `FILE:LINE` names; None for what is not of that form."""
    place = _PLACE.fullmatch(text)
    return SourceLine(place["file"], int(place["line"])) if place is not None else None


def name_bearers(instruction: Instruction) -> Iterator[Instruction]:
    """Operations whose metadata stand for an instruction's, best first: the scatter or gather whose loop runs
    it, itself, those inside it, its readers, and what a copy writes back. XLA gives the metadata of what it
    expands to the last operation alone. JAX traces the sum of all scatters once, so that it has one line."""
    loop, expanded = expansion_of(instruction)
    if loop is not None and expanded:
        yield loop
    yield instruction
    if instruction.opcode in ("fusion", "call") and instruction.called:
        yield from reversed(list(instruction.to_apply))
    if is_kernel(instruction) and instruction.opcode not in COLLECTIVES and _has_metadata(instruction):
        yield from islice(reach([instruction], _readers), _MOST)
    if instruction.opcode == "copy" and is_kernel(instruction.operand):
        yield from name_bearers(instruction.operand)


def _has_metadata(x: Instruction) -> bool:
    """True if any metadata in the module of `x` has a name or a line; a text may be stored without."""
    module = x.parent.parent
    if "has_metadata" not in module.findings:
        texts = (str(i.raw("metadata")) for i in module.instructions())
        module.findings["has_metadata"] = any(map(_NAMED.search, texts))
    return bool(module.findings["has_metadata"])


_NAMED = re.compile("op_name|source_|stack_frame")
_EXPANDED = re.compile(r"/((?:scatter|gather)[\w-]*)$")  # JAX's own loops are `while`


def expansion_of(kernel: Instruction) -> tuple[Instruction | None, str]:
    """The loop that runs a kernel, and the scatter or gather that XLA made it of; empty for another loop."""
    loop = kernel.called_by("while")
    found = loop and _EXPANDED.search(loop.op_name or "")
    return loop, found[1] if found else ""


def _readers(x: Instruction) -> Instructions:
    """The users of a value, inside fusions and after the fusion that it is the result of."""
    if x.is_root:
        x = x.called_by("fusion") or x
    found = []
    for user in x.users:
        if user.is_fusion and user.called:
            found += user.parameter_of(x).users
        elif user.opcode != "tuple" and user.opcode not in CONTROL_FLOW:
            found.append(user)
    return found


def source_bearer(instruction: Instruction, module: Module) -> Instruction:
    """The operation whose source line stands for that of an instruction; itself where the dump has none."""
    return next((x for x in name_bearers(instruction) if module.source_of(x) is not None), instruction)


def kernel_source(x: Instruction, module: Module, bearer: Instruction | None = None) -> SourceLocation | None:
    """The source line of an instruction or of its loop, or None. `bearer`: its `source_bearer`, if known."""
    source = module.source_of(bearer or source_bearer(x, module))
    loop, _ = expansion_of(x)
    return module.source_of(loop) if source is None and loop is not None else source


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop whose kernels are counted once."""

    name: str
    trips: int | None  # Its iterations; None where the dump has no trip count
    kernels: int  # Launched by one turn


def outermost_loops(module: Module, left_out: Iterable[Computation] = ()) -> tuple[Loop, ...]:
    """The outermost loops that launch kernels, each once; kernels of `left_out` do not count."""
    return tuple(_loops(module.entry, dict.fromkeys(left_out, 0), {module.entry}))


def _loops(computation: Computation, launched: dict[Computation, int], seen: set[Computation]) -> list[Loop]:
    found = []
    for instruction in computation:
        if instruction.is_while:
            if count := _launched_by(instruction, launched):
                found.append(Loop(instruction.name, trip_count_of(instruction), count))
        elif instruction.opcode in CONTROL_FLOW and not is_small_call(instruction):
            for called in instruction.called_computations:
                if called not in seen:
                    seen.add(called)
                    found += _loops(called, launched, seen)
    return found


def _launched_by(instruction: Instruction, launched: dict[Computation, int]) -> int:
    """Launches of one run of an instruction; `launched` has those of computations that were counted."""
    if is_kernel(instruction) or instruction.opcode not in CONTROL_FLOW:
        return int(is_kernel(instruction))
    count = 0
    for name, c in instruction.called:
        if runs_in(instruction, name):
            if c not in launched:
                launched[c] = sum(_launched_by(i, launched) for i in c)
            count += launched[c]
    return count


def runs_in(caller: Instruction, attribute: str) -> bool:
    """True if what `caller` calls by this attribute runs: not the condition of a loop of known trip count."""
    return not caller.is_while or attribute == "body" or trip_count_of(caller) is None


# How often a loop runs: as XLA found out (`known_trip_count` of its backend configuration), or counted.

_TRIPS = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d+)')


def trip_count_of(loop: Instruction) -> int | None:
    """Its iterations; None where neither XLA nor constants in the module say."""
    found = _TRIPS.search(loop.raw("backend_config") or "")
    return int(found[1]) if found else counted_trips(loop) if loop.is_while else None


# Trip counts multiply; of a conditional the slowest branch counts.
def count_runs(own: dict[Computation, tuple[float, int]]) -> tuple[dict[Computation, int], set[Computation]]:
    """The runs of each computation, and the computations in loops without a trip count, counted once. `own`
    has microseconds and bytes of each without its callees; callees come first, the entry last."""
    weights, order = dict(own), list(own)
    for c in order:
        us, moved = own[c]
        for callee, times in [(found, times) for _, found, times in _calls(c, weights) if times]:
            us, moved = us + times * weights[callee][0], moved + times * weights[callee][1]
        weights[c] = us, moved
    often, open_ended = {order[-1]: 1}, set[Computation]()
    for c in reversed(order):
        for caller, callee, times in _calls(c, weights):
            often[callee] = often.get(callee, 0) + often.get(c, 0) * times
            if c in open_ended or (caller.is_while and trip_count_of(caller) is None):
                open_ended.add(callee)
    return often, open_ended


def _calls(
    computation: Computation, weights: dict[Computation, tuple[float, int]]
) -> Iterator[tuple[Instruction, Computation, int]]:
    for i in computation:
        callees = [c for c in i.called_computations if c in weights]
        if not callees:
            continue
        if i.opcode == "conditional":
            yield i, max(callees, key=lambda c: weights[c]), 1
        else:
            trips = trip_count_of(i)
            for name, callee in i.called:
                # With a known trip count the runtime does not evaluate the condition.
                yield i, callee, (1 if trips is None else trips) if runs_in(i, name) else 0
