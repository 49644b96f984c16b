"""Changes of the program for its memory that no replay can show."""

import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.kernels import inside, trip_count_of
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.rates import tabled_collective_us
from hlofuse.format import bytes_text, listing, us_text
from hlofuse.ir import Instruction, Module, computation_of, grouped, reach
from hlofuse.memory import Assignment, LiveArray
from hlofuse.reports.advice.matching import is_backward

NOTABLE = 0.01  # of all memory or of the temporaries: less is not worth a line
LARGE = 0.1  # of the largest array's bytes: then an array needs a reason; of the peak's: a change
_POINTWISE = ELEMENTWISE_OPCODES | {"bitcast", "parameter", "tuple"}
_FEW = 16  # numbers by which a forward derivative is taken at once; iterations that are not divided
_MANY = 4  # arrays of each line: those of layers, not of the parts of one
_LAYERS = "Put jax.checkpoint around each layer, not around all: the arrays are computed again at once"
_SCAN = (
    "Scan over the layers (jax.lax.scan, weights stacked), the body under jax.checkpoint: gathered weights"
    " are kept for the backward pass"
)
_REPLICATED = re.compile(r"devices=\[[\d,]*?(\d+)\]\S* last_tile_dim_replicate")


class Untried(NamedTuple):
    """A change of the program that no replay can show, and the bytes of the arrays that it is about."""

    text: str
    sources: tuple[str, ...]
    bytes: int


def ideas(
    module: Module,
    assigned: Assignment,
    line: Callable[[Instruction], str | None],
    gpu: DeviceDescription | None,
) -> list[Untried]:
    """Changes about a good part of the arguments or of the bytes at the peak, the most first."""
    given = [*module.entry.parameters, module.entry.root]
    most = max((s.byte_size for x in given for _, s in x.shape.leaves() if s.is_array), default=0)
    jacobian = _transposed_jacobian(module)
    rows = []
    peak = max(alive := assigned.over_time)
    least = max(LARGE * peak, NOTABLE * assigned.total)
    busy = {x for x, n in zip(assigned.live.order, alive, strict=False) if n >= (1 - NOTABLE) * peak}
    texts = ((t, a) for a in assigned.peak for t in _changes_of(a, assigned, most, jacobian, busy))
    for text, arrays in grouped(texts).items():
        sources = dict.fromkeys(s for a in arrays if (s := line(a.instruction)))
        size = sum(a.bytes for a in arrays)
        # A layer that keeps one kind of array keeps its input, as a checkpoint around it would.
        kinds = {(a.instruction.op_name or "").rpartition("/")[2] for a in arrays}
        is_of_layers = len(kinds) > 1 and len(arrays) >= _MANY * len(sources) > 0
        is_shown = is_of_layers if text == _LAYERS else text != _SCAN or len(arrays) > 1
        if size >= least and is_shown:
            rows.append(Untried(text, tuple(sources), size))
    rows += (r for r in _sharded(module, gpu) if r.bytes >= LARGE * assigned.total)
    return sorted(rows, key=lambda r: -r.bytes)


def argument_name(parameter: Instruction) -> str:
    """The user's name of an argument: `state['w']`; the parameter's where the dump has none."""
    return parameter.op_name or parameter.name


def _sharded(
    module: Module,
    gpu: DeviceDescription | None,
) -> Iterator[Untried]:
    """Arguments of which several devices have the same part, and that could be divided among them."""
    partitions = int(module.attributes.raw("num_partitions") or 1)
    found = grouped(
        ((count, bool(p.users) and all(_is_update(u, p) for u in p.users)), p)
        for p in module.entry.parameters
        if (count := _copies(p, partitions)) > 1
    )
    for (count, is_state), arrays in found.items():
        size = sum(p.shape.byte_size for p in arrays)
        names = listing(list(dict.fromkeys(map(argument_name, arrays))), 3)
        text = f"Shard {names}: {count} devices each have the same copy, and would need"
        text += f" {bytes_text(size - size // count)} less for arguments"
        kernels = dict.fromkeys(u for p in arrays for u in p.users)
        written = sum(s.byte_size for k in kernels for _, s in k.shape.leaves() if s.is_array)
        if not is_state:
            text += "; what it costs to gather them where they are read is not estimated"
        elif (rest := written - size) > 0:
            us = tabled_collective_us(gpu, "all-gather", rest, [range(count)]) if gpu else None
            time = f", in {us_text(us)} by XLA's model" if us is not None else ""
            text += ". Results are computed from them element by element; the other results"
            text += f" ({bytes_text(rest)}) are then gathered{time}"
        yield Untried(text, (), size)


