"""`timeline`: every dump of a module compared with the one ahead of it."""

from collections import Counter
from collections.abc import Callable, Iterable

from hlofuse.analysis.kernels import kernels, outermost_loops
from hlofuse.diff import Changed, Kind, ModuleDiff, Moved, diff
from hlofuse.format.units import plural
from hlofuse.inputs.many import dump_text
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.grouping import grouped
from hlofuse.ir.text.reader import parse_module
from hlofuse.matching.structure import TRIVIAL
from hlofuse.reports.diff.model import summarize
from hlofuse.reports.timeline.model import (
    DumpSequence,
    PassDump,
    PassTimeline,
    Replacement,
    Size,
    Step,
    written_at,
)

Watch = Callable[[int, Module, ModuleDiff | None], None]
"""For every dump that shows something new: its number, its module, how it differs (None: the first)."""


def timeline(
    sequence: DumpSequence, progress: Callable[[int, int], None] | None = None, watch: Watch | None = None
) -> PassTimeline:
    """The changes of each pass.

    A dump that cannot be read is a step with a problem; the next is compared with the last readable one.
    """
    times, why_none = written_at(sequence)
    steps: list[Step] = []
    last: tuple[PassDump, str, Module] | None = None
    for k, dump in enumerate(sequence.dumps):
        seconds = (times[k] - times[k - 1]) / 1e9 if times and k else None
        since = last[0] if last is not None else None
        try:
            text = dump_text(dump.path)
            same = last is not None and text == last[1]
            module = last[2] if last is not None and same else read(dump, text)
        except HlofuseError as e:
            steps.append(Step(dump, since, problem=_problem(e, dump), seconds=seconds))
        else:
            try:
                found = diff(last[2], module) if last is not None and not same else None
                steps.append(_step(dump, module, last, found, seconds))
                if watch is not None and not same:
                    watch(k, module, found)
            except HlofuseError as e:  # a text that reads well and makes no sense
                problem = f"not comparable: {e!s}"
                steps.append(Step(dump, since, problem=problem, after=_size(module), seconds=seconds))
            last = (dump, text, module)
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


def _problem(error: HlofuseError, dump: PassDump) -> str:
    """The first line of a message, without the file's name: the step has it."""
    rest = str(error).split("\n")[0].removeprefix(str(dump.path))
    return f"line {rest[1:]}" if rest.startswith(":") else f"it {rest.strip()}"


def _step(
    dump: PassDump,
    module: Module,
    last: tuple[PassDump, str, Module] | None,
    found: ModuleDiff | None,
    seconds: float | None,
) -> Step:
    if last is None or found is None:
        size = _size(module)
        before = size if last is not None else None
        return Step(dump, last[0] if last else None, before=before, after=size, seconds=seconds)
    opcodes = _opcodes(last[2], module)
    return Step(
        dump,
        last[0],
        before=_size(last[2]),
        after=_size(module),
        opcodes=opcodes,
        rewrites=tuple(_rewrites(found)),
        fusions=_ranked(str(c.kind) for c in found.fusions),
        changes=_ranked(_kinds(found)),
        header=tuple(d.name for d in found.header),
        weight=_weight(found, opcodes),
        changed=bool(not found.same or opcodes),
        seconds=seconds,
    )


def _size(module: Module) -> Size:
    fusions = sum(i.opcode == "fusion" for i in module.instructions())
    return Size(
        sum(len(c) for c in module.computations), len(kernels(module)), fusions, outermost_loops(module)
    )


def _opcodes(before: Module, after: Module) -> tuple[tuple[str, int, int], ...]:
    before_opcodes, after_opcodes = (Counter(i.opcode for i in m.instructions()) for m in (before, after))
    changed = [
        (op, before_opcodes[op], after_opcodes[op])
        for op in sorted(before_opcodes | after_opcodes)
        if before_opcodes[op] != after_opcodes[op]
    ]
    return tuple(sorted(changed, key=lambda row: (row[0] in TRIVIAL, -abs(row[2] - row[1]))))


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


def _telling(instructions: Iterable[Instruction]) -> tuple[str, ...]:
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
