"""Passes as small values whose fields are their options; lists of passes are passes too. Many visit a
computation and replace instructions (`xla/hlo/ir/dfs_hlo_visitor_with_default.h`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar, dataclass_transform

from hlofuse.ir import Computation, HlofuseError, Instruction, Module, Predicate, Record, Strings
from hlofuse.ir.removing import is_dead, is_safely_removable, replace_instruction, set_attribute
from hlofuse.releases import AROUND_FUSION, Release
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.settings import AS_XLA, Settings
from hlofuse.trace import Recorder

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.cost.gpu.model import KernelModel
    from hlofuse.cost.gpu.summary_table import SharedTables


def any_change(changes: Iterable[bool]) -> bool:
    """True if any of them is one; all are made (`any` would end at the first)."""
    return sum(changes) > 0


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _Value:
    """Makes frozen dataclasses of the classes with fields that derive from it."""

    def __init_subclass__(cls, **options: bool) -> None:
        if cls.__annotations__:
            dataclass(frozen=True, **options)(cls)


class Pass(_Value, kw_only=True):
    """A rewrite of a module. `str(pass)` is its text in a pipeline. No pass raises on a well-formed module.
    Where it cannot express what XLA would write, it leaves that alone and records it (`Recorder.skipped`)."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """XLA's name, as in its dump files; most passes have it as a class variable."""

    settings: Settings = field(default=AS_XLA, compare=False, repr=False)  # The changes of a what-if run

    def run(self, module: Module, recorder: Recorder) -> bool:
        """Rewrite `module`; True if anything changed."""
        raise NotImplementedError

    def run_with(self, run: Callable[[Pass], bool]) -> bool:
        """Run the single passes in it by calling `run`; True if any changed anything."""
        return run(self)

    def flattened(self) -> Iterator[Pass]:
        yield self

    def __str__(self) -> str:
        options = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.compare and value != f.default:
                options.append(f"{f.name}={str(value).lower() if isinstance(value, bool) else value}")
        return self.name + (f"({', '.join(options)})" if options else "")


class ReleasePass(Pass, kw_only=True):
    release: Release = field(default=AROUND_FUSION, compare=False, repr=False)


class DevicePass(ReleasePass, kw_only=True):
    """A pass that a list may name without a device, and that cannot run so."""

    device: DeviceDescription | None = field(default=None, compare=False, repr=False)

    def required_device(self) -> DeviceDescription:
        if self.device is None:
            raise HlofuseError(f"{self.name} needs a device")
        return self.device

    def kernels(self, tables: SharedTables | None = None) -> KernelModel:
        from hlofuse.cost.gpu.merging import kernel_model  # costs that other targets do not need

        return kernel_model(self.required_device(), self.release, tables)


class _Combined(Pass):
    def run(self, module: Module, recorder: Recorder) -> bool:
        def single(step: Pass) -> bool:
            recorder.begin_pass(step.name)
            return step.run(module, recorder)

        return self.run_with(single)


class Pipeline(_Combined):
    """Passes in order (`xla/hlo/pass/hlo_pass_pipeline.cc`); `name` as dump files write it."""

    name: str
    steps: Sequence[Pass]

    def run_with(self, run: Callable[[Pass], bool]) -> bool:
        return any_change(step.run_with(run) for step in self.steps)

    def flattened(self) -> Iterator[Pass]:
        yield self
        for step in self.steps:
            yield from step.flattened()


class FixedPoint(_Combined):
    """A pass until it changes nothing (`xla/hlo/pass/hlo_pass_fix.h`)."""

    of: Pass
    limit: int = 25  # XLA's. Passes that undo each other's work would never end.
    must_end: bool = False
    """HlofuseError at the limit: XLA goes on, but a user who lists passes wants to know."""

    @property
    def name(self) -> str:
        return self.of.name

    def run_with(self, run: Callable[[Pass], bool]) -> bool:
        for iteration in range(self.limit):
            if not self.of.run_with(run):
                return iteration > 0
        if self.must_end:
            raise HlofuseError(f"{self.name} still changes the module after {self.limit} rounds")
        return True

    def flattened(self) -> Iterator[Pass]:
        yield self
        yield from self.of.flattened()


