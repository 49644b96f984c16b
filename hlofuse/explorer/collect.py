"""From a replay to what the page shows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TypeAlias

from hlofuse.account import Account, KernelTime, Observed
from hlofuse.account.floor import floor_us
from hlofuse.account.functions import path_of
from hlofuse.analysis.kernels import is_kernel, launched_computations, source_bearer
from hlofuse.compilation import Compilation
from hlofuse.format import bytes_text, printable
from hlofuse.format.paths import portable, scopes_of, shown_file, source_in_function
from hlofuse.ir import HlofuseError, Instruction, Module, PrintOptions, Record, callees, values
from hlofuse.ir.grouping import grouped, numbered, reach
from hlofuse.ir.names import own_name
from hlofuse.ir.text.printer import print_computation, print_instruction
from hlofuse.matching.kernels import contents
from hlofuse.matching.pairs import match
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.targets import Stage
from hlofuse.plot.figure import plot_memory
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.functions import functions_json
from hlofuse.reports.common.head import identity_line, missing_lines, not_repeated_in
from hlofuse.reports.common.lineage import through_views
from hlofuse.reports.common.names import renamed_kernels
from hlofuse.reports.common.xla_result import compare_with_result
from hlofuse.reports.explain.explain import explain, record_check
from hlofuse.reports.explain.model import Explanation, HotKernel
from hlofuse.reports.explain.phrases import notes
from hlofuse.reports.memory.model import memory_json, memory_use
from hlofuse.reports.verdict.model import Verdict
from hlofuse.reports.verdict.phrases import kernel_cells
from hlofuse.reports.verdict.text import verdict_lines
from hlofuse.reports.verdict.verdict import verdict
from hlofuse.rules.catalogue import catalogue, family_of
from hlofuse.rules.pages import sections
from hlofuse.trace import Event
from .model import (
    NOWHERE,
    Change,
    Decision,
    Kernel,
    KernelPair,
    Line,
    Op,
    Operation,
    Page,
    Passes,
    RefusedEdge,
    Region,
    Run,
    SourceFile,
    Value,
)

AUTO = "auto"
_MOST_BYTES, _MOST_BYTES_OF_ALL = 300_000, 1_500_000  # bytes of text
_STANDS_FOR = values("CS TS")
_REMOVED = values("DC")


class Boxes:
    """The boxes as they stand after the events followed so far."""

    def __init__(self, names: Sequence[str], launched: Sequence[bool], constants: set[int]) -> None:
        self.names = list(names)
        self.count = len(names)
        self.kernels = sum(launched)
        self._launched = list(launched)
        self._constants = constants
        self._alive = numbered(names)
        self._name_of = dict(enumerate(names))
        self._ever = dict(self._alive)
        self._members: dict[int, dict[int, None]] = {n: {n: None} for n in range(len(names))}
        self._into: dict[int, int] = {}

    def find(self, name: str | None) -> int:
        """The box of that name, removed ones included; -1 for an unknown name."""
        return self._ever.get(name or "", -1)

    def follow(self, event: Event) -> tuple[Op, ...]:
        changes = {"fuse": self._fuse, "rewrite": self._rewrite}.get(event.event)
        return tuple(changes(event)) if changes is not None else ()

    def members(self, box: int) -> tuple[int, ...]:
        """The operations a box holds, or held when it went."""
        return tuple(self._members.get(box, ()))

    def ends_as(self, box: int) -> int:
        """The box that holds its contents at the last step."""
        path = []
        while box in self._into:
            path.append(box)
            box = self._into[box]
        for step in path:
            self._into[step] = box
        return box

    def current(self) -> dict[str, int]:
        return dict(self._alive)

    def _fuse(self, event: Event) -> list[Op]:
        producer = self._alive.get(event.producer or "")
        # Horizontal fusion names the first of a row as everyone's consumer, which by then is the fusion.
        consumer = self._alive.get(event.consumer or "", self._alive.get(event.fusion or ""))
        if producer is None or consumer is None:
            return []
        ops = [] if producer == consumer else [self._join(producer, consumer, copy=event.duplicated)]
        self._launch(consumer, True)
        if event.fusion and event.fusion != self._name_of[consumer]:
            ops.append(self._rename(consumer, event.fusion))
        return ops

    def _rewrite(self, event: Event) -> list[Op]:
        family = family_of(event.rule or "")
        removed = [self._alive[n] for n in event.removed if n in self._alive]
        if family in _REMOVED or not event.added:
            return [self._end(b, Change.REMOVE) for b in removed if self._name_of[b] not in event.added]
        target = event.added[-1]
        target_box = self._alive.get(target)
        if family in _STANDS_FOR:
            ends = [] if target_box is None else [(b, target_box) for b in removed if b != target_box]
            return [self._end(b, Change.REPLACE, by) for b, by in ends]
        if not removed:
            return []
        ops = [self._appear(name) for name in event.added[:-1] if name not in self._alive]
        into = target_box if target_box is not None else removed[-1]
        ops.extend(self._join(box, into, copy=box in self._constants) for box in removed if box != into)
        self._launch(into, True)
        if target_box is None:
            ops.append(self._rename(into, target))
        return ops

    def _join(self, box: int, into: int, *, copy: bool) -> Op:
        self._members[into] |= self._members[box]
        if copy:
            return Change.COPY, box, into
        self._drop_box(box)
        self._into[box] = into
        return Change.MOVE, box, into

    def _end(self, box: int, change: Change, by: int = 0) -> Op:
        self._drop_box(box)
        return change, box, by

    def _rename(self, box: int, name: str) -> Op:
        if self._alive.get(self._name_of[box]) == box:
            del self._alive[self._name_of[box]]
        return Change.RENAME, box, self._number_of(box, name)

    def _appear(self, name: str) -> Op:
        box = self.count
        self.count += 1
        self._members[box] = {}
        self._launched.append(True)
        self.kernels += 1
        return Change.APPEAR, box, self._number_of(box, name)

    def _number_of(self, box: int, name: str) -> int:
        self._alive[name] = self._ever[name] = box
        self._name_of[box] = name
        self.names.append(name)
        return len(self.names) - 1

    def _drop_box(self, box: int) -> None:
        name = self._name_of[box]
        if self._alive.get(name) == box:
            del self._alive[name]
        self._launch(box, False)

    def _launch(self, box: int, launched: bool) -> None:
        self.kernels += launched - self._launched[box]
        self._launched[box] = launched


MOST_OPERATIONS = 64  # Operations of a region, unless one kernel alone holds more
ENOUGH_OPERATIONS = 32  # From here on a region ends with its scope
FEW_OPERATIONS = 12  # So few operations are no region of their own, whatever comes next


def regions_of(boxes: Boxes, operations: Sequence[Operation]) -> tuple[Region, ...]:
    """Every operation in its final kernels, the kernels in the order in which they run, nearly."""
    members: dict[int, dict[int, None]] = {}
    for box in range(boxes.count):
        members.setdefault(boxes.ends_as(box), {}).update(dict.fromkeys(boxes.members(box)))
    order = _order(members, boxes, operations)
    kernels = [(box, tuple(sorted(members[box]))) for box in sorted(members, key=lambda b: (order[b], b))]
    by_computation = grouped(
        (operations[inside[-1]].computation if inside else 0, (box, inside)) for box, inside in kernels
    )
    return tuple(
        Region(computation, tuple(part))
        for computation, own in sorted(by_computation.items())
        for part in _parts(own, operations)
    )


def _order(
    members: dict[int, dict[int, None]],
    boxes: Boxes,
    operations: Sequence[Operation],
) -> dict[int, int]:
    """A kernel stands at its last operation, an input that is none where it is first read."""
    order = {box: max(members_of, default=box) for box, members_of in members.items()}
    sources = {
        box
        for box, members_of in members.items()
        if members_of and not any(operations[n].operands for n in members_of)
    }
    first: dict[int, int] = {}
    for n, operation in enumerate(operations):
        reader = boxes.ends_as(n)
        if reader not in sources:
            for operand in operation.operands:
                source = boxes.ends_as(operand)
                if source in sources:
                    first[source] = min(first.get(source, order[reader]), order[reader])
    return order | first


_Kernel: TypeAlias = tuple[int, tuple[int, ...]]  # A box, and the operations inside


def _parts(kernels: Iterable[_Kernel], operations: Sequence[Operation]) -> Iterable[list[_Kernel]]:
    part: list[_Kernel] = []
    size, scope = 0, ""
    for box, inside in kernels:
        op_name = operations[inside[-1]].instruction.op_name if inside else None
        here = "/".join((op_name or "").split("/")[:-1][:4]) if inside else scope
        leaves = bool(here) and here != scope
        if (size > FEW_OPERATIONS and size + len(inside) > MOST_OPERATIONS) or (
            size >= ENOUGH_OPERATIONS and leaves
        ):
            yield part
            part, size = [], 0
        part.append((box, inside))
        size += max(1, len(inside))
        scope = here or scope
    if part:
        yield part


_SLOWEST = 5


class Fused(Record):
    """A module that is fused already: the page has its kernels, and no decision."""

    replay: Compilation  # Without passes
    account: Account
    verdict: Verdict
    time_of: Callable[[Instruction], KernelTime | None]


def page_of(
    replays: Mapping[str, Observed | Fused],
    passes: Passes | None = None,
    unoptimized: Callable[[Compilation], Module | None] = lambda _: None,
    source: str | None = None,
) -> Page:
    """One run, or two to be compared: what distinguishes each from the other, and the replay. `passes` is
    what every pass of the compilation did, where its dumps are at hand; `unoptimized` loads a replay's module
    before optimizations; `source` tells where the program is, for the page (`SourceFiles`)."""
    files = SourceFiles(source)
    runs = tuple(
        _Collector(label, shown, partial(unoptimized, shown.replay), files).run()
        for label, shown in replays.items()
    )
    quoted = {d.event.rule or "" for run in runs for d in run.decisions} | {
        h.refusal.rule or "" for run in runs for h in run.refused_edges
    }
    entries = catalogue()
    rules = tuple(
        (code, entries[code].title, tuple(sections(entries[code])))
        for code in sorted(quoted)
        if code in entries
    )
    first, *others = (shown.replay for shown in replays.values())
    pairs = kernel_pairs(first, others[0], tuple(r.kernels for r in runs)) if others else ()
    embedded = files.embedded(first.before.filename)
    return Page(printable(first.before.name), runs, rules, passes, embedded, tuple(pairs))


class SourceFiles:
    """The files that metadata names, by number. Their text is read only on request."""

    def __init__(self, folder: str | None = None) -> None:
        """`folder` has the files (`auto`: the working directory; None: nothing); HlofuseError if missing."""
        if folder is not None and folder != AUTO and not Path(folder).is_dir():
            raise HlofuseError(f"--source: {printable(folder)} is no folder")
        self._root = None if folder is None else Path.cwd() if folder == AUTO else Path(folder)
        self._numbers: dict[str, int] = {}

    def line(self, instruction: Instruction, module: Module) -> Line:
        """The user's own line of an instruction; that of an installed package where there is no other."""
        place = module.called_from(instruction) or module.source_of(instruction)
        if place is None or not place.file:
            return NOWHERE
        return self._numbers.setdefault(place.file, len(self._numbers)), place.line

    def embedded(self, dump: str | None) -> tuple[SourceFile, ...]:
        """Every file, with its text where it was found. `dump` is the file with the module."""
        found, left = [], _MOST_BYTES_OF_ALL
        written = Path(dump).stat().st_mtime if dump is not None and Path(dump).is_file() else inf
        for file in self._numbers:
            text, note = self._read(file, written, left) if self._root is not None else ("", "")
            left -= len(text)
            found.append(SourceFile(printable(shown_file(file)), text, note))
        return tuple(found)

    def _read(self, file: str, written: float, left: int) -> tuple[str, str]:
        """The text, or why there is none. A dump may name any file, so only Python files are read."""
        assert self._root is not None
        candidates = (self._root / portable(file, self._root), Path(file))
        try:
            path = next((p for p in candidates if p.suffix == ".py" and p.is_file()), None)
            if path is None:
                return "", "not found"
            if (size := path.stat().st_size) > min(_MOST_BYTES, left):
                return "", f"not embedded: {bytes_text(size)}"
            changed = "changed after the dump was written" if path.stat().st_mtime > written else ""
            return path.read_text(encoding="utf-8"), changed
        except (OSError, ValueError):  # removed, or not UTF-8
            return "", "not readable"


