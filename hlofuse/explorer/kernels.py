"""Kernels of the final module as the page shows them, how those of two replays correspond, and files of the
user's program that the page shows next to the kernels of their lines."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from hlofuse.account.floor import floor_us
from hlofuse.analysis.elementwise import leaves_size
from hlofuse.compilation import Compilation
from hlofuse.explorer.model import NOWHERE, Kernel, KernelPair, Line, SourceFile, Value
from hlofuse.format.escape import printable
from hlofuse.format.paths import portable, shown_file
from hlofuse.format.units import bytes_text
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.opcodes import PrintOptions
from hlofuse.ir.origin import own_name
from hlofuse.ir.text.printer import print_computation, print_instruction
from hlofuse.matching.kernels import contents
from hlofuse.matching.pairs import match
from hlofuse.pipelines.stage import Stage
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.lineage import through_views
from hlofuse.reports.explain.model import HotKernel

AUTO = "auto"
_MOST_BYTES, _MOST_BYTES_OF_ALL = 300_000, 1_500_000  # bytes of text


class SourceFiles:
    """The files that metadata names, by number. Their text is read only on request."""

    def __init__(self, folder: str | None = None) -> None:
        """`folder` is where the files are; `auto` for the working directory; None embeds nothing.

        HlofuseError for a folder that is not there.
        """
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


_TEXT = PrintOptions(metadata=False, percent=False, operand_numbers=0)


def page_kernels(facts: Facts, boxes: dict[str, int], files: SourceFiles) -> Iterator[Kernel]:
    """The launched kernels; `boxes` are those of the last step by name."""
    rows, module, costs = facts.account_after.rows, facts.replay.final, facts.costs
    device = costs.device if costs is not None else None
    number = {row.instruction: n for n, row in enumerate(rows)}
    root = module.entry.root
    results = {through_views(x) for x in (root.operands if root.opcode == "tuple" else (root,))}
    for row in rows:
        i, place = row.instruction, facts.final_place(row.instruction)
        time = costs.kernel(i) if costs is not None else None
        single = replace(row, runs=1)
        yield Kernel(
            row,
            place,
            boxes.get(place.name, -1),
            files.line(i, module),
            tuple(_read(o, number) for o in i.operands),
            i in results,
            floor_us(i, row.cost, device) + device.launch_overhead_us if device is not None else None,
            time,
            HotKernel(
                place, time if not row.is_floor else None, single.total_us or 0.0, 0, row.is_floor
            ).bound_by,
            hlo_text(i),
            row.measured.us if row.measured is not None else None,
        )


def _read(operand: Instruction, number: dict[Instruction, int]) -> Value:
    source, name = through_views(operand), through_views(operand).name
    if operand.opcode == "get-tuple-element":
        name += f"{{{operand.tuple_index}}}"
    return number.get(source, -1), name, str(operand.shape), leaves_size(operand.shape)


def hlo_text(kernel: Instruction) -> str:
    """The instruction, then each computation that it calls, without metadata."""
    called: dict[Computation, None] = {}
    pending = [kernel]
    while pending:
        for _, computation in pending.pop().called:
            if computation not in called:
                called[computation] = None
                pending += computation
    return "\n\n".join([print_instruction(kernel, _TEXT), *(print_computation(c, _TEXT) for c in called)])


def kernel_pairs(
    first: Compilation, second: Compilation, kernels: Sequence[Sequence[Kernel]]
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
            name = own_name(fused.origin) if fused is not None and x.opcode != "fusion" else None
            if name is not None:
                sides[-1].setdefault(name, x)
    for name, x in sides[0].items():
        other = sides[1].get(name)
        if other is not None and other.opcode == x.opcode:
            yield x, other