class UnimplementedPass(Pass):
    """The place of a pass that is not implemented: it records the instructions that XLA's would work on."""

    name: str
    opcodes: Strings = field(default=(), compare=False)
    """The opcodes that the pass rewrites; empty where none reaches it by default."""
    where: Predicate | None = field(default=None, compare=False)
    """True for those instructions of `opcodes` that it works on; None for all."""
    within: Callable[[Computation], Iterable[Instruction]] = field(default=iter, compare=False)
    """The instructions of a computation that it may work on."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        if self.opcodes:
            found = Counter(
                i.opcode
                for c in module.computations
                for i in self.within(c)
                if i.opcode in self.opcodes and (self.where is None or self.where(i))
            )
            if found:
                recorder.unimplemented(found)
        return False


class NotRepresentable(Exception):
    """XLA's replacement cannot be represented here; the message has the reason. `attempt` catches it."""


class Explained(Record):
    """The explanation of a rewrite: its rule, and text about the instruction before it."""

    rule: Rule
    about: Callable[[Instruction], str] | None = None

    def reason(self, instruction: Instruction) -> str:
        """The reason; the rule's title where the pass gives none."""
        return self.about(instruction) if self.about is not None else self.rule.title


def attempt(
    handle: Callable[[Instruction], bool | None], recorder: Recorder, explained: Explained | None = None
) -> Predicate:
    """`handle`, but where it cannot express its rewrite, the instruction stays and `recorder` notes why."""

    def attempted(instruction: Instruction) -> bool:
        computation = instruction.computation
        first = computation.next_id if computation is not None else 0
        try:
            if explained is None or computation is None:
                return bool(handle(instruction))
            name, reason = instruction.name, explained.reason(instruction)
            if not handle(instruction):
                return False
            added = computation.added_since(first)
            # What is called will be inlined.
            added += [i for x in added if x.opcode == "call" for c in x.called_computations for i in c]
            recorder.created_instructions(name, added, explained.rule, reason)
            return True
        except NotRepresentable as reason:
            recorder.skipped(instruction, str(reason))
            if computation is not None:
                # What was begun must not count as a user of what it reads.
                for begun in reversed([i for i in computation.instructions if i.id >= first]):
                    if is_dead(begun) and is_safely_removable(begun):
                        computation.remove_instruction(begun)
            return False

    return attempted


def rewrite_each(
    module: Module,
    opcodes: Container[str],
    handle: Predicate,
    recorder: Recorder,
    explained: Explained | None = None,
) -> bool:
    """Attempt `handle` on every instruction of these opcodes outside fusions; True if any call was. Operands
    come before users, as a computation stands at first: what a handler puts in is not visited."""
    attempted = attempt(handle, recorder, explained)
    changed = False
    for computation in module.non_fusion_computations():
        if not any(x.opcode in opcodes for x in computation):
            continue
        for x in computation.post_order():
            if x.opcode in opcodes and x.computation is not None:
                changed |= attempted(x)
    return changed


def find_each(
    module: Module,
    wanted: Callable[[Instruction], object],
    order: Callable[[Computation], Iterable[Instruction]] = iter,
) -> list[Instruction]:
    """The wanted instructions outside fusions, callees first, in the order of their creation or another."""
    return [x for c in module.non_fusion_computations() for x in order(c) if wanted(x)]


def accept_order(computation: Computation) -> list[Instruction]:
    """Operands before users, what nothing reads first, whatever its id (`HloComputation::Accept`)."""
    return computation.post_order(starts=[*computation.unreachable_roots(), computation.root])


