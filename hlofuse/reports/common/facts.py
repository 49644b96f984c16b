"""Facts about a replay for several parts of an explanation."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain, repeat
from typing import TypeAlias

from hlofuse.account import Account, Costs, Launched, Totals
from hlofuse.account.replaying import account_of
from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.analysis.kernels import is_kernel, kernel_source, launched_computations, source_bearer
from hlofuse.compilation import Compilation
from hlofuse.format import fields
from hlofuse.format.paths import source_in_function
from hlofuse.ir import Instruction, Module, Strings, grouped, replace, values
from hlofuse.rules.catalogue import Rule, catalogue
from hlofuse.trace import Event
from .lineage import Lineage, is_view, readers, through_views
from .model import CreatedBy, FinalKernel, Place

FURTHER_RESULTS = frozenset(
    {"multi_output_fusion", "cpu_multi_output_fusion", "horizontal_loop_fusion", "horizontal_input_fusion"}
)
"""Passes that only make one kernel with several results of what those before them have left apart."""
EdgeNames: TypeAlias = tuple[str, str]  # Producer and consumer in the input
_FREE = values("bitcast constant")


class Facts:
    """Facts about a replay for several parts of an explanation, cached."""

    def __init__(
        self,
        replay: Compilation,
        costs: Costs | None = None,
        *,
        with_final_names: bool = True,
        counted: Account | None = None,
    ) -> None:
        """Only names at fusion without `with_final_names`; `counted`: launches of a fused module."""
        self.replay = replay
        self._counted = counted
        self.costs = costs
        self._with_final_names = with_final_names
        self.lineage = Lineage(replay.before, replay.after, replay.events)
        self.before = {i.name: i for i in replay.before.instructions()}
        self.after = {i.name: i for c in replay.after.computations if c.fusion is None for i in c}
        self.launched_after = launched(replay.after)
        self._places: dict[str, Place] = {}
        self._explained: dict[str, dict[CreatedBy, None]] = {}
        self._catalogue = catalogue()

    def is_kernel(self, name: str) -> bool:
        """True if what the instruction of this final name yields, a view or not, is a kernel's result."""
        x = self.after.get(name)
        return x is not None and through_views(x).name in self.launched_after

    @cached_property
    def account_before(self) -> Account:
        """The launches without any fusion; cached by the caller over several replays."""
        return self._account(self.replay.before)

    @cached_property
    def account_after(self) -> Account:
        """The launches of the final module: XLA's own, where it is at hand."""
        return self._account(self.replay.final, is_final=True)

    @cached_property
    def account_replayed(self) -> Account:
        """The launches of the replay's final module, with which other replays are compared."""
        if not self.replay.has_xla_final:
            return self.account_after
        return self._account(self.replay.replayed_final, is_final=True)

    @property
    def totals_before(self) -> Totals:
        return self.account_before.totals

    @property
    def totals_after(self) -> Totals:
        return self.account_after.totals

    def _account(self, module: Module, *, is_final: bool = False) -> Account:
        return self._counted or account_of(self.replay, self.costs, module, is_final=is_final)

    @cached_property
    def refused_consumers(self) -> dict[str, dict[str, None]]:
        """The refused consumers of each producer, all under their names at that moment."""
        found: dict[str, dict[str, None]] = {}
        for producer, consumer, _ in self._refused_pairs():
            found.setdefault(producer, {})[consumer] = None
        return found

    def _refused_pairs(self) -> Iterator[tuple[str, str, str | None]]:
        for e in self.replay.events:
            if e.event == "ineligible" and e.producer is not None and e.consumer is not None:
                yield e.producer, e.consumer, e.rule

    @cached_property
    def last_rule_between(self) -> dict[frozenset[str], str | None]:
        """The rule that refused two instructions of the result last; a view stands for its kernels."""
        found = {}
        for source, reader, rule in self._refused_pairs():
            producer, consumer = map(self.lineage.final, (source, reader))
            found[frozenset((producer, consumer))] = rule
            view = self.after.get(consumer)
            if view is not None and is_view(view):
                found |= {frozenset((producer, r.name)): rule for r in readers(view)}
        return found

    def rule(self, code: str | None) -> Rule:
        """The catalogue's entry for a code; one without texts for a code that has none."""
        return self._catalogue.get(code or "") or Rule(code or "", "", page={})

    @cached_property
    def _explained_before_fusion(self) -> dict[str, list[CreatedBy]]:
        found: dict[str, list[CreatedBy]] = {}
        for e in self.replay.input.events:
            about = e.added or tuple(n for n in (e.producer, e.consumer) if n is not None)
            created = CreatedBy(e.pass_name, self.rule(e.rule), e.reason or "", about, e.removed)
            for name in dict.fromkeys(about):
                found.setdefault(name, []).append(created)
        return found

    @cached_property
    def _by_work(self) -> list[dict[Strings, list[str]]]:
        """The names of the instructions of the replay's final module and of XLA's, by opcode and operands."""
        modules = self.replay.replayed_final, self.replay.final
        return [grouped((_work(i), i.name) for i in m.instructions()) for m in modules]

    @cached_property
    def _added_after_fusion(self) -> dict[str, list[Event]]:
        events = [e for e in self.replay.events_after_fusion if e.rule]
        return grouped((name, e) for e in events for name in dict.fromkeys(e.added))

    def created_after_fusion(self, added: Instruction) -> tuple[CreatedBy, ...]:
        """The rewrites after fusion that added an instruction; empty if the replay has another."""
        key, name = _work(added), added.name
        if self.replay.has_xla_final:
            own, final = (found.get(key, []) for found in self._by_work)
            name = own[0] if len(own) == len(final) == 1 else name
            if name not in own:
                return ()
        return tuple(
            CreatedBy(e.pass_name, self.rule(e.rule), e.reason or "", (added.name,), e.removed or key[1:])
            for e in self._added_after_fusion.get(name, ())
        )

    def created_by(self, name: str, other: str | None = None) -> tuple[CreatedBy, ...]:
        """The rewrites before fusion of what these hold, of both or else of either; each rule once."""
        if not self._explained_before_fusion:
            return ()
        of_one = self._explained_of(name)
        if other is None:
            found = list(of_one)
        else:
            of_other = self._explained_of(other)
            found = [m for m in of_other if m in of_one] or [m for m in (*of_one, *of_other) if m.removed]
        return tuple({m.rule.code: m for m in reversed(found)}.values())[::-1]

    def _explained_of(self, name: str) -> dict[CreatedBy, None]:
        found = self._explained.get(name)
        if found is None:
            members = dict.fromkeys((name, *self.lineage.members(self.lineage.final(name))))
            of_each = map(self._explained_before_fusion.get, members, repeat(()))
            found = self._explained[name] = dict.fromkeys(chain.from_iterable(of_each))
        return found

    def final_place(self, instruction: Instruction) -> Place:
        final_name = instruction.name
        name = self.replay.names_at_fusion.get(final_name)
        if name is not None:
            return replace(self.place(name), shape=str(instruction.shape), final=final_name)
        return place_of(instruction, self.replay.final)

    @cached_property
    def _launched_as(self) -> dict[str, Launched]:
        names = self.replay.names_at_fusion
        return {names.get(r.instruction.name, r.instruction.name): r for r in self.account_after.rows}

    def launched_as(self, name: str) -> Launched | None:
        return self._launched_as.get(name)

    def runs(self, name: str) -> int:
        """The number of launches; 1 for other instructions, or if unknown."""
        row = self.launched_as(name)
        return row.runs if row is not None else 1

    def kernels(self) -> tuple[FinalKernel, ...]:
        """The launches in the order of the final module."""
        names = self.replay.names_at_fusion
        return tuple(
            final_kernel(r, self.final_place(r.instruction), names.get(r.instruction.name))
            for r in self.account_after.rows
        )

    def instruction(self, name: str) -> tuple[Instruction, Module] | None:
        if name in self.before:
            return self.before[name], self.replay.before
        if name in self.after:
            return self.after[name], self.replay.after
        final = self.lineage.final(name)
        return (self.after[final], self.replay.after) if final in self.after else None

    def place(self, name: str) -> Place:
        """The location for a reader; only the name for an instruction created and removed by the replay."""
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = self._place(name)
        return place

    def _place(self, name: str) -> Place:
        found = self.instruction(name)
        if found is None:
            return Place(name)
        row = self.launched_as(name) if self.account_after.measured is not None else None
        measured = row.measured if row is not None else None
        return replace(place_of(*found), name=name, final=self.final_name_of(name), measured=measured)

    def final_name_of(self, name: str) -> str | None:
        """XLA's final name of an instruction of the module after fusion; None for others, or if unknown."""
        return self._final_names.get(name) if name in self.after else None

    @cached_property
    def _final_names(self) -> Mapping[str, str]:
        return self.replay.final_names if self._with_final_names else {}


