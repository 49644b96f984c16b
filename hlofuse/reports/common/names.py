"""Any name that a person comes with, and what it means in a replay. A name is one of the fusion input, of the
module before optimizations, of a fusion that the passes create, XLA's final one (what a profiler shows), a
source line `model.py:35`, a part of an `op_name`, in whole components, or a function of the program. Names of
instructions go before lines, lines before parts of an `op_name`, and functions last."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from hlofuse.account.functions import path_of
from hlofuse.analysis.kernels import (
    CONTROL_FLOW,
    kernels,
    launched_computations,
    source_bearer,
    source_line,
)
from hlofuse.compilation import Compilation
from hlofuse.format import listing, printable
from hlofuse.format.paths import has_part, source_text
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir import HlofuseError, Instruction, Module, Record, Strings, numbered, reach, replace
from hlofuse.matching.pairs import match
from hlofuse.pipelines.targets import Stage
from hlofuse.trace.provenance import Fate, Provenance
from .facts import Facts


def matching(module: Module, text: str) -> list[Instruction]:
    """The instructions of one module that a name, a source line or a part of an `op_name` means."""
    found = module.find(plain_name(text))
    return [found] if found is not None else list(described_by(module.instructions(), module, text))


def launched_in(module: Module, text: str) -> set[str]:
    """The kernels of one module that hold what a name means. HlofuseError without any."""
    found = matching(module, text)
    if not found:
        raise HlofuseError(not_found(module, text, (i.name for i in module.instructions())))
    names = {k.name for k in kernels_holding(found, module)}
    if not names:
        raise HlofuseError(f"{printable(module.name)} has no kernel for {printable(text.strip())}")
    return names


def kernels_holding(found: Iterable[Instruction], module: Module) -> set[Instruction]:
    """The final kernels that hold instructions, in fusions or calls; else those that their loops run."""
    found, launched = list(found), set(kernels(module))

    def around(i: Instruction) -> Iterable[Instruction]:
        inside = i.computation if i not in launched else None
        return filter(None, (inside.fusion, *inside.callers)) if inside is not None else ()

    holders = launched & {*reach(found, around)}
    run = {c for i in found if i.opcode in CONTROL_FLOW for c in launched_computations(i)}
    return holders or {k for k in launched if k.computation in run}


def not_found(module: Module, text: str, names: Iterable[str]) -> str:
    """That nothing has this name, and which of `names` or of the source lines it resembles."""
    plain, owner = plain_name(text), printable(module.name)
    if source_line(plain) is not None:
        places = (s for i in module.instructions() for s in (module.source_of(i), module.called_from(i)))
        meant = did_you_mean(plain, sorted({source_text(s) for s in places if s is not None}))
        return f"{owner} has no instruction {printable(plain)} and no operation from that source line{meant}"
    there = sorted({*names, *(name for i in module.instructions() for _, name in path_of(i, module))})
    numbered = [name for name in there if name.startswith(f"{plain}.")]
    meant = f"; there is {listing(numbered, 3)}" if numbered else did_you_mean(plain, there)
    return f"{owner} has no instruction, op_name or function {printable(plain)}{meant}"


def described_by(instructions: Iterable[Instruction], module: Module, text: str) -> Iterator[Instruction]:
    """The instructions from a source line, or with this part of an `op_name`, else of this function."""
    wanted = text.strip()
    there = [*instructions]
    line = source_line(wanted)
    if line is not None:
        yield from (i for i in there if line.is_of(i, module))
        return
    names = {n for i in there if (n := i.op_name)}  # as many operations share a name
    meant = {n for n in names if has_part(n, wanted)}
    if meant:
        yield from (i for i in there if i.op_name in meant)
    else:
        yield from (i for i in there if any(name == wanted for _, name in path_of(i, module)))


def plain_name(text: str) -> str:
    """A name as instructions have it: without `%` and blanks around it."""
    return text.strip().lstrip("%")


def holder_of(name: str, facts: Facts) -> Instruction | None:
    """What `name` is a part of, where it is not an instruction the passes look at. That is an operation
    inside a fusion (of a library, or copied into a fusion) or of a function that a reduce or sort applies."""
    instruction, module = facts.before.get(name), facts.replay.before
    if instruction is None:
        if name in facts.after or name in facts.lineage.created_names():
            return None
        module = facts.replay.after
        instruction = next((i for i in module.instructions() if i.name == name), None)
    if "launched" not in module.findings:
        module.findings["launched"] = frozenset(launched_computations(module))
    executed = module.findings["launched"]
    holder = instruction
    seen = set()
    while holder is not None and holder.computation not in executed and holder not in seen:
        seen.add(holder)
        kernel = holder.computation
        holder = (kernel.fusion or kernel.first_caller) if kernel is not None else None
    return holder if holder is not instruction and holder not in seen else None


def runs_in(name: str, facts: Facts) -> list[str]:
    """The kernels after fusion that hold an instruction or a fusion in between."""
    launched = facts.launched_after
    found = [k for k in facts.lineage.kernels_of(name) if k in launched]
    if name in launched:
        found.append(name)
    if not found and (last := facts.lineage.last_kernel(name)) in launched:
        found = [last]
    return list(dict.fromkeys(found))


class Named(Record):
    name: str  # In the replay: that of the fusion input, of the result or of a fusion in between
    operations: Strings = ()  # For a kernel found by a line or an `op_name`: the input's matched operations
    fate: Fate | None = None
    """Its rewrites before fusion, where the name is of the module before optimizations."""
    is_added: bool = False  # A pass after fusion added it


def renamed_kernels(replay: Compilation) -> dict[str, str]:
    """By their names at the end of fusion the final ones of kernels that have another."""
    names = ((k.name, replay.names_at_fusion.get(k.name, k.name)) for k in kernels(replay.final))
    return {at_fusion: final for final, at_fusion in names if at_fusion != final}


class Names:
    def __init__(self, facts: Facts, unoptimized: Callable[[], Module | None] | None = None) -> None:
        """`unoptimized` loads the module before optimizations where the replay did not begin there."""
        self.facts = facts
        self._load = unoptimized
        self._created = facts.lineage.created_names()

    @cached_property
    def unoptimized(self) -> Module | None:
        """The module before optimizations; None where it is not at hand."""
        given = self.facts.replay.input.unoptimized
        return given if given is not None or self._load is None else self._load()

    def find(self, text: str) -> list[Named]:
        """Everything that the name means, kernels first. HlofuseError with suggestions without any."""
        plain = plain_name(text)
        found = self._exact(plain) or self._described(text) or self._before_optimizations(text)
        if not found and self.facts.replay.final.find(plain) is not None:
            found = [Named(plain, is_added=True)]
        if not found:
            raise HlofuseError(self._not_found(plain))
        launched = self.facts.launched_after
        return sorted(found, key=lambda n: n.name not in launched)

    def added(self, text: str) -> list[Named]:
        """The copies for a source line that passes after fusion add: those without a line of their own."""
        line, facts = source_line(text.strip()), self.facts
        final, at_fusion = facts.account_after.module, facts.replay.names_at_fusion
        rows = facts.account_after.rows if line is not None else ()
        copies = (r.instruction for r in rows if r.instruction.opcode == "copy")
        return [
            Named(x.name, is_added=True)
            for x in copies
            if x.name not in at_fusion and line is not None and line.is_of(source_bearer(x, final), final)
        ]

    def launched(self, text: str) -> dict[str, Strings]:
        """All that is launched of what the name means, by names at fusion, in the final module's order. With
        each the operations of the input that were meant, none for itself. HlofuseError if none runs."""
        facts, plain = self.facts, plain_name(text)
        rows = [k.place for k in facts.kernels()]
        meant: dict[str, list[str]] = {p.name: [] for p in rows if plain in (p.final, p.name)}
        try:
            found = self.find(text)
        except HlofuseError:
            if not meant:
                raise
            found = []
        for named in found:
            holder = holder_of(named.name, facts)
            for kernel in runs_in(holder.name if holder is not None else named.name, facts):
                operations = named.operations or (named.name,)
                meant.setdefault(kernel, []).extend(o for o in operations if o != kernel)
        final, names = self.facts.account_after.module, self.facts.replay.names_at_fusion
        inside = [i for i in final.instructions() if names.get(i.name) in meant]
        holders = kernels_holding([*inside, *matching(final, text)], final)
        is_found = any(p.name in meant for p in rows)
        for row, place in zip(facts.account_after.rows, rows, strict=True):
            if row.instruction in holders and not (is_found and row.instruction.opcode not in CONTROL_FLOW):
                meant.setdefault(place.name, [])
        if not any(p.name in meant for p in rows):
            raise HlofuseError(
                f"{printable(facts.replay.before.name)} has no kernel for {printable(plain)}; hlofuse why"
                " explains what happened to it"
            )
        return {p.name: tuple(dict.fromkeys(meant[p.name])) for p in rows if p.name in meant}

    def _exact(self, plain: str) -> list[Named]:
        facts, found = self.facts, []
        if plain not in facts.before:
            module = facts.replay.input.unoptimized
            if module is not None and module.find(plain) is not None:  # it no longer exists at fusion
                found = self._with_fates([plain], module)
        own = plain in facts.before or plain in facts.after or plain in self._created
        name = facts.replay.names_at_fusion.get(plain)
        if name is not None and name != plain and (name in facts.after or not (own or found)):
            found.insert(0, Named(name))
        if not found or own:
            # Also a clone inside a fusion that kept no original's name.
            is_there = own or facts.replay.after.find(plain) is not None
            if is_there and not any(n.fate is not None for n in found):
                found.append(Named(plain))
        return found

    def _with_fates(self, names: Iterable[str], module: Module) -> list[Named]:
        provenance, in_input = self._to_fusion(module)
        found: dict[str, Named] = {}
        for name in names:
            fate = provenance.fate(name)
            if fate is None:
                continue
            survivor = in_input.get(fate.survivor, fate.survivor) if fate.survivor is not None else None
            if survivor not in self.facts.before:
                survivor = None  # XLA made something else of it than the passes here
            changes = fate.changes
            if changes and survivor is not None and survivor != fate.survivor:
                changes = (*changes[:-1], replace(changes[-1], by=survivor))
            meaning = Named(survivor or name, fate=Fate(changes, survivor))
            found.setdefault(meaning.name, meaning)
        alive = [n for n in found.values() if n.fate is not None and n.fate.survivor is not None]
        return alive or list(found.values())

    def _to_fusion(self, module: Module) -> tuple[Provenance, dict[str, str]]:
        """The provenance of the passes before fusion, and the input's names for their results."""
        replay = self.facts.replay
        lowering = Compilation.of(module, Stage.BEFORE, replay.config, replay.input.lowering)
        span = lowering.span(Stage.INPUT)
        assert span.provenance is not None
        if module is replay.input.unoptimized:
            return span.provenance, {}
        return span.provenance, match(replay.before, span.module).names

    def _described(self, text: str) -> list[Named]:
        facts = self.facts
        kernels: dict[str, list[str]] = {}
        others = []
        for i in described_by(facts.before.values(), facts.replay.before, text):
            runs_in = [k for k in facts.lineage.kernels_of(i.name) if k in facts.launched_after]
            for kernel in runs_in:
                kernels.setdefault(kernel, []).append(i.name)
            if not runs_in and i.computation is not None and i.computation.fusion is None:
                others.append(Named(i.name, (i.name,)))
        found = [Named(kernel, tuple(members)) for kernel, members in kernels.items()]
        if not found:  # made by a pass, with a place of its own
            found = [
                Named(i.name, (i.name,))
                for i in described_by(facts.launched_after.values(), facts.replay.after, text)
            ]
        position = numbered(facts.launched_after)
        return sorted(found, key=lambda n: position[n.name]) or others

    def _before_optimizations(self, text: str) -> list[Named]:
        """The instructions for a name, line or `op_name` found only in the module before optimizations."""
        module = self.unoptimized
        if module is None:
            return []
        names = [i.name for i in matching(module, text)]
        return self._with_fates(names, module) if names else []

    def _not_found(self, plain: str) -> str:
        facts = self.facts
        final = (x.name for x in facts.replay.final.instructions())
        there = {*facts.before, *facts.after, *self._created, *final}
        if self.unoptimized is not None:
            there.update(i.name for i in self.unoptimized.instructions())
        return not_found(facts.replay.before, plain, there)
