"""Changes that need less memory, each replayed on the module, and those that no replay can show."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from hlofuse.account import Observed, observed_replay
from hlofuse.account.replaying import account_of, final_account
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.hlo_alias import alias_config, write_alias_config
from hlofuse.analysis.hlo_value import Index
from hlofuse.analysis.kernels import end_of, inside, trip_count_of
from hlofuse.compilation import ReplayConfig
from hlofuse.compilation.spans import finish
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.rates import tabled_collective_us
from hlofuse.format import bytes_text, listing, plural, us_text
from hlofuse.ir import (
    HlofuseError,
    Instruction,
    Instructions,
    Module,
    Record,
    Shape,
    Strings,
    copy_module,
    grouped,
    reach,
    replace,
    values,
)
from hlofuse.memory import Assignment, LiveArray, assign
from hlofuse.pipelines.flags import DISABLED, value_of
from hlofuse.pipelines.targets import Stage
from hlofuse.releases import Span
from hlofuse.reports.advice.matching import is_backward
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.model import TRIED_UP_TO, lines_of
from hlofuse.reports.verdict.candidates import of_barriers, with_edited, with_own
from hlofuse.reports.verdict.model import Verdict
from hlofuse.reports.verdict.phrases import suggestion_text
from hlofuse.reports.whatif.model import Trial, trial_of

_OPTIONAL = values("copy_fusion computation-deduplicator")  # XLA:GPU compiles without these alone
_SCHEDULER = "xla_cpu_scheduler_type"
_HAS_SCHEDULERS = Span("0.9")
_LEAST = 0.01  # the part of the memory that a change has to save
_TRIES = 4  # arrays that are tried, the largest first, for a change that is about one array


class MemoryChange(Record):
    text: str  # The action; of a flag, the words to set
    trial: Trial
    sources: Strings = ()
    flag: str = ""
    recipe: str = ""


def memory_changes(
    observed: Observed, facts: Facts, verdict: Callable[[], Verdict]
) -> tuple[MemoryChange, ...]:
    """Changes that save 1% or more of the memory, the largest saving first. Above `TRIED_UP_TO` instructions
    only the passes after fusion are tried: other suggestions are tried on a part, which has no memory."""
    tried = verdict() if len(facts.before) <= TRIED_UP_TO else None
    found = [*_without_passes(facts), *_in_memory_order(facts), *_donated(facts)]
    if tried is not None:
        found += _edited(observed, facts)
        recipes = {c.recipe for c in found if c.recipe}
        for s in (*tried.suggestions, *tried.slower):
            flags = {c.flag for c in found if c.flag}
            if (s.recipe or s.flag) and s.flag not in flags and s.recipe not in recipes:
                found.append(MemoryChange(suggestion_text(s), s.trial, s.sources, s.flag, s.recipe))
    saved = ((c.trial.memory_saved or 0, c, t) for c in found if (t := c.trial.totals) is not None)
    large = [(n, c) for n, c, t in saved if n > 0 and n >= _LEAST * (n + (t.memory_bytes or 0))]
    return tuple(c for _, c in sorted(large, key=lambda pair: -pair[0]))


def _finished(
    facts: Facts,
    module: Module,
    config: ReplayConfig,
) -> Trial:
    final = finish(module, config, ()).module
    after = account_of(facts.replay, facts.costs, final, is_final=True).totals
    return trial_of(facts.account_replayed.totals, after, "replayed")


def _without_passes(facts: Facts) -> Iterator[MemoryChange]:
    replay = facts.replay
    for name in sorted(_OPTIONAL.intersection(replay.span(Stage.SCHEDULED).changing_passes)):
        flag = with_own(f"--{DISABLED}={name}", replay.config.build.flags)
        config = replay.config.without_passes([name])
        yield MemoryChange(f"XLA_FLAGS={flag}", _finished(facts, replay.after, config), flag=flag)


def _donated(facts: Facts) -> Iterator[MemoryChange]:
    module = copy_module(facts.replay.after)
    config = alias_config(module)
    if given := _donations(module):
        for p, index in given.items():
            config.set_up(index, (p.parameter_number, ()))
        write_alias_config(module, config)
        names = Counter(map(_outer_name, given))
        shapes = {p.shape for p in given}
        free = (p for p in module.entry.parameters if p.shape in shapes and p not in given)
        rest = [_outer_name(p) for p in free if not config.is_aliased((p.parameter_number, ()))]
        others = [n for n in dict.fromkeys(rest) if n not in names and rest.count(n) >= min(names.values())]
        whose = "it" if len(names) == 1 else "them"
        text = f"Donate {listing(list(names), 3)} (donate_argnums) if the caller no longer needs {whose}"
        if others:
            text += f"; {listing(others, 3)} would do for one of the same shape"
        yield MemoryChange(text, _finished(facts, module, facts.replay.config), recipe="donate-the-argument")


def _in_memory_order(facts: Facts) -> Iterator[MemoryChange]:
    """The program on a CPU with the scheduler that lets arrays die early."""
    config = facts.replay.config
    is_chosen = value_of(config.build.flags, _SCHEDULER) is not None
    if config.target != "cpu" or is_chosen or not _HAS_SCHEDULERS.includes(config.release.name):
        return
    account = facts.account_replayed
    memory = assign(account.module, "cpu", None, account.memory)
    after = replace(account.totals, peak_temporary_bytes=memory.temporary, memory_bytes=memory.total)
    flag = f"--{_SCHEDULER}=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
    yield MemoryChange(f"XLA_FLAGS={flag}", trial_of(account.totals, after, "replayed"), flag=flag)


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
    sources: Strings
    bytes: int


def ideas(
    module: Module,
    assigned: Assignment,
    line: Callable[[Instruction], str | None],
    gpu: DeviceDescription | None,
) -> list[Untried]:
    """Changes about a good part of the arguments or of the bytes at the peak, the most first."""
    given = [*module.entry.parameters, module.entry.root]
    most = max((s.byte_size for x in given for s in x.shape.leaf_shapes if s.is_array), default=0)
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
        size = sum(p.byte_size for p in arrays)
        names = listing(list(dict.fromkeys(map(argument_name, arrays))), 3)
        text = f"Shard {names}: {count} devices each have the same copy, and would need"
        text += f" {bytes_text(size - size // count)} less for arguments"
        kernels = dict.fromkeys(u for p in arrays for u in p.users)
        written = sum(s.byte_size for k in kernels for s in k.shape.leaf_shapes if s.is_array)
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
    dimensions = parameter.sizes if parameter.is_array else ()
    return count if any(d and d % count == 0 for d in dimensions) else 1


def _is_update(
    reader: Instruction,
    value: Instruction,
) -> bool:
    elements = (x for u in reader.users for x in (u, *u.users))
    if not any(x.is_root and x.opcode == "tuple" for x in elements):
        return False
    if not reader.is_fusion:
        return reader.opcode in ELEMENTWISE_OPCODES
    values = zip(reader.fused_computation.parameters, reader.operands, strict=True)
    read = reach([p for p, o in values if o is value], lambda i: i.users)
    return all(i.opcode in _POINTWISE for i in read)


def _changes_of_stack(length: int, loop: Instruction, backward: Instruction) -> Iterator[str]:
    """Changes about what a loop of `length` iterations keeps for a backward loop."""
    inner = next(d for d in range(math.isqrt(length), 0, -1) if length % d == 0)
    if not _is_chosen(loop, backward):
        yield "Put jax.checkpoint around the loop's body: each iteration keeps arrays for the backward loop"
    elif length >= _FEW and inner > 1:
        outer = length // inner
        yield (
            f"Nest two scans of {outer} and {inner} iterations, the inner one under jax.checkpoint, too:"
            f" they keep {outer + inner} of {length} rows at a time, and compute the forward pass once"
            " more"
        )
    elements = (u for u in backward.users if u.is_get_tuple_element)
    read = sum(u.element_count for u in elements if u.is_array and (u.users or u.is_root))
    if 0 < read <= min(_FEW, length // 4):
        are_read = f"{plural(read, 'number')} {'are' if read > 1 else 'is'} read"
        yield (
            "Take the derivative forward (jax.jacfwd, jax.jvp), which keeps nothing of an iteration: of"
            f" the backward loop's results only {are_read}"
        )


def _changes_of(
    array: LiveArray,
    assigned: Assignment,
    most: int,
    jacobian: str,
    busy: set[Instruction],
) -> Iterator[str]:
    """Changes about one array; `most`: bytes of the largest argument or result, `busy`: runs at the peak."""
    x, readers = array.instruction, array.readers[-1:]
    name = x.op_name or ""
    sums = (p for r in readers for p in inside(r) if p.is_reduce)
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
        if "scatter" in opcodes_in(r) and array.bytes >= 2 * r.byte_size:
            yield (
                "Scatter in parts: a scan over chunks of the indices, its body under jax.checkpoint where it"
                " is differentiated"
            )
    if x.opcode.startswith("all-gather") and readers and is_backward(readers[0]) and _reads_arguments(x):
        yield _SCAN
    if jacobian and "vmap(" in name:
        yield jacobian
    is_written = "dynamic-update-slice" in opcodes_in(x)
    if x.opcode not in ("fusion", "custom-call") or (is_written and not x.parent.is_entry):
        return
    shape = array.shape
    if shape.is_tiled and shape.buffer_size >= 2 * shape.byte_size:
        used = bytes_text(shape.byte_size)
        yield f"Change its shape, such as by merging small dimensions: all but {used} is padding of tiles"
    elif (
        array.bytes >= 2 * most
        and x.operands
        # A loop's state; what each device adds to a sum of which it keeps a part.
        and not any(r.is_while or r.opcode.startswith("reduce-scatter") for r in readers)
        and (is_backward(x) or not any(map(is_backward, array.readers)))
    ):
        yield "Compute the array in parts (jax.lax.map, or a scan over chunks): it exceeds any argument"
    whole = array.shape.element_count
    if array.shape.element_type != "f32" or not name:  # XLA's own conversion has no name
        return
    own = [o.shape for o in x.operands if o.is_array and o.element_count == whole]
    if own and all(2 * s.byte_size <= array.bytes for s in own):
        kind = own[0].text_without_layout
        yield f"Keep the array in a narrower type, if that is precise enough: it is computed from {kind}"


def _reads_arguments(gather: Instruction) -> bool:
    read = {o.through("bitcast", "convert", "copy").opcode for o in gather.operands}
    return gather.parent.is_entry and read == {"parameter"}


def _transposed_jacobian(module: Module) -> str:
    """The action for a Jacobian that is computed by rows and has few columns; else empty."""
    names = {x.op_name or "" for x in module.instructions()}
    if not any("vmap(transpose(jvp(" in n for n in names) or any("vmap(jvp(" in n for n in names):
        return ""
    results = [s for s in module.entry.root.shape.leaf_shapes if s.is_array]
    columns = rows = 0
    for p in (p for p in module.entry.parameters if p.is_array and p.rank):
        own, size = p.sizes, p.element_count
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
        if loop.is_while and trip_count_of(loop) == length and not is_backward(loop):
            for reader in readers:
                if reader.is_while and is_backward(reader):
                    return loop, reader
    return None


def _is_chosen(*found: Instruction) -> bool:
    """True if a `jax.checkpoint` of the program decides what these instructions keep."""
    parts = [part for x in found for c in x.called_computations for i in c for part in inside(i)]
    return any("/checkpoint/" in (x.op_name or "") for x in (*found, *parts))


def opcodes_in(x: Instruction) -> set[str]:
    """Its opcode, or those of a fusion's operations."""
    return {part.opcode for part in inside(x)}