def final_kernel(row: Launched, place: Place, at_fusion: str | None) -> FinalKernel:
    """The kernel of a row of an account; `at_fusion` is its name at the end of fusion."""
    spec = "kind runs per_iteration bytes_accessed=cost.bytes_accessed us is_floor is_open measured in_branch"
    return FinalKernel(place, at_fusion, **fields(row, spec))


def _work(x: Instruction) -> Strings:
    return x.opcode, *(o.name for o in x.operands)


def place_of(x: Instruction, module: Module) -> Place:
    """The location of an instruction of a final module."""
    bearer = source_bearer(x, module)
    caller = source_in_function(module.called_from(bearer))
    source = kernel_source(x, module, bearer)
    shown = source_in_function(source) or None
    place = Place(x.name, x.opcode, str(x.shape), shown, x.op_name, caller or None, x.name)
    return replace(place, installed=True) if source is not None and source.installed else place


def launched(module: Module) -> dict[str, Instruction]:
    return {i.name: i for c in launched_computations(module) for i in c if is_kernel(i)}


def edges_inside(facts: Facts) -> set[EdgeNames]:
    """Edges between operations of the input, bitcasts passed over, that one kernel holds both ends of."""
    refused = kernels_of(facts)
    edges = set()
    for consumer in facts.before.values():
        own = refused.get(consumer.name)
        if own is None or consumer.opcode in _FREE:
            continue
        for operand in map(without_bitcasts, consumer.operands):
            if operand.opcode not in _FREE and own & refused.get(operand.name, set()):
                edges.add((operand.name, consumer.name))
    return edges


def kernels_of(facts: Facts) -> dict[str, set[str]]:
    """The final kernels of each operation of the input."""
    out: dict[str, set[str]] = {}
    for kernel in facts.launched_after:
        for member in facts.lineage.members(kernel):
            out.setdefault(member, set()).add(kernel)
    return out
