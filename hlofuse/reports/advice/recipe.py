"""A recipe: a change to a program that makes XLA fuse more, with its page in docs/recipes."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.ir import Instruction, Instructions, Module, Record, Strings, grouped
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.model import Refusal


class Situation:
    def __init__(self, facts: Facts, refused: Sequence[Refusal]) -> None:
        """`refused` are the pairs of kernels that rules keep apart."""
        self.facts = facts
        self.backend = facts.replay.config.build.backend  # `cpu` or `gpu`
        self.module: Module = facts.replay.before  # At the input of fusion
        self._by_opcode = grouped((i.opcode, i) for i in self.module.instructions())
        self._refused = grouped((r.rule or "", r) for r in refused)

    def of(self, *opcodes: str) -> Instructions:
        """All instructions with these opcodes, those inside library fusions, too."""
        return [i for opcode in opcodes for i in self._by_opcode.get(opcode, ())]

    def unfused(self, *opcodes: str) -> Instructions:
        """The instructions with these opcodes that are in no library fusion."""
        return [i for i in self.of(*opcodes) if i.fusion_around is None]

    def refusals(self, *rules: str) -> Iterator[Refusal]:
        """The pairs of kernels that one of these rules keeps apart, greatest value first."""
        for code in rules:
            yield from self._refused.get(code, ())

    def inside(self, kernel: str | None) -> Instructions:
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


class Unoptimized(Situation):
    """A module before optimizations, without a replay: for recipes that look at operations alone."""

    def __init__(self, module: Module, backend: str) -> None:
        self.module, self.backend = module, backend
        self._by_opcode = grouped((i.opcode, i) for i in module.instructions())
        self._refused = {}


class Finding(Record):
    """A place in a module where a recipe applies."""

    at: str  # The instruction at the input of fusion that the change begins with: its line is the one to edit
    rule: str = ""  # The code of the rule that the change avoids; empty where it is about no refusal
    parts: Strings = ()  # Further instructions that the rewrite needs


class Recipe(Record):
    name: str  # Its page is docs/recipes/NAME.md. Recipes that share one are forms of it: by 2, by 4
    text: str  # The action: an imperative sentence of at most 70 characters, without a full stop
    find: Callable[[Situation], Iterable[Finding]] = lambda _: ()
    """The places at the input of fusion where it applies, each once; none for a recipe in `WRITTEN`."""
    rewrite: Callable[..., bool] | None = None
    """Given the instruction of a finding and its parts, in a copy of the module at the input of fusion: makes
    the change there. False where it cannot be made. Without it the replay is without `Finding.rule`."""
    unrolls: bool = False  # A loop does several iterations in one