def _edited(
    observed: Observed,
    facts: Facts,
) -> Iterator[MemoryChange]:
    replay, before = observed.replay, facts.account_replayed.totals
    for x in _largest(_reordered(replay.before), _LEAST * (before.peak_temporary_bytes or 0)):
        text = f"Keep {argument_name(x.operand)} as it is read: pass it transposed by"
        sources = lines_of(facts.place(place.name) for place in x.users)
        module = copy_module(replay.before)
        edited = module.find(x.name)
        assert edited is not None
        edited.operand.shape = edited.shape
        edited.replace_all_uses_with(edited.operand)
        edited.parent.remove_instruction(edited)
        input = with_edited(replay.input, module)
        with suppress(HlofuseError):
            after = observed_replay(input, replay.config, cache=observed.cache, totals_only=True)
            trial = trial_of(before, final_account(after).totals, "replayed")
            yield MemoryChange(f"{text} ({', '.join(map(str, _order(x)))})", trial, sources)
    yield from (
        MemoryChange(s.text, s.trial, s.sources, recipe=s.recipe)
        for s in of_barriers(observed, facts, for_memory=True)
    )


def _donations(module: Module) -> dict[Instruction, Index]:
    """Arrays that are not donated, each with a result of its shape that has a place of its own; of the
    arguments that fit the most results, paired in order as JAX does. A gradient replaces no argument."""
    config, root = alias_config(module), module.entry.root
    results = []
    for index, shape in root.shape.leaves():
        result = root.operands[index[0]] if root.opcode == "tuple" else root
        if shape.is_array and shape.rank and index not in config.aliases and not is_backward(_named(result)):
            results.append((index, shape))
    shapes = {shape for _, shape in results}
    free = [p for p in module.entry.parameters if not config.is_aliased((p.parameter_number, ()))]
    fitting = Counter(_outer_name(p) for p in free if p.shape in shapes)
    found = _paired(sorted(free, key=lambda p: -fitting[_outer_name(p)]), results)
    names = set(map(_outer_name, found))
    return _paired([p for p in free if _outer_name(p) in names], results)