TEXT = PrintOptions(metadata=False, percent=False, operand_numbers=0)


def page_kernels(
    facts: Facts,
    boxes: dict[str, int],
    files: SourceFiles,
    time_of: Callable[[Instruction], KernelTime | None] = lambda x: None,
) -> Iterator[Kernel]:
    """The launched kernels; `boxes` are those of the last step by name, `time_of` counts without costs."""
    rows, module, costs = facts.account_after.rows, facts.replay.final, facts.costs
    device = costs.device if costs is not None else None
    time_of = costs.kernel if costs is not None else time_of
    cpu = facts.account_after.times
    number = {row.instruction: n for n, row in enumerate(rows)}
    results = {through_views(x) for x in module.entry.root.outputs}
    for row in rows:
        i = row.instruction
        place = facts.final_place(i)
        at = facts.instruction(place.name) or (i, module)
        time = time_of(i)
        us = row.us or 0.0
        estimated = time if not row.is_floor else None
        kind = cpu.kind_text(i) if cpu is not None else ""
        yield Kernel(
            row,
            place,
            boxes.get(place.name, -1),
            files.line(source_bearer(*at), at[1]),
            tuple(_read(o, number) for o in i.operands),
            i in results,
            floor_us(i, row.cost, device) + device.launch_overhead_us if device is not None else None,
            time,
            HotKernel(place, estimated, us, is_floor=row.is_floor, estimate=kind).bound_by,
            hlo_text(i),
            row.measured.us if row.measured is not None else None,
        )


