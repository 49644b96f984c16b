"""From when until when each value of a schedule is needed (`xla/hlo/utils/hlo_live_range.cc`)."""

from collections.abc import Sequence

from hlofuse.analysis.async_ops import ends_of, is_async_end
from hlofuse.analysis.call_sites import is_asynchronous
from hlofuse.analysis.hlo_alias import HloAlias
from hlofuse.analysis.hlo_value import HloValue
from hlofuse.ir.graph import Computation, Instruction, Module

Range = tuple[int, int]
"""First and last moment, both included."""


class LiveRanges:
    """The moments of a module's instructions, and between which of them its values live."""

    def __init__(self, module: Module, alias: HloAlias) -> None:
        self.order: list[Instruction] = []
        """All instructions that run, one moment each, those of a called computation before their caller."""
        self.ranges: dict[HloValue, Range] = {}
        self._module = module
        self._alias = alias
        self._times: dict[Instruction, int] = {}
        self.spans: dict[Computation, Range] = {}
        self._started_by: dict[Computation, Instruction] = {}
        self._flatten()
        for value in alias.dataflow.values:
            if value.instruction in self._times:
                self.ranges[value] = self._live_range(value)
        for buffer in alias.shared_buffers:
            self._separate(buffer.values)

    @property
    def end(self) -> int:
        """The moment after the last instruction."""
        return len(self.order)

    def moment(self, instruction: Instruction) -> int:
        """The place of an instruction in `order`; `end` for one that does not run."""
        return self._times.get(instruction, self.end)

    def _flatten(self) -> None:
        """`FlattenSchedule`; what has no schedule runs in post-order."""
        scheduled = self._module.is_scheduled
        pending: list[Instruction | Computation | tuple[Computation, int]] = [self._module.entry]
        opened: set[Computation] = set()
        while pending:
            item = pending.pop()
            if isinstance(item, Instruction):
                self._times[item] = len(self.order)
                self.order.append(item)
            elif isinstance(item, tuple):
                self.spans[item[0]] = (item[1], len(self.order))
            elif item not in opened:
                opened.add(item)
                pending.append((item, len(self.order)))
                instructions: Sequence[Instruction] = item.instructions if scheduled else item.post_order()
                context = self._started_by.get(item)
                for x in reversed(instructions):
                    pending.append(x)
                    for called in reversed(run_by(x)):
                        start = x if is_asynchronous(x) else context
                        if start is not None:
                            self._started_by.setdefault(called, start)
                        pending.append(called)

    def _live_range(self, value: HloValue) -> Range:
        """`CalculateBufferStartEndMap`."""
        x = value.instruction
        computation = x.computation
        assert computation is not None
        first, after = self.spans[computation]
        end = after if x.is_root else self._times[x]
        start = self._started_by.get(computation)
        if start is not None:
            end = max(end, self._end_of(start, after))
        is_argument = x.opcode == "parameter" and computation is self._module.entry
        if is_argument and not self._alias.config.is_aliased((x.parameter_number, value.index)):
            return first, self.end
        for place, _ in value.positions[1:]:
            if place.is_root and place.computation in self.spans:
                end = max(end, self.spans[place.computation][1])
            elif not place.is_root:
                end = max(end, self._times.get(place, -1))
        for use in value.uses:
            user = use.instruction
            if user.opcode == "call":
                continue  # what reads it in there counts
            if user.opcode == "while":  # which has its own buffer from then on
                user = dict(user.called)["body"].parameters[0]
            end = max(end, self._times.get(user, -1))
        return (first if x.opcode == "parameter" else self._times[x]), end

    def _end_of(self, start: Instruction, otherwise: int) -> int:
        """The moment at which an asynchronous call is waited for."""
        ends = [x for x in ends_of(start) if x.opcode.endswith("-done")]
        return max((self._times.get(x, otherwise) for x in ends), default=otherwise)

    def _separate(self, values: Sequence[HloValue]) -> None:
        """Values of one buffer hold it one after the other (`NormalizeAliasedBuffers`)."""
        rows = sorted((*self.ranges[v], v.id, v) for v in values if v in self.ranges)
        ranges = [(start, end) for start, end, _, _ in rows]
        for k in range(len(ranges) - 1):
            (start, end), (next_start, next_end) = ranges[k], ranges[k + 1]
            ranges[k + 1] = (next_start, max(end, next_end))
            ranges[k] = (start, min(end, next_start))
        for (_, _, _, value), found in zip(rows, ranges, strict=True):
            self.ranges[value] = found


def run_by(x: Instruction) -> list[Computation]:
    """The computations that an instruction runs one after the other, a loop's condition first."""
    if x.opcode == "while":
        parts = dict(x.called)
        return [parts["condition"], parts["body"]]
    if x.opcode in ("call", "conditional") or (is_asynchronous(x) and not is_async_end(x.opcode)):
        return [c for _, c in x.called]
    return []
