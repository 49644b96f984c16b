"""The dumps of each module in the order XLA wrote them, what their file times tell, and a timeline as data,
down to the changes of one step. Reports are made from this and from nothing else."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from hlofuse.account.measured import Measured
from hlofuse.analysis.kernels import Loop, outermost_loops
from hlofuse.analysis.launches import launches
from hlofuse.diff import Changed, FusionChange, Kind, ModuleDiff, Moved, diff
from hlofuse.format import plural, printable, ranges, shorten
from hlofuse.inputs.dump_directory import (
    DumpDirectory,
    DumpedModule,
    corpus_cases,
    corpus_file,
    is_corpus_case,
    require_case,
)
from hlofuse.inputs.identity import identify_file
from hlofuse.inputs.many import dump_text, picked_case
from hlofuse.ir import HlofuseError, Instruction, Module, PrintOptions, Record, Strings, grouped, parse_module
from hlofuse.ir.text.printer import print_instruction
from hlofuse.matching.structure import TRIVIAL
from hlofuse.reports.diff import phrases
from hlofuse.reports.diff.model import Cluster, summarize


class PassDump(Record):
    """One dump of a module and where in the compilation it was written."""

    path: Path
    number: int | None = None  # Counts a module's dumps; None for `before_optimizations` and others
    pipeline: str = ""
    after: str = ""  # The pass that had just run, `pipeline-start`, or `before_optimizations` and others
    text: str | None = None  # The module where hlofuse repeated the pass; `path` is then what it began with

    @property
    def name(self) -> str:
        """`0058 fusion.priority-fusion`, or `before_optimizations`."""
        where = f"{self.pipeline}.{self.after}" if self.pipeline else self.after
        return where if self.number is None else f"{self.number:04d} {where}"


class Replacement(Record):
    """Groups of instructions that were replaced, removed or added alike."""

    kind: str  # `replaced`, `removed` or `added`
    removed: Strings  # Opcodes of one group, the telling first
    added: Strings
    count: int
    example: str  # The first instruction of the first group


class Size(Record):
    instructions: int
    kernels: int
    fusions: int
    loops: tuple[Loop, ...] = ()  # The outermost that launch kernels


class Step(Record):
    """From one dump to the next that could be read."""

    dump: PassDump
    since: PassDump | None  # The dump it is compared with; None for the first
    problem: str | None = None  # Why the dump could not be read; then nothing else is known of it
    before: Size | None = None
    after: Size | None = None
    opcodes: tuple[tuple[str, int, int], ...] = ()
    """Opcodes whose number changed: before and after, the largest change first."""
    rewrites: tuple[Replacement, ...] = ()
    fusions: tuple[tuple[str, int], ...] = ()  # Changes of fusions (`new`, `merged`…), each with its number
    changes: tuple[tuple[str, int], ...] = ()
    """Other changes of instructions that stayed (`layout`, `type`, `operand`…), each with its number."""
    header: Strings = ()  # Attributes of the module that changed
    weight: int = 0  # Instructions touched: what steps are ranked by
    changed: bool = False
    seconds: float | None = None
    """From the time the dump ahead was written to the time this was; None where file times do not tell."""


@dataclass(frozen=True)
class PassTimeline:
    """One module's way through a compilation."""

    label: str
    steps: tuple[Step, ...] = field(repr=False)  # One for each dump, in order
    notes: Strings = ()  # Notes on missing, damaged or doubtful dumps
    times: str = ""  # Why there are no times; empty where there are
    measured: Measured | None = None

    @cached_property
    def changed(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if s.changed)

    @cached_property
    def largest(self) -> tuple[Step, ...]:
        """The steps that changed something, the largest change first."""
        return tuple(sorted(self.changed, key=lambda s: -s.weight))

    @cached_property
    def first(self) -> Size | None:
        return next((s.after for s in self.steps if s.after is not None), None)

    @cached_property
    def last(self) -> Size | None:
        return next((s.after for s in reversed(self.steps) if s.after is not None), None)

    @cached_property
    def seconds(self) -> float | None:
        """All the times together; None where there are none."""
        seconds = [s.seconds for s in self.steps if s.seconds is not None]
        return sum(seconds) if seconds else None


_CORPUS_STEP = re.compile(r"(\d+)-(?:(.+)\.)?([^.]+)\.hlo(?:\.gz)?")