def _read(operand: Instruction, number: dict[Instruction, int]) -> Value:
    source, name = through_views(operand), through_views(operand).name
    if operand.is_get_tuple_element:
        name += f"{{{operand.tuple_index}}}"
    return number.get(source, -1), name, str(operand.shape), operand.shape.leaves_size


def hlo_text(kernel: Instruction) -> str:
    """The instruction, then each computation that it calls, without metadata."""
    called = reach(reversed(kernel.called_computations), callees)
    return "\n\n".join([print_instruction(kernel, TEXT), *(print_computation(c, TEXT) for c in called)])


def kernel_pairs(
    first: Compilation,
    second: Compilation,
    kernels: Sequence[Sequence[Kernel]],
) -> list[KernelPair]:
    """Kernels that compute the same results, then those of the first replay only, then of the second."""
    own, other = ([k.row.instruction for k in side] for side in kernels)
    names = match(first.final, second.final, _common_operations(first, second)).names
    number = {i.name: n for n, i in enumerate(own)}
    paired = {n: number[name] for n, i in enumerate(other) if (name := names.get(i.name)) in number}
    return [
        *((m, n, contents(own[m]) == contents(other[n])) for n, m in paired.items()),
        *((m, -1, False) for m in sorted(set(range(len(own))) - set(paired.values()))),
        *((-1, n, False) for n in range(len(other)) if n not in paired),
    ]


