"""Copies where two values would need one buffer at the same time (`xla/service/copy_insertion.cc`)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.call_sites import CallContext, CallSites, creation_order
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.hlo_alias import HloAlias, HloBuffer
from hlofuse.analysis.hlo_ordering import HloOrdering, SequentialOrdering
from hlofuse.analysis.hlo_value import HloUse, HloValue, Index, shape_tree, subshape_at
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.grouping import grouped
from hlofuse.passes.base import Pass
from hlofuse.passes.copy_insertion.adding import (
    Because,
    add_copies,
    deep_copy,
    has_no_loop_copies,
    is_asynchronous_body,
    replace_users,
)
from hlofuse.passes.copy_insertion.removing import remove_copies
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.releases import AROUND_FUSION
from hlofuse.rules.rewrites import COPY
from hlofuse.trace import OnlySkipped, Recorder


@dataclass(frozen=True)
class CopyInsertion(Pass):
    """`copy-insertion`: copies wherever they might be needed, but for those that turn out not to be."""

    name = "copy-insertion"
    alias_info: Callable[[], AliasInfo] = field(default=partial(AliasInfo, AROUND_FUSION), compare=False)
    """Makes what the backend knows of buffers, for one run."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        if not CallSites(module).is_flattened:
            recorder.skipped(module.entry.root, "a computation has several callers, and XLA stops here")
            return False
        info = self.alias_info()
        reasons: dict[Instruction, str] = {}
        add_copies(module, info, reasons.__setitem__)
        _clean_up(module)
        remove_copies(module, info)
        add_special_copies(module, info, reasons.__setitem__)
        _clean_up(module)
        record_copies(recorder, reasons)
        return True


def record_copies(recorder: Recorder, reasons: dict[Instruction, str]) -> None:
    """Record the copies that stay."""
    for copy, reason in reasons.items():
        if copy.computation is not None:
            recorder.rewrite(copy.computation.name, [], [copy], rule=COPY.code, reason=reason)


def _clean_up(module: Module) -> None:
    """Simplify the tuples of copies, without a trace."""
    silent = OnlySkipped()
    TupleSimplifier().run(module, silent)
    HloDCE().run(module, silent)


# A second look at copies once the order of execution is known.
#
# Mirrors `RunPostSchedulingCopyInsertion` (`xla/service/gpu/gpu_compiler.cc`), without the copies for memory
# that devices share.