def _copies(
    parameter: Instruction,
    partitions: int,
) -> int:
    """The devices that have the same part of an argument and could divide one of its dimensions; else 1."""
    sharding = parameter.raw("sharding") or ""
    tiled = _REPLICATED.search(sharding)
    count = partitions if sharding == "{replicated}" else int(tiled[1]) if tiled else 1
    dimensions = parameter.shape.dimensions if parameter.shape.is_array else ()
    return count if any(d and d % count == 0 for d in dimensions) else 1


def _is_update(
    reader: Instruction,
    value: Instruction,
) -> bool:
    elements = (x for u in reader.users for x in (u, *u.users))
    if not any(x.is_root and x.opcode == "tuple" for x in elements):
        return False
    if reader.opcode != "fusion":
        return reader.opcode in ELEMENTWISE_OPCODES
    values = zip(reader.fused_computation.parameters, reader.operands, strict=True)
    read = reach([p for p, o in values if o is value], lambda i: i.users)
    return all(i.opcode in _POINTWISE for i in read)


def _changes_of(
    array: LiveArray,
    assigned: Assignment,
    most: int,
    jacobian: str,
    busy: set[Instruction],
) -> Iterator[str]:
    """Changes about one array; `most` are the bytes of the largest argument or result, `busy` runs while the
    most bytes are alive."""
    x, readers = array.instruction, array.readers[-1:]
    name = x.op_name or ""
    sums = (p for r in readers for p in inside(r) if p.opcode == "reduce")
    if any((p.op_name or "").endswith("dot_general") for p in sums):
        return  # parts of a product that XLA splits
    if (loops := loops_of(array, assigned)) is not None:
        yield from _changes_of_stack(array.shape.dimensions[0], *loops)
    elif (
        "jvp(" in name
        and not is_backward(x)
        and any(map(is_backward, readers))
        and busy.isdisjoint((x, *array.readers))
        and not _is_chosen(x, *readers)
    ):
        yield "Put jax.checkpoint around the operation: the array is kept for the backward pass"
    if "/rematted_computation/" in name:
        yield _LAYERS
    for r in readers:
        if "scatter" in opcodes_in(r) and array.bytes >= 2 * r.shape.byte_size:
            yield (
                "Scatter in parts: a scan over chunks of the indices, its body under jax.checkpoint where it"
                " is differentiated"
            )
    if x.opcode.startswith("all-gather") and readers and is_backward(readers[0]) and _reads_arguments(x):
        yield _SCAN
    if jacobian and "vmap(" in name:
        yield jacobian
    is_written = "dynamic-update-slice" in opcodes_in(x)
    if x.opcode not in ("fusion", "custom-call") or (is_written and not computation_of(x).is_entry):
        return
    shape = array.shape
    if shape.is_tiled and shape.buffer_size >= 2 * shape.byte_size:
        used = bytes_text(shape.byte_size)
        yield f"Change its shape, such as by merging small dimensions: all but {used} is padding of tiles"
    elif (
        array.bytes >= 2 * most
        and x.operands
        # A loop's state; what each device adds to a sum of which it keeps a part.
        and not any(r.opcode == "while" or r.opcode.startswith("reduce-scatter") for r in readers)
        and (is_backward(x) or not any(map(is_backward, array.readers)))
    ):
        yield "Compute the array in parts (jax.lax.map, or a scan over chunks): it exceeds any argument"
    whole = array.shape.element_count
    if array.shape.element_type != "f32" or not name:  # XLA's own conversion has no name
        return
    own = [o.shape for o in x.operands if o.shape.is_array and o.shape.element_count == whole]
    if own and all(2 * s.byte_size <= array.bytes for s in own):
        kind = own[0].text_without_layout
        yield f"Keep the array in a narrower type, if that is precise enough: it is computed from {kind}"