def _paired(
    free: Instructions,
    results: list[tuple[Index, Shape]],
) -> dict[Instruction, Index]:
    found = {}
    for index, shape in results:
        if (p := next((p for p in free if p.shape == shape and p not in found), None)) is not None:
            found[p] = index
    return found


def _outer_name(parameter: Instruction) -> str:
    return re.split(r"[\[.]", argument_name(parameter))[0]


def _named(x: Instruction) -> Instruction:
    """The operation that a result is a copy or another form of: the first with a name."""
    while not (x := end_of(x)).op_name and x.operand_count == 1:
        (source,) = x.operands
        whole = end_of(source)
        is_element = x.is_get_tuple_element and whole.opcode == "tuple"
        x = whole.operands[x.tuple_index] if is_element else source
    return x


def _largest(found: Iterator[Instruction], least: float) -> Instructions:
    large = (x for x in found if x.is_array and x.byte_size >= least)
    return sorted(large, key=lambda x: -x.byte_size)[:_TRIES]


def _reordered(module: Module) -> Iterator[Instruction]:
    """Transposes, and copies with another layout, that are the only reader of an argument."""
    config = alias_config(module)
    for p in module.entry.parameters:
        if p.user_count != 1 or config.is_aliased((p.parameter_number, ())):
            continue
        (x,) = p.users
        is_moved = x.is_transpose or (x.opcode == "copy" and x.shape != p.shape)
        if is_moved and _order(x) != tuple(range(x.rank)):
            yield x


def _order(x: Instruction) -> tuple[int, ...]:
    """The dimensions of an argument in the order in which they lie in memory after a transpose or copy."""
    layout = x.shape.layout
    major_first = layout.minor_to_major[::-1] if layout is not None else range(x.rank)
    return tuple(x.dimensions[d] if x.is_transpose else d for d in major_first)