@dataclass(frozen=True)
class PostSchedulingCopyInsertion(Pass):
    """Removes copies that the schedule makes needless and adds those for read-only memory again.

    XLA runs it as a function and not as a pass. A module without a schedule is taken to run in post order.
    """

    name = "post-scheduling-copy-insertion"
    alias_info: Callable[[], AliasInfo] = field(default=partial(AliasInfo, AROUND_FUSION), compare=False)
    """Makes what the backend knows of buffers, for one run."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        if not CallSites(module).is_flattened:
            return False
        info = self.alias_info()
        reasons: dict[Instruction, str] = {}
        changed = remove_copies(module, info, _sequential_ordering)
        HloDCE().run(module, OnlySkipped())
        add_special_copies(module, info, reasons.__setitem__)
        HloDCE().run(module, OnlySkipped())
        record_copies(recorder, reasons)
        return changed or bool(reasons)


def _sequential_ordering(calls: CallSites, compared: Iterable[Instruction]) -> HloOrdering:
    """One instruction after the other, in the computations that hold what may be compared."""
    computations: dict[Computation, None] = {}
    for x in compared:
        for y in (x, *calls.chain(x)):
            if y.computation is not None:
                computations[y.computation] = None
    is_scheduled = calls.module.is_scheduled
    return SequentialOrdering(
        calls, {c: c.instructions if is_scheduled else c.post_order() for c in computations}
    )


# Copies for other reasons than that a value is read too late.
#
# Mirrors `CopyInsertion::AddSpecialCaseCopies` (`xla/service/copy_insertion.cc`): read-only memory may not be
# overwritten, and every result of the module needs memory of its own.


def add_special_copies(module: Module, alias_info: AliasInfo, because: Because) -> None:
    """Add the copies that the rules of memory ask for."""
    found = _SpecialCases(module, alias_info)
    for buffer in found.alias.shared_buffers:
        found.check_buffer(buffer)
    for computation in module.computations:
        if computation.fusion is None:
            found.check_root(computation)
    for x, wanted in found.in_order():
        copies: dict[Index, Instruction] = {}
        users = list(x.users)
        replace_users(users, x, deep_copy(x, set(wanted), copies))
        for index, copy in copies.items():
            because(copy, wanted[index])


class _SpecialCases:
    def __init__(self, module: Module, alias_info: AliasInfo) -> None:
        self.alias = HloAlias(module, alias_info)
        self._module = module
        self._info = alias_info
        self._wanted: dict[Instruction, dict[Index, str]] = {}

    def in_order(self) -> Iterable[tuple[Instruction, dict[Index, str]]]:
        """Values to copy with the reasons, in creation order."""
        place = {c: k for k, c in enumerate(creation_order(self._module))}
        return sorted(
            self._wanted.items(),
            key=lambda p: (place[c] if (c := p[0].computation) is not None else -1, p[0].id),
        )

    def check_buffer(self, buffer: HloBuffer) -> None:
        """Read-only memory shared with other values, and operands shared with results that may not be."""
        defined_by = grouped((value.instruction, value) for value in buffer.values)
        for value in buffer.values:
            if self._is_read_only(value):
                reason = "constants must not be overwritten"
                if value.instruction.opcode == "parameter":
                    reason = "the argument is not donated"
                self._want(value.instruction, value.index, reason)
            for use in value.uses:
                for other in defined_by.get(use.instruction, ()):
                    if other is not value:
                        self._check_use(use, other)

    def _check_use(self, use: HloUse, other: HloValue) -> None:
        x = use.instruction
        if custom_call_target(x) == "Pin":
            return
        if x.opcode in ("async-update", "async-done") and use.operand_number == 0:
            return
        operand = x.operands[use.operand_number]
        if not self._info.can_share(self.alias.dataflow, operand, use.operand_index, x, other.index):
            self._want(operand, use.operand_index, f"{x.name} cannot overwrite it while reading it")

    def check_root(self, computation: Computation) -> None:
        """Results that share memory, and results that are constants or arguments."""
        alias, root = self.alias, computation.root
        if alias.calls.context(computation) is not CallContext.CONTROL_FLOW:
            return
        is_entry = computation is self._module.entry
        indices = shape_tree(root.shape).indices
        values = alias.dataflow.values_of(root)
        seen: dict[HloBuffer, Index] = {}
        for index, value in zip(indices, values, strict=True):
            if value is None:
                continue
            buffer = alias.buffer_of(value)
            first = seen.setdefault(buffer, index)
            if first == index or not (is_entry or self._meets_at_conditional(computation, index)):
                continue
            is_aliased = is_entry and index in alias.config.aliases
            self._want(root, first if is_aliased else index, "the same value is returned twice")
        if is_entry:
            for index, value in zip(indices, values, strict=True):
                if value is not None and self._is_read_only(value):
                    kind = "an argument" if value.instruction.opcode == "parameter" else "a constant"
                    self._want(root, index, f"the result is {kind}")

    def _meets_at_conditional(self, computation: Computation, index: Index) -> bool:
        """`ShouldCopyConditionalRootAt`."""
        dataflow = self.alias.dataflow
        for caller in self.alias.calls.callers(computation):
            if caller.opcode == "conditional":
                value = dataflow.value_at(caller, index) if dataflow.has(caller, index) else None
                if value is None or value.is_phi:
                    return True
        return False

    def _is_read_only(self, value: HloValue) -> bool:
        """`ValueIsReadOnly`."""
        x = value.instruction
        if x.opcode == "constant":
            return True
        if x.opcode != "parameter" or x.computation is not self._module.entry:
            return False
        return not self.alias.config.is_aliased((x.parameter_number, value.index))

    def _want(self, x: Instruction, index: Index, reason: str) -> None:
        computation = x.computation
        if computation is None or self._is_in_loop_without_copies(x) or is_asynchronous_body(computation):
            return
        if subshape_at(x.shape, index).element_type == "buffer":
            return
        self._wanted.setdefault(x, {}).setdefault(index, reason)

    def _is_in_loop_without_copies(self, x: Instruction) -> bool:
        """`IsWhileLoopCopyDisabled`."""
        return any(y.opcode == "while" and has_no_loop_copies(y) for y in self.alias.calls.chain(x))
