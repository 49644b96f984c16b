"""A replayed module as recipes look at it."""

from collections.abc import Iterator, Sequence

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.grouping import grouped
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.model import Refusal


class Situation:
    """What recipes ask about a replay."""

    def __init__(self, facts: Facts, refused: Sequence[Refusal]) -> None:
        """`refused` are the pairs of kernels that rules keep apart."""
        self.facts = facts
        self.backend = facts.replay.config.build.backend
        """`cpu` or `gpu`."""
        self.module: Module = facts.replay.before
        """At the input of fusion."""
        self._by_opcode = grouped((i.opcode, i) for i in self.module.instructions())
        self._refused = grouped((r.rule or "", r) for r in refused)

    def of(self, *opcodes: str) -> list[Instruction]:
        """All instructions with these opcodes, those inside library fusions, too."""
        return [i for opcode in opcodes for i in self._by_opcode.get(opcode, ())]

    def unfused(self, *opcodes: str) -> list[Instruction]:
        """The instructions with these opcodes that are in no library fusion."""
        return [i for i in self.of(*opcodes) if i.computation is None or i.computation.fusion is None]

    def refusals(self, *rules: str) -> Iterator[Refusal]:
        """The pairs of kernels that one of these rules keeps apart, greatest value first."""
        for code in rules:
            yield from self._refused.get(code, ())

    def inside(self, kernel: str | None) -> list[Instruction]:
        """The instructions of the input of fusion that a kernel holds, by its name at the end of fusion."""
        before = self.facts.before
        names = self.facts.lineage.members(kernel) if kernel is not None else ()
        return [before[n] for n in names if n in before]

    def edges(self, refusal: Refusal) -> Iterator[tuple[Instruction, Instruction]]:
        """Producer and consumer at the input of fusion, bitcasts passed over, across a refused pair."""
        producers = set(self.inside(refusal.kernel))
        for consumer in self.inside(refusal.consumer):
            for operand in dict.fromkeys(map(without_bitcasts, consumer.operands)):
                if operand in producers:
                    yield operand, consumer
