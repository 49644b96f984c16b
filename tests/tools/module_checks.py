"""Whether a graph holds together, and where not (the structural half of `xla/service/hlo_verifier.cc`).

It looks at the bookkeeping a pass can break: edges known at both ends, slots, parameters, roots,
callers, names, cycles. It does not judge shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hlofuse.ir.graph import Computation, Instruction, Module


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: what, and with which instruction of which computation."""

    message: str
    computation: str | None = None
    instruction: str | None = None

    def __str__(self) -> str:
        where = " in ".join(x for x in (self.instruction, self.computation) if x)
        return f"{where}: {self.message}" if where else self.message


_Sets = dict[Instruction, set[Instruction]]


def verify_module(module: Module) -> list[Problem]:
    """All that is wrong with the module; empty when nothing is."""
    return list(_problems(module))


def check_module(module: Module) -> None:
    """Raise ValueError naming everything that is wrong, if anything is."""
    problems = verify_module(module)
    if problems:
        raise ValueError("broken module: " + "; ".join(map(str, problems[:20])))


def _problems(module: Module) -> Iterator[Problem]:
    if not hasattr(module, "entry"):
        yield Problem("the module has no entry computation")
    elif module.entry not in module.computations:
        yield Problem("the entry computation is not in the module", module.entry.name)
    for name, times in Counter(c.name for c in module.computations).items():
        if times > 1:
            yield Problem(f"{times} computations have this name", name)
    members = set(module.computations)
    calls: dict[Computation, Counter[Instruction]] = {c: Counter() for c in module.computations}
    names: dict[str, Instruction] = {}
    for computation in module.computations:
        if computation.module is not module:
            yield Problem("it believes to be in another module", computation.name)
        for instruction in computation:
            first = names.setdefault(instruction.name, instruction)
            if first is not instruction:
                yield Problem("another instruction has the same name", computation.name, instruction.name)
            for _, callee in instruction.called:
                if callee not in members:
                    yield Problem(
                        f"calls {callee.name}, which is not in the module", computation.name, instruction.name
                    )
                else:
                    calls[callee][instruction] += 1
        yield from _computation_problems(computation)
    for computation, callers in calls.items():
        yield from _caller_problems(computation, callers)
    yield from _call_cycles(module)


def _computation_problems(computation: Computation) -> Iterator[Problem]:
    here = computation.name
    inside = {x: set(x.users) for x in computation}
    operands = {x: set(x.operands) for x in computation}
    if not hasattr(computation, "root"):
        yield Problem("there is no root", here)
    elif computation.root not in inside:
        yield Problem("the root is not in the computation", here, computation.root.name)
    for slot, instruction in enumerate(computation._slots):
        if instruction is None:
            continue
        if instruction.id != slot:
            yield Problem(f"its id is {instruction.id} but it is in slot {slot}", here, instruction.name)
        if instruction.computation is not computation:
            yield Problem("it believes to be in another computation", here, instruction.name)
        yield from _edge_problems(instruction, inside, operands)
    yield from _parameter_problems(computation)
    yield from _cycles(computation)


def _edge_problems(x: Instruction, users: _Sets, operands: _Sets) -> Iterator[Problem]:
    inside = users.keys()
    here = x.computation.name if x.computation is not None else None
    for operand in x.operands:
        if operand not in inside:
            yield Problem(f"its operand {operand.name} is not in the computation", here, x.name)
        elif x not in users[operand]:
            yield Problem(f"its operand {operand.name} does not know it as a user", here, x.name)
    for user in x.users:
        if user not in inside:
            yield Problem(f"its user {user.name} is not in the computation", here, x.name)
        elif x not in operands[user]:
            yield Problem(f"its user {user.name} does not have it as an operand", here, x.name)
    if len(users[x]) != len(x.users):
        yield Problem("a user is listed twice", here, x.name)
    if x.opcode == "fusion" and len(x.operands) != len(x.called_computations[0].parameters):
        count = len(x.called_computations[0].parameters)
        yield Problem(f"it has {len(x.operands)} operands for {count} parameters", here, x.name)
    for before in x.control_predecessors:
        if before not in inside or x not in before.control_successors:
            yield Problem(f"its control predecessor {before.name} does not know it", here, x.name)
    for after in x.control_successors:
        if after not in inside or x not in after.control_predecessors:
            yield Problem(f"its control successor {after.name} does not know it", here, x.name)


def _parameter_problems(computation: Computation) -> Iterator[Problem]:
    found = [x for x in computation if x.opcode == "parameter"]
    if len(found) != len(computation.parameters):
        yield Problem(
            f"{len(found)} parameters among the instructions, {len(computation.parameters)} listed",
            computation.name,
        )
    for number, parameter in enumerate(computation.parameters):
        if parameter.opcode != "parameter" or parameter.parameter_number != number:
            yield Problem(f"it is listed as parameter {number}", computation.name, parameter.name)
        if parameter.computation is not computation:
            yield Problem("a listed parameter is not in the computation", computation.name, parameter.name)


def _caller_problems(computation: Computation, expected: Counter[Instruction]) -> Iterator[Problem]:
    for caller, times in expected.items():
        existing = computation.callers.get(caller, 0)
        if existing != times:
            yield Problem(f"{caller.name} calls it {times} times, known are {existing}", computation.name)
    if len(expected) > 1 and any(caller.opcode == "fusion" for caller in expected):
        yield Problem("it is a fusion's own, but others call it as well", computation.name)
    for caller in computation.callers:
        if caller not in expected:
            yield Problem(f"{caller.name} is listed as a caller and is none", computation.name)


def _cycles(computation: Computation) -> Iterator[Problem]:
    """Instructions left over when those without open operands are taken away again and again."""
    waiting: dict[Instruction, int] = {}
    ready: list[Instruction] = []
    for x in computation:
        count = len(set(x.operands)) + len(x.control_predecessors)
        if count:
            waiting[x] = count
        else:
            ready.append(x)
    while ready:
        done = ready.pop()
        for after in (*done.users, *done.control_successors):
            left = waiting.get(after, 0) - 1
            if left > 0:
                waiting[after] = left
            elif left == 0:
                del waiting[after]
                ready.append(after)
    if waiting:
        names = ", ".join(x.name for x in list(waiting)[:5])
        yield Problem(f"instructions depend on themselves, or on ones that do: {names}", computation.name)


def _call_cycles(module: Module) -> Iterator[Problem]:
    done: set[Computation] = set()
    for start in module.computations:
        path: dict[Computation, Iterator[Computation]] = {}
        if start not in done:
            path[start] = _callees(start)
        while path:
            computation, callees = next(reversed(path.items()))
            for callee in callees:
                if callee in path:
                    yield Problem(f"it calls itself by way of {computation.name}", callee.name)
                elif callee not in done:
                    path[callee] = _callees(callee)
                    break
            else:
                del path[computation]
                done.add(computation)


def _callees(computation: Computation) -> Iterator[Computation]:
    return (callee for x in computation for _, callee in x.called)