class DumpSequence(Record):
    label: str
    dumps: tuple[PassDump, ...]
    notes: Strings = ()  # Gaps and doubles in the numbers
    final_copy: Path | None = None
    """Another copy of a corpus folder's dump after fusion; its time is the same where files kept it."""


def dump_sequences(
    path: str | os.PathLike[str], module: str | None = None, *, every: bool = True
) -> list[DumpSequence]:
    """The modules of a dump directory or of a capture; only the one called `module` if given. HlofuseError
    where there are none; without `every`, also where none of several is the main one."""
    folder = Path(path)
    if not folder.is_dir():
        what = "is a single dump" if folder.is_file() else "does not exist"
        raise HlofuseError(
            f'{printable(str(path))} {what}; expected the directory that XLA_FLAGS="--xla_dump_to=DIR'
            ' --xla_dump_hlo_pass_re=.*" writes'
        )
    if is_corpus_case(folder):
        require_case(folder, module)
        return [_of_case(folder)]
    if cases := corpus_cases(folder):
        return [
            _of_case(c) for c in (cases if every and not module else [picked_case(folder, cases, module)])
        ]
    directory = DumpDirectory(folder)
    chosen = directory.modules if every and module is None else [directory.pick(module)]
    return [_of_module(m) for m in chosen]


def _of_module(module: DumpedModule) -> DumpSequence:
    whole = sorted(module.whole.items())
    first = [PassDump(p, after=name) for name, p in whole if name == "before_optimizations"]
    last = [PassDump(p, after=name) for name, p in whole if name != "before_optimizations"]
    between = [PassDump(f.path, f.number, f.pipeline or "", f.after or "") for f in module.between]
    notes = list(_odd_numbers([f.number for f in module.between if f.number is not None]))
    if not between:
        notes.append("no dumps between passes; add --xla_dump_hlo_pass_re=.* to XLA_FLAGS to see each pass")
    return DumpSequence(module.label, (*first, *between, *last), tuple(notes))


def _of_case(folder: Path) -> DumpSequence:
    """`before.hlo`, `NN-PIPELINE.PASS.hlo`…, `after.hlo` of a corpus, and XLA's final module, if there."""
    before = corpus_file(folder, "before")
    assert before is not None
    steps = []
    for path in sorted(folder.iterdir()):
        m = _CORPUS_STEP.fullmatch(path.name)
        if m is not None:
            steps.append(PassDump(path, int(m[1]), m[2] or "", m[3]))
    after = corpus_file(folder, "after")
    last = [PassDump(after, after="after")] if after is not None and not steps else []
    final = corpus_file(folder, "after_optimizations")
    if final is not None:
        last.append(PassDump(final, after="after_optimizations"))
    frames = (PassDump(before, after="before"), *steps, *last)
    return DumpSequence(folder.resolve().name, frames, final_copy=after or before)


def _odd_numbers(numbers: Sequence[int]) -> list[str]:
    notes = []
    present = set(numbers)
    if numbers:
        missing = [n for n in range(max(numbers)) if n not in present]
        if missing:
            notes.append(
                f"{plural(len(missing), 'dump is', 'dumps are')} missing ({_listed(missing)}): the next dump"
                " includes what their passes did"
            )
    double = sorted({n for n in numbers if numbers.count(n) > 1}) if len(present) < len(numbers) else []
    if double:
        notes.append(
            f"several dumps have the number {_listed(double)}: two compilations wrote into one directory, and"
            " their passes may be mixed"
        )
    return notes


def _listed(numbers: list[int]) -> str:
    text = ranges(numbers)
    return text if len(text) < 80 else f"{ranges(numbers[:8])}, …"


def written_at(sequence: DumpSequence) -> tuple[list[int], str]:
    """When each dump was written, in ns; none, and why, where file times are not those of XLA's writing."""
    try:
        times = [os.stat(f.path).st_mtime_ns for f in sequence.dumps]
        is_unchanged = sequence.final_copy is None or os.stat(sequence.final_copy).st_mtime_ns in times
    except OSError:
        return [], "a dump was removed while it was read"
    if not is_unchanged or sequence.final_copy in {f.path for f in sequence.dumps}:
        return [], "file times are not those of XLA's dumps (copied files)"
    if any(a > b for a, b in pairwise(times)):
        return [], "file times are not in pass order (copied or unpacked files)"
    if all(t % 1_000_000_000 == 0 for t in times):
        return [], "file times are whole seconds (copied or unpacked files)"
    return times, ""


