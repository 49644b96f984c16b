"""The summary of an instruction that is not a fusion."""

from collections.abc import Sequence

from hlofuse.cost.gpu.atoms import Atom
from hlofuse.cost.gpu.heroes import roots_of_atom
from hlofuse.cost.gpu.summary import Summary, complete
from hlofuse.cost.gpu.ticks import fp32
from hlofuse.cost.gpu.utilization import bytes_of, elements_read, lowest_bit, reads_whole


def summary_of_atom(atom: Atom, slots: tuple[int, ...]) -> Summary:
    """`slots`: for each slot the first one with the same operand; empty where all differ."""
    summary = Summary()
    summary.atom, summary.is_fusion = atom, False
    summary.first_slots = slots
    summary.is_tuple = atom.shape.is_tuple
    summary.elementwise = atom.elementwise
    summary.operands = atom.operands
    summary.flops, summary.written = int(atom.flops), int(atom.out_bytes)
    read = [int(b) for b in atom.operand_bytes]
    summary.operand_bytes = [read[k] for k in slots] if slots else read
    summary.utilization = atom.operand_utilization
    summary.ir_size, summary.splits = 1.0, float(atom.splits_block)
    summary.parameter_ir_size = [1] * len(read)
    _set_use_of_atom(summary, atom)
    summary.roots = roots_of_atom(atom, len(read))
    summary.clean = [atom.intermediate] * len(read)
    summary.features = atom.features
    summary.minor_of_transpose = atom.minor_of_transpose
    summary.bad_transpose = atom.transposes_minor
    summary.is_reduction = atom.reduction is not None
    summary.shared_memory = atom.shared_memory
    summary.unnested_reductions = atom.unnested_reductions
    summary.significant_reduce = atom.significant_reduce
    summary.skipped = frozenset()
    complete(summary)
    return summary


def _set_use_of_atom(summary: Summary, atom: Atom) -> None:
    """Utilization as if the instruction were a fusion of its own."""
    summary.granule = lowest_bit(atom.flops)
    summary.crossed = frozenset((0,)) if atom.transposes_minor else frozenset()
    count = len(atom.operands)
    if atom.passes_use:
        summary.parameter_uses = [frozenset((0,))] * count
        summary.root_utilization, summary.root_emitted, summary.whole = [1.0], [1], True
        _set_inside(summary, [1.0] * count, [int(o.size_fp32) for o in atom.operands], [1] * count)
        return
    first = summary.first_slots or range(count)
    summary.whole = True
    evaluated, emitted = [1.0] + [0.0] * count, [1] + [0] * count
    for slot, number in enumerate(first):
        # The buffer of a dynamic-update-slice that is an output is not read.
        updated = slot == 0 and atom.opcode == "dynamic-update-slice"
        share = 0.0 if updated else atom.operand_utilization[slot]
        evaluated[number + 1] = fp32(evaluated[number + 1] + elements_read(1.0, share, atom.operands[slot]))
        summary.whole = summary.whole and reads_whole(1.0, share, atom.operands[slot])
        emitted[number + 1] += 1
    summary.parameter_uses = [frozenset((number + 1,)) for number in first]
    summary.root_utilization, summary.root_emitted = evaluated, emitted
    each = [evaluated[number + 1] for number in first]
    read = [bytes_of(o, share) for o, share in zip(atom.operands, each, strict=True)]
    _set_inside(summary, each, read, [emitted[number + 1] for number in first])


def _set_inside(summary: Summary, each: list[float], read: Sequence[int], sizes: list[int]) -> None:
    """With the list of bytes that it has, where nothing is read otherwise than on its own."""
    on_its_own = summary.operand_bytes
    summary.inside = each, on_its_own if read == on_its_own else read, sizes