def expand_each(
    found: Iterable[Instruction],
    handle: Callable[[Instruction], object],
    recorder: Recorder,
    explained: Explained | None = None,
) -> bool:
    """Attempt `handle` on each of those found beforehand that is still there; True if it ever succeeded."""

    def expand(x: Instruction) -> bool:
        handle(x)
        return True

    attempted = attempt(expand, recorder, explained)
    return any_change(x.computation is not None and attempted(x) for x in found)


def visit_module(
    module: Module,
    opcodes: Iterable[str] | None,
    handle: Predicate,
    recorder: Recorder,
    visited: set[Instruction] | None = None,
    explained: Explained | None = None,
) -> bool:
    """Attempt `handle` on every instruction of these opcodes outside fusions; True if any call was."""
    handle = attempt(handle, recorder, explained)
    wanted = frozenset(opcodes) if opcodes is not None else None
    visited = set() if visited is None else visited
    return any_change(visit(c, handle, wanted, visited) for c in module.non_fusion_computations())


class VisitPass(Pass):
    """A pass that is `visit_module` with its own `handle` on every instruction of `opcodes`, None for all."""

    opcodes: ClassVar[Iterable[str] | None] = None
    explained: ClassVar[Explained | None] = None

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, self.opcodes, self.handle, recorder, explained=self.explained)

    def handle(self, x: Instruction, /) -> bool:
        """Rewrite the instruction; True if it did."""
        raise NotImplementedError


class RewritePass(VisitPass):
    """The same with `rewrite_each`."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, frozenset(self.opcodes or ()), self.handle, recorder, self.explained)


class ExpandPass(VisitPass):
    """The same with what is wanted before any is rewritten, in the order of creation."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        return expand_each(find_each(module, self.is_wanted), self.handle, recorder, self.explained)

    def is_wanted(self, x: Instruction, /) -> object:
        raise NotImplementedError


def visit(
    computation: Computation,
    handle: Callable[[Instruction], bool | None],
    wanted: frozenset[str] | None = None,
    visited: set[Instruction] | None = None,
) -> bool:
    """Operands before users, as the graph is at the time (`HloComputation::Accept`); True if any call was.
    What a handler puts in is visited too where a user not yet looked at reads it, unless the handler adds it
    to `visited`. No `wanted` opcodes are all of them."""
    if wanted is not None and wanted.isdisjoint([i.opcode for i in computation]):
        return False  # nothing is called, so nothing comes that would be
    visited = set() if visited is None else visited
    changed = False
    for start in (*computation.unreachable_roots(), None):
        # The root is the one that there is by then. None marks an instruction whose operands lie above it.
        stack: list[Instruction | None] = [start or computation.root]
        while stack:
            current = stack.pop()
            ready = current is None
            if current is None:
                current = stack.pop()
            if current is None or current in visited:
                continue
            if not ready and (current.operands or current._control):
                left = [o for o in reversed(current.operands) if o not in visited]
                if current._control:
                    left[:0] = [o for o in reversed(current.control_predecessors) if o not in visited]
                if left:
                    stack += (current, None, *left)
                    continue
            visited.add(current)
            if (wanted is None or current.opcode in wanted) and current.computation is not None:
                changed |= bool(handle(current))
    return changed


def substituted(old: Instruction, new: Instruction, *, preserve_sharding: bool = False) -> bool:
    """`new` takes the place of `old`, which goes if nothing else needs it; its control edges stay."""
    return replace_instruction(old, new, relay_control_dependencies=True, preserve_sharding=preserve_sharding)


def replaced(old: Instruction, new: Instruction, *, preserve_sharding: bool = False) -> bool:
    """`substituted`, frontend attributes included (`DfsHloRewriteVisitor::ReplaceInstruction`)."""
    frontend = old.raw("frontend_attributes")
    if frontend is not None and new.raw("frontend_attributes") is None:
        set_attribute(new, "frontend_attributes", frontend)
    return substituted(old, new, preserve_sharding=preserve_sharding)