def _common_operations(first: Compilation, second: Compilation) -> Iterator[tuple[Instruction, Instruction]]:
    """Operations of both final modules that come from one instruction of a common fusion input."""
    if first.input.module is not second.input.module or first.input.stage is not Stage.INPUT:
        return
    sides: list[dict[str, Instruction]] = []
    for run in (first, second):
        at_fusion = {x.name: x for x in run.after.instructions()}
        sides.append({})
        for x in run.final.instructions():
            fused = at_fusion.get(run.names_at_fusion.get(x.name, ""))
            name = own_name(fused.origin) if fused is not None and not x.is_fusion else None
            if name is not None:
                sides[-1].setdefault(name, x)
    for name, x in sides[0].items():
        other = sides[1].get(name)
        if other is not None and other.opcode == x.opcode:
            yield x, other


class _Collector:
    def __init__(
        self,
        label: str,
        shown: Observed | Fused,
        unoptimized: Callable[[], Module | None],
        files: SourceFiles,
    ) -> None:
        self.label = label
        self.files = files
        self.shown = shown
        self.replay = replay = shown.replay
        self.note = replay.input.note
        if isinstance(shown, Fused):
            self.facts = Facts(replay, counted=shown.account)
            self.explained = explain(replay, facts=self.facts)
            self.verdict = shown.verdict
        else:
            self.facts = Facts(replay, shown.costs)
            record = record_check(shown)
            self.explained = explain(replay, what_if=shown.changes, record=record, facts=self.facts)
            self.verdict = verdict(shown, self.facts, unoptimized=unoptimized)
        self.computations = launched_computations(replay.before)
        self._number = numbered(self.computations)

    def run(self) -> Run:
        e, replay = self.explained, self.replay
        operations = tuple(self._operations())
        boxes = Boxes(
            [o.instruction.name for o in operations],
            [o.launched for o in operations],
            {n for n, o in enumerate(operations) if o.instruction.is_constant},
        )
        before = boxes.kernels
        decisions = tuple(self._decisions(boxes))
        memory = self.facts.account_after.memory
        times = [self.shown.time_of] if isinstance(self.shown, Fused) else []
        return Run(
            self.label,
            self._headline(),
            e.before,
            e.after,
            tuple(filter(None, (self.note, *notes(e)))),
            tuple(self._verdict()),
            tuple(
                (k.place.label, *kernel_cells(k, self.verdict)) for k in self.verdict.hot_kernels[:_SLOWEST]
            ),
            functions_json(self.verdict.functions),
            memory_json(memory_use(replay.final, memory)),
            plot_memory(replay.final, memory, "").to_svg(),
            tuple(printable(c.name) for c in self.computations),
            operations,
            tuple(p.name for p in replay.passes),
            decisions,
            tuple(map(printable, boxes.names)),
            boxes.count,
            tuple(boxes.ends_as(b) for b in range(boxes.count)),
            regions_of(boxes, operations),
            tuple(
                (printable(name), printable(final)) for name, final in renamed_kernels(self.replay).items()
            ),
            tuple(page_kernels(self.facts, boxes.current(), self.files, *times)),
            tuple(_refused_edges(e, decisions)),
            before,
        )

    def _headline(self) -> str:
        replay, identity = self.replay, self.replay.input.identity
        if identity is None:
            return printable(self.explained.module)
        ordered = TARGETS[replay.target].depends_on_order and not isinstance(self.shown, Fused)
        order, record = replay.order_source if ordered else None, replay.input.record
        line = identity_line(identity, order, record is not None)
        return f"{line} · what if: {', '.join(self.explained.what_if)}" if self.explained.what_if else line

    def _verdict(self) -> Iterator[str]:
        identity = self.replay.input.identity
        if isinstance(self.shown, Observed):
            if (result := compare_with_result(self.replay)) is not None:
                yield result.line
            if not self.replay.has_xla_final and identity is not None:
                yield from missing_lines(not_repeated_in(self.replay), identity)
        yield from (line.strip() for line, _ in verdict_lines(self.verdict) if line)

    def _operations(self) -> Iterator[Operation]:
        instructions = [i for c in self.computations for i in c.post_order()]
        number = numbered(instructions)
        before = self.facts.account_before.by_name
        for i in instructions:
            launched = is_kernel(i)
            calls = tuple(self._number[c] for c in i.called_computations if c in self._number)
            yield Operation(
                i,
                self._number[i.computation] if i.computation is not None else 0,
                tuple(number[o] for o in i.operands if o in number),
                calls,
                launched,
                printable(source_in_function(self.replay.before.source_of(i))),
                before.get(i.name),
                self.files.line(i, self.replay.before),
                _path(i, self.replay.before),
            )

    def _decisions(self, boxes: Boxes) -> Iterator[Decision]:
        for number, result in enumerate(self.replay.passes):
            steps = {s.event.step: s for g in self.explained.passes[number].fused for s in g.steps}
            for event in result.events:
                ends = event.producer, event.consumer
                names = event.producer or "", event.consumer or "", event.fusion or ""
                if event.event == "rewrite":
                    ends = next(iter(event.removed), None), next(iter(event.added), None)
                    names = ", ".join(event.removed), "", ", ".join(event.added)
                producer, consumer = map(boxes.find, ends)
                others = map(boxes.find, event.consumers or event.removed)
                yield Decision(
                    event,
                    number,
                    producer,
                    consumer,
                    tuple(map(printable, names)),
                    tuple(b for b in others if b >= 0),
                    steps.get(event.step) if event.event == "fuse" else None,
                    boxes.follow(event),
                    boxes.kernels,
                )


def _refused_edges(e: Explanation, decisions: tuple[Decision, ...]) -> Iterator[RefusedEdge]:
    index = {(d.pass_index, d.event.step): n for n, d in enumerate(decisions)}
    passes = {id(r): n for n, story in enumerate(e.passes) for r in story.refused}
    for blocking_rule in e.blocking_rules:
        for r in blocking_rule.refusals:
            yield RefusedEdge(index.get((passes.get(id(r), -1), r.steps[-1]), -1), r)


def _path(i: Instruction, module: Module) -> str:
    functions = [name for file, name in path_of(i, module) if file]
    return "/".join([*functions, *scopes_of(i.op_name)[0]])