_Last: TypeAlias = tuple[PassDump, str, Module, Size]  # The last dump that could be read
Watch = Callable[[int, ModuleDiff], None]
"""For every dump that shows something new, but the first: its number, and how it differs."""


def timeline(
    sequence: DumpSequence, progress: Callable[[int, int], None] | None = None, watch: Watch | None = None
) -> PassTimeline:
    """The changes of each pass since the last readable dump; an unreadable one is a step with a problem."""
    times, why_none = written_at(sequence)
    steps, backend = [], ""
    last = None
    for k, dump in enumerate(sequence.dumps):
        seconds = (times[k] - times[k - 1]) / 1e9 if times and k else None
        since = last[0] if last is not None else None
        try:
            text = dump_text(dump.path)
            same = last is not None and text == last[1]
            module = last[2] if last is not None and same else read(dump, text)
        except HlofuseError as e:
            rest = e.first_line.removeprefix(str(dump.path))  # the step has the file's name
            problem = f"line {rest[1:]}" if rest.startswith(":") else f"it {rest.strip()}"
            steps.append(Step(dump, since, problem=problem, seconds=seconds))
        else:
            backend = backend if last is not None else identify_file(module).backend.value or ""
            size = last[3] if last is not None and same else _size(module, backend)
            try:
                found = diff(last[2], module) if last is not None and not same else None
                steps.append(_step(dump, module, size, last, found, seconds))
                if watch is not None and found is not None:
                    watch(k, found)
            except HlofuseError as e:  # a text that reads well and makes no sense
                problem = f"not comparable: {e!s}"
                steps.append(Step(dump, since, problem=problem, after=size, seconds=seconds))
            last = (dump, text, module, size)
        if progress is not None:
            progress(k + 1, len(sequence.dumps))
    return PassTimeline(sequence.label, tuple(steps), (*sequence.notes, *_damage(steps)), why_none)


def read(dump: PassDump, text: str | None = None) -> Module:
    """The module of a dump. HlofuseError, or its HloParseError, for what is damaged."""
    module = parse_module(dump_text(dump.path) if text is None else text, str(dump.path), strict=False)
    module.filename = str(dump.path)
    return module


def _damage(steps: Iterable[Step]) -> Iterable[str]:
    damaged = [s for s in steps if s.problem is not None]
    if damaged:
        count = plural(len(damaged), "dump")
        yield f"{count} cannot be read, truncated or still being written: {damaged[0].dump.path.name}" + (
            " and others" if len(damaged) > 1 else ""
        )


def _step(
    dump: PassDump,
    module: Module,
    size: Size,
    last: _Last | None,
    found: ModuleDiff | None,
    seconds: float | None,
) -> Step:
    if last is None or found is None:
        before = size if last is not None else None
        return Step(dump, last[0] if last else None, before=before, after=size, seconds=seconds)
    old, new = (Counter(i.opcode for i in m.instructions()) for m in (last[2], module))
    changed = ((op, old[op], new[op]) for op in sorted(old | new) if old[op] != new[op])
    opcodes = tuple(sorted(changed, key=lambda row: (row[0] in TRIVIAL, -abs(row[2] - row[1]))))
    return Step(
        dump,
        last[0],
        before=last[3],
        after=size,
        opcodes=opcodes,
        rewrites=tuple(_rewrites(found)),
        fusions=_ranked(str(c.kind) for c in found.fusions),
        changes=_ranked(_kinds(found)),
        header=tuple(d.name for d in found.header),
        weight=_weight(found, opcodes),
        changed=bool(not found.same or opcodes),
        seconds=seconds,
    )


def _size(module: Module, backend: str) -> Size:
    fusions = sum(i.is_fusion for i in module.instructions())
    launched = len(launches(module, backend))
    return Size(module.instruction_count, launched, fusions, outermost_loops(module))


def _rewrites(found: ModuleDiff) -> Iterable[Replacement]:
    for group in summarize(found).clusters:
        head = group[0]
        if head.removed or head.added:
            yield Replacement(
                head.kind,
                _telling(head.removed),
                _telling(head.added),
                len(group),
                (head.removed or head.added)[0].name,
            )
    changed = (e for e in found.causes if isinstance(e, Changed))
    details = ((d, e.before[0].instruction.name) for e in changed for d in e.details)
    for d, names in grouped(item for item in details if item[0].kind is Kind.OPCODE).items():
        yield Replacement("replaced", (str(d.before),), (str(d.after),), len(names), names[0])