def _reads_arguments(gather: Instruction) -> bool:
    read = {o.through("bitcast", "convert", "copy").opcode for o in gather.operands}
    return computation_of(gather).is_entry and read == {"parameter"}


def _changes_of_stack(
    length: int,
    loop: Instruction,
    backward: Instruction,
) -> Iterator[str]:
    """Changes about what a loop of `length` iterations keeps for a backward loop."""
    inner = next(d for d in range(math.isqrt(length), 0, -1) if length % d == 0)
    if not _is_chosen(loop, backward):
        yield "Put jax.checkpoint around the loop's body: each iteration keeps arrays for the backward loop"
    elif length >= _FEW and inner > 1:
        outer = length // inner
        yield (
            f"Nest two scans of {outer} and {inner} iterations, the inner one under jax.checkpoint, too:"
            f" they keep {outer + inner} of {length} rows at a time, and compute the forward pass once more"
        )
    elements = (u for u in backward.users if u.opcode == "get-tuple-element")
    read = sum(u.shape.element_count for u in elements if u.shape.is_array and (u.users or u.is_root))
    if 0 < read <= min(_FEW, length // 4):
        yield (
            "Take the derivative forward (jax.jacfwd, jax.jvp), which keeps nothing of an iteration: of the"
            f" backward loop's results {read} number{'s' if read > 1 else ''} are read"
        )


def _transposed_jacobian(module: Module) -> str:
    """The action for a Jacobian that is computed by rows and has few columns; else empty."""
    names = {x.op_name or "" for x in module.instructions()}
    if not any("vmap(transpose(jvp(" in n for n in names) or any("vmap(jvp(" in n for n in names):
        return ""
    results = [s for _, s in module.entry.root.shape.leaves() if s.is_array]
    columns = rows = 0
    for p in (p for p in module.entry.parameters if p.shape.is_array and p.shape.rank):
        own, size = p.shape.dimensions, p.shape.element_count
        of_p = [s for s in results if size and s.rank > len(own) and s.dimensions[-len(own) :] == own]
        columns += size if of_p else 0
        rows = max([rows, *(s.element_count // size for s in of_p)])
    if not 0 < 2 * columns <= rows:
        return ""
    return f"Take jax.jacfwd for jax.jacrev: {columns:,} columns at once for {rows:,} rows"


def loops_of(
    array: LiveArray,
    assigned: Assignment,
) -> tuple[Instruction, Instruction] | None:
    """The loop that writes a part of the array in each iteration, and the backward loop that reads it."""
    length = array.shape.dimensions[0] if array.shape.rank else 0
    for value in assigned.live.alias.buffer_of(array.value).values:
        loop, readers = value.instruction, assigned.readers(value)[-1:]
        if loop.opcode == "while" and trip_count_of(loop) == length and not is_backward(loop):
            for reader in readers:
                if reader.opcode == "while" and is_backward(reader):
                    return loop, reader
    return None


def _is_chosen(*found: Instruction) -> bool:
    """True if a `jax.checkpoint` of the program decides what these instructions keep."""
    parts = [part for x in found for _, c in x.called for i in c for part in inside(i)]
    return any("/checkpoint/" in (x.op_name or "") for x in (*found, *parts))


def opcodes_in(x: Instruction) -> set[str]:
    """Its opcode, or those of a fusion's operations."""
    return {part.opcode for part in inside(x)}
