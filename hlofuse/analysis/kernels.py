"""Kernels of a module, the unit in which fusion is counted; loops that launch, and their iterations."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlofuse.analysis.async_ops import is_async_end
from hlofuse.analysis.custom_calls import is_annotation
from hlofuse.analysis.elementwise import moves_no_data
from hlofuse.analysis.trip_counts import counted_trips
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.stack_frames import SourceLocation

# Nothing runs for these: values that are there already, views of them, and bookkeeping.
NO_KERNEL: frozenset[str] = with_trait("no-kernel")

# These run other computations, whose kernels count in their place.
CONTROL_FLOW: frozenset[str] = with_trait("control-flow")


def is_kernel(instruction: Instruction) -> bool:
    """True for an instruction that is launched as work of its own."""
    opcode = instruction.opcode
    if opcode in CONTROL_FLOW:
        return is_small_call(instruction)
    if opcode in NO_KERNEL or is_async_end(opcode):
        return False
    if opcode == "custom-call":
        return not is_annotation(instruction)
    return not (opcode in ("reshape", "transpose") and moves_no_data(instruction))


SMALL_CALL = "xla_cpu_small_call"
"""The frontend attribute of a call that XLA:CPU compiles whole, as one kernel."""


def is_small_call(instruction: Instruction) -> bool:
    """True for a call that is one kernel: what it calls is compiled into it (`EmitCallThunk`)."""
    if instruction.opcode != "call":
        return False
    attributes: dict[str, str] = instruction.attributes.get("frontend_attributes") or {}
    return attributes.get(SMALL_CALL) == "true"


def launched_computations(of: Module | Instruction, *, branches: bool = True) -> list[Computation]:
    """The entry and the computations that it runs through while, conditional, call and async-start, entry
    first.

    Computations that are applied element by element (of a reduce, a sort, a fusion) are not among
    them, nor are those without callers, nor without `branches` those of a conditional. Of an instruction,
    what runs in it, through small calls as well.
    """
    order = [of.entry] if isinstance(of, Module) else [c for _, c in of.called]
    seen, whole = set(order), isinstance(of, Module)
    for computation in order:  # grows while it is walked
        for instruction in computation:
            if not branches and instruction.opcode == "conditional":
                continue
            if instruction.opcode in CONTROL_FLOW and not (whole and is_small_call(instruction)):
                for _, callee in instruction.called:
                    if callee not in seen:
                        seen.add(callee)
                        order.append(callee)
    return order


def iter_kernels(computation: Computation) -> Iterator[Instruction]:
    """The kernels among a computation's own instructions, oldest first."""
    return (i for i in computation if is_kernel(i))


def kernels(module: Module) -> list[Instruction]:
    """Every kernel of a module, each once however often its loop runs, in computations' order."""
    return [i for c in launched_computations(module) for i in iter_kernels(c)]


def computed_in(fusion: Instruction) -> Iterator[Instruction]:
    """The operations of a fusion: its instructions but parameters, with the contents of nested fusions."""
    for i in fusion.fused_computation:
        if i.opcode == "fusion" and i.called:
            yield from computed_in(i)
        elif i.opcode != "parameter":
            yield i


# A line of the user's program, as a user names it.

_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d{1,9})")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """`model.py:42`; the file with as much of its path as the user gives."""

    file: str
    line: int

    def is_of(self, instruction: Instruction, module: Module) -> bool:
        """The dump says that the operation comes from this line, or from a package that this line calls."""
        return any(
            place is not None and place.line == self.line and self._is_file(place.file)
            for place in (module.source_of(instruction), module.called_from(instruction))
        )

    def _is_file(self, file: str) -> bool:
        return file == self.file or file.endswith("/" + self.file) or self.file.endswith("/" + file)


def source_line(text: str) -> SourceLine | None:
    """The line that `FILE:LINE` names; None for what is not of that form."""
    place = _PLACE.fullmatch(text)
    return SourceLine(place["file"], int(place["line"])) if place is not None else None


def kernel_source(instruction: Instruction, module: Module) -> SourceLocation | None:
    """The source line of an instruction; None where the dump has none.

    Passes that create a fusion may omit its source. Then the last operation stands for the whole.
    """
    source = module.source_of(instruction)
    if source is None and instruction.opcode == "fusion" and instruction.called:
        inside = (module.source_of(i) for i in reversed(list(instruction.fused_computation)))
        source = next((s for s in inside if s is not None), None)
    return source


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop whose kernels are counted once."""

    name: str
    trips: int | None
    """Its iterations; None where the dump has no trip count."""
    kernels: int
    """Launched by one turn."""


def outermost_loops(module: Module) -> tuple[Loop, ...]:
    """The outermost loops that launch kernels; each once, however often its computation is called."""
    return tuple(_loops(module.entry, {}, {module.entry}))


def _loops(computation: Computation, launched: dict[Computation, int], seen: set[Computation]) -> list[Loop]:
    found: list[Loop] = []
    for instruction in computation:
        if instruction.opcode == "while":
            if count := _launched_by(instruction, launched):
                found.append(Loop(instruction.name, trip_count_of(instruction), count))
        elif instruction.opcode in CONTROL_FLOW and not is_small_call(instruction):
            for _, called in instruction.called:
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
    return caller.opcode != "while" or attribute == "body" or trip_count_of(caller) is None


# How often a loop runs: as XLA found out (`known_trip_count` of its backend configuration), or counted.

_TRIPS = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d+)')


def trip_count_of(loop: Instruction) -> int | None:
    """Its iterations; None where neither XLA nor constants in the module say."""
    found = _TRIPS.search(loop.attributes.raw("backend_config") or "")
    return int(found[1]) if found else counted_trips(loop) if loop.opcode == "while" else None


# Trip counts multiply; of a conditional the slowest branch counts.


def count_runs(own: dict[Computation, tuple[float, int]]) -> tuple[dict[Computation, int], set[Computation]]:
    """The runs of each computation, and the computations in loops without a trip count, counted once.

    `own` has microseconds and bytes of each without its callees; callees come first, the entry last.
    """
    weights, order = dict(own), list(own)
    for c in order:
        us, moved = own[c]
        for _, callee, times in _calls(c, weights):
            us, moved = us + times * weights[callee][0], moved + times * weights[callee][1]
        weights[c] = us, moved
    often, open_ended = {order[-1]: 1}, set[Computation]()
    for c in reversed(order):
        for caller, callee, times in _calls(c, weights):
            often[callee] = often.get(callee, 0) + often.get(c, 0) * times
            if c in open_ended or (caller.opcode == "while" and trip_count_of(caller) is None):
                open_ended.add(callee)
    return often, open_ended


def _calls(
    computation: Computation, weights: dict[Computation, tuple[float, int]]
) -> Iterator[tuple[Instruction, Computation, int]]:
    """Each call of a computation: the caller, the callee and its iterations."""
    for i in computation:
        callees = [c for _, c in i.called if c in weights]
        if not callees:
            continue
        if i.opcode == "conditional":
            yield i, max(callees, key=lambda c: weights[c]), 1
        else:
            trips = trip_count_of(i)
            for name, callee in i.called:
                # With a known trip count the runtime does not evaluate the condition.
                yield i, callee, (1 if trips is None else trips) if runs_in(i, name) else 0
