"""Kernels of the final module as the page shows them, and how those of two replays correspond."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hlofuse.account.floor import floor_us
from hlofuse.analysis.bitcasts import leaves_size
from hlofuse.analysis.kernels import computed_in
from hlofuse.explorer.model import Kernel, KernelPair, Value
from hlofuse.explorer.source import SourceFiles
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.opcodes import PrintOptions
from hlofuse.ir.text.printer import print_computation, print_instruction
from hlofuse.replay import Replay
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.final_names import matched_names
from hlofuse.reports.common.lineage import through_views
from hlofuse.reports.explain.model import HotKernel

_TEXT = PrintOptions(metadata=False, percent=False, operand_numbers=0)


def page_kernels(facts: Facts, boxes: dict[str, int], files: SourceFiles) -> Iterator[Kernel]:
    """What is launched; `boxes` are those of the last step by name."""
    rows, module, costs = facts.account_after.rows, facts.replay.final.module, facts.costs
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


def kernel_pairs(first: Replay, second: Replay, kernels: Sequence[Sequence[Kernel]]) -> list[KernelPair]:
    """Kernels that compute the same results, then those of the first replay only, then of the second."""
    own, other = ([k.row.instruction for k in side] for side in kernels)
    names = matched_names(first.final.module, second.final.module)
    number = {i.name: n for n, i in enumerate(own)}
    paired = {n: number[name] for n, i in enumerate(other) if (name := names.get(i.name)) in number}
    return [
        *((m, n, _content(own[m]) == _content(other[n])) for n, m in paired.items()),
        *((m, -1, False) for m in sorted(set(range(len(own))) - set(paired.values()))),
        *((-1, n, False) for n in range(len(other)) if n not in paired),
    ]


def _content(kernel: Instruction) -> object:
    inside = computed_in(kernel) if kernel.opcode == "fusion" and kernel.called else (kernel,)
    return kernel.fusion_kind, Counter((i.opcode, i.shape.text_without_layout) for i in inside)