def _telling(instructions: Iterable[Instruction]) -> Strings:
    return tuple(sorted((i.opcode for i in instructions), key=lambda op: op in TRIVIAL))


def _kinds(found: ModuleDiff) -> Iterable[str]:
    for edit in found.causes:
        if isinstance(edit, Changed):
            yield from dict.fromkeys(str(d.kind) for d in edit.details if d.kind is not Kind.OPCODE)
        elif isinstance(edit, Moved):
            yield "computation"


def _ranked(text: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(text).most_common())


def _weight(found: ModuleDiff, opcodes: Iterable[tuple[str, int, int]]) -> int:
    touched = sum(len(f.joined) + len(f.left) + max(len(f.before), len(f.after)) for f in found.fusions)
    return max(touched + len(found.causes), sum(abs(a - b) for _, b, a in opcodes))


MOST_GROUPS = 60
MOST_LINES = 16
LONGEST_LINE = 240
_LINE = PrintOptions(
    percent=False,
    signatures=False,
    metadata=False,
    backend_config=False,
    large_constants=False,
    operand_numbers=0,
)


class Group(Record):
    """Changes that are alike in everything but names."""

    kind: str
    """`replaced`, `removed`, `added`, `changed`, `moved`, or what became of fusions: `new`, `merged`…"""
    text: str
    count: int
    notes: Strings = ()
    before: Strings = ()  # Lines of the first of them that went, or as they were
    after: Strings = ()  # Lines that came, or as they are
    hidden: int = 0  # Lines of it that are left out


class StepDetails(Record):
    groups: tuple[Group, ...] = ()
    hidden: int = 0


def step_details(found: ModuleDiff) -> StepDetails:
    """The groups of a difference: fusions first, then what was rewritten, then what changed in place."""
    groups = list(_groups(found))
    return StepDetails(tuple(groups[:MOST_GROUPS]), max(0, len(groups) - MOST_GROUPS))


def _groups(found: ModuleDiff) -> Iterator[Group]:
    summary = summarize(found)
    for detail in found.header:
        yield Group("header", phrases.detail(detail), 1)
    yield from (_fusion(group, found) for group in summary.fusions)
    yield from (_cluster(group, found) for group in summary.clusters)
    yield from (_changed(group, found) for group in summary.changes)
    for (source, destination), members in summary.moved.items():
        text = f"from {source} to {destination}: {phrases.opcodes(members)}"
        before, hidden = _lines(members)
        yield Group("moved", text, len(members), before=before, hidden=hidden)


def _fusion(group: Sequence[FusionChange], found: ModuleDiff) -> Group:
    change = group[0]
    notes = *phrases.inside(change), phrases.sources(found.after.module, change.members)
    sides = (*change.before, *change.joined), (*change.after, *change.left)
    return _group(str(change.kind), phrases.what_happened(change), group, notes, *sides)


def _cluster(group: tuple[Cluster, ...], found: ModuleDiff) -> Group:
    head, text = group[0], phrases.what_is_in(group[0])
    module = (found.before if head.removed else found.after).module
    notes = head.note, phrases.sources(module, head.removed or head.added)
    return _group(head.kind, text, group, notes, head.removed, head.added)


def _changed(group: Sequence[Changed], found: ModuleDiff) -> Group:
    first = group[0]
    members = [c.after[0].instruction for c in group]
    notes = *map(phrases.detail, first.details), phrases.sources(found.after.module, members)
    sides = ([p.instruction for p in side] for side in (first.before, first.after))
    return _group("changed", phrases.opcodes(members), group, notes, *sides)


def _group(
    kind: str,
    text: str,
    group: Sized,
    notes: Iterable[str | None],
    before: Iterable[Instruction],
    after: Iterable[Instruction],
) -> Group:
    old, fewer = _lines(before)
    new, less = _lines(after)
    return Group(kind, text, len(group), tuple(filter(None, notes)), old, new, fewer + less)


def _lines(instructions: Iterable[Instruction]) -> tuple[Strings, int]:
    every = list(instructions)
    lines = tuple(shorten(print_instruction(i, _LINE), LONGEST_LINE) for i in every[:MOST_LINES])
    return lines, max(0, len(every) - MOST_LINES)
