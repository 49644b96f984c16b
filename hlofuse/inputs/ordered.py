"""A loaded module in the order that XLA has in memory, from files next to it."""

import heapq
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

from hlofuse.analysis.custom_calls import is_radix_sort
from hlofuse.compilation import Compilation, CompilationInput, ReplayConfig
from hlofuse.format import printable
from hlofuse.ir import Computation, HlofuseError, Instruction, Module, OrderSource, Strings, grouped
from hlofuse.ir.text.literals import implied_element
from hlofuse.ir.unique_ids import ComputationIds, UniqueIds
from hlofuse.order.restore import with_replayed_order
from hlofuse.passes.common.literals import MOST_ELEMENTS, Value, text_of
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.targets import Stage
from .companions import companions_of
from .many import load
from .text import read_bytes
from .wire_format import fields, ids_file_of, instructions_of, messages, numbers, unique_ids_for


def restore_unread_elements(module: Module, ids: UniqueIds | None) -> None:
    """Add elements after their tuples, before optimizations: those in `ids`, else all that existed."""
    for computation in module.computations:
        ids_here = ids.computations.get(computation.name) if ids is not None else None
        order = []
        for i in list(computation):
            if not i.is_get_tuple_element:
                order.append(i)
                if i.is_tuple:
                    order += _elements(i, ids_here)
        computation.reorder(order)
    if ids is None:
        _name_elements(module)


_NUMBERED = re.compile(r"(.*)\.(\d+)")


def _name_elements(module: Module) -> None:
    """Name elements as a front end does: an operation's results have the numbers after its own."""
    taken = {i.name for i in module.instructions()}
    for element in module.instructions():
        if not element.is_get_tuple_element:
            continue
        source, index = element.operand, element.tuple_index
        match = _NUMBERED.fullmatch(source.name)
        if match is None or not source.op_name or element.name != f"{source.name}_{index}":
            continue
        name = f"{match[1]}.{int(match[2]) + 1 + index}"
        if name not in taken:
            taken.add(name)
            element.name = module.instruction_names.unique(name)


def _elements(source: Instruction, ids_here: ComputationIds | None) -> list[Instruction]:
    """All of one instruction and those of its elements that are tuples themselves, added where they miss."""
    assert source.computation is not None
    read = grouped((user.tuple_index, user) for user in source.users if user.is_get_tuple_element)
    found = []
    for index in sorted({*read, *_frontend_elements(source, ids_here, max(read, default=-1))}):
        if index not in read:
            read[index] = [implied_element(source.computation, source, index, f"{source.name}#{index}")]
        for element in read[index]:
            found.append(element)
            if element.is_tuple:
                found += _elements(element, ids_here)
    return found


def _frontend_elements(source: Instruction, ids_here: ComputationIds | None, last_read: int) -> Iterable[int]:
    every = range(source.tuple_size)
    if ids_here is not None:
        source_ids = ids_here.by_name.get(source.name)
        return [k for k in every if (source_ids, k) in ids_here.elements]
    if source.opcode == "tuple":
        return ()
    if source.is_while:
        # Values from outside that a body reads are passed in after the others, and never returned.
        return range(max([last_read, *_changed(dict(source.called)["body"])]) + 1)
    return every


def _changed(body: Computation) -> list[int]:
    """The elements that a loop does not hand on as they are."""
    if body.root.opcode != "tuple":
        return list(range(body.root.tuple_size))
    return [
        k
        for k, x in enumerate(body.root.operands)
        if not x.is_get_tuple_element or not x.operand.is_parameter or x.tuple_index != k
    ]


# Constants that a text leaves out (`{...}`), from the proto next to it (`LiteralProto`, `xla_data.proto`).

_NAME, _LITERAL = 1, 8
_VARINTS = {
    "pred": 2,
    "s32": 4,
    "s64": 5,
    "u32": 6,
    "u64": 7,
}
_FIXED = {
    "f32": (8, "f"),
    "f64": (9, "d"),
    "f16": (11, "e"),
    "bf16": (13, "H"),
    "c64": (12, "f"),
    "c128": (18, "d"),
    "s16": (17, "h"),
    "u16": (16, "H"),
    "s8": (15, "b"),
    "u8": (3, "B"),
}


def restore_literals(module: Module) -> None:
    """Write elements of constants that only the proto has, but not of large ones or of another layout."""
    hidden = {
        i.name: i
        for i in module.instructions()
        if i.is_constant and i.literal.is_elided
        if i.is_array and i.element_count <= MOST_ELEMENTS and i.shape.is_row_major
    }
    path = ids_file_of(Path(module.filename)) if hidden and module.filename else None
    if path is None:
        return
    try:
        for name, data in _literals(read_bytes(path)):
            if name in hidden:
                _restore(hidden[name], data)
    except (IndexError, ValueError, OSError, struct.error):
        return


def _literals(data: bytes) -> Iterator[tuple[str, bytes]]:
    for instruction in instructions_of(data):
        own = dict(fields(instruction))
        name, literal = own.get(_NAME), own.get(_LITERAL)
        if isinstance(name, bytes) and isinstance(literal, bytes):
            yield name.decode(), literal


def _restore(constant: Instruction, data: bytes) -> None:
    values = _values(constant.element_type, data)
    if len(values) != constant.element_count:
        return
    text = text_of(constant.shape, values)
    if text is not None:
        constant.payload = text


def _values(element_type: str, data: bytes) -> Sequence[Value]:
    if element_type in _VARINTS:
        return [_signed(element_type, v) for v in numbers(data, _VARINTS[element_type])]
    if element_type not in _FIXED:
        return []
    number, letter = _FIXED[element_type]
    packed = b"".join(messages(data, number))
    found = [v for (v,) in struct.iter_unpack("<" + letter, packed)]
    if element_type == "bf16":
        return list(struct.unpack(f"<{len(found)}f", b"".join([struct.pack("<I", v << 16) for v in found])))
    if element_type in ("c64", "c128"):
        return [complex(a, b) for a, b in zip(found[::2], found[1::2], strict=True)]
    return found


def _signed(element_type: str, value: int) -> Value:
    if element_type == "pred":
        return bool(value)
    return value - (1 << 64) if element_type[0] == "s" and value >> 63 else value


# The order in which a front end made the operations of a module, from their names.
#
# A module before optimizations is printed in an order of XLA's printer. A name that was taken got the next
# number of its stem's count (`xla/service/name_uniquer.cc`): those with the same stem tell their order.


def in_creation_order(module: Module, ids: UniqueIds | None) -> None:
    """Put a module before optimizations in the order of ids, else of names, with what the front end made."""
    restore_unread_elements(module, ids)
    if ids is not None:
        ids.apply(module)
    else:
        in_named_order(module)


def in_named_order(module: Module) -> None:
    """Put the operations in the order of their numbers, operands first, unless names contradict it. So does
    a text in an order that XLA would not print: it was written by hand, and XLA's ids follow the text."""
    for computation in module.computations:
        has_all_names = all(not x.is_get_tuple_element for x in computation)
        is_by_hand = has_all_names and [*computation] != computation.post_order()
        order = _ordered(computation) if not is_by_hand else None
        if order is not None:
            computation.reorder(order)


def _ordered(computation: Computation) -> list[Instruction] | None:
    """An order with each instruction as early as possible in the text's order; None if there is none."""
    sorter = TopologicalSorter[Instruction]()
    series: dict[str, list[tuple[int, Instruction]]] = defaultdict(list)
    place = {}
    for k, i in enumerate(computation):
        place[i] = k
        found = _NUMBERED.fullmatch(i.name)
        stem, number = (found[1], int(found[2])) if found else (i.name, 0)
        series[stem].append((number, i))
        sorter.add(i, *i.operands, *i.control_predecessors)
    for named in series.values():
        named.sort(key=lambda pair: pair[0])
        for (_, a), (_, b) in pairwise(named):
            sorter.add(b, a)
    with suppress(CycleError):
        sorter.prepare()
        ready, out = list[tuple[int, Instruction]](), []
        while sorter:
            for i in sorter.get_ready():
                heapq.heappush(ready, (place[i], i))
            out.append(heapq.heappop(ready)[1])
            sorter.done(out[-1])
        return out
    return None


def replay_input(
    module: Module,
    config: ReplayConfig,
    *,
    order: OrderSource | None = None,
    ids_file: str | None = None,
) -> CompilationInput:
    """The module as a replay takes it, with ids and use-lists from the best source there is. The sources are
    XLA's ids in an HLO proto, XLA's earlier passes repeated on the module before optimizations, an estimate,
    and the order of the text. `order` selects one of them; HlofuseError where it cannot be had. `ids_file`
    names the proto; without it, it is looked for next to the module."""
    replayed_for = TARGETS[config.target]
    if not replayed_for.has_history:
        if ids_file is not None:
            unique_ids_for(module, ids_file)  # a file of another module is an error all the same
        if replayed_for.restores_use_lists and order in ("xla", "replayed"):
            raise HlofuseError(
                f"--order {order} is not supported for target {config.target}; expected estimated or text"
            )
        if order == "text":
            module.order_source = order
        return CompilationInput(module)
    if ids_file is not None and order not in (None, "xla"):
        raise HlofuseError("--ids FILE needs --order xla")
    ids = unique_ids_for(module, ids_file) if order in (None, "xla") else None
    if order == "xla" and ids is None:
        raise HlofuseError(
            f"--order xla needs XLA's ids, but there is no .hlo.pb next to {_name(module)}; give --ids FILE"
        )
    if order == "text":
        module.order_source = order
    if order not in (None, "replayed"):
        return CompilationInput(module, ids)
    lowering = lowering_from_dump(module, config)
    replayed = with_replayed_order(module, lowering.before) if lowering is not None else None
    if replayed is None and order == "replayed":
        raise HlofuseError(
            f"--order replayed needs the module before optimizations next to {_name(module)}, and a replay"
            " from there that gives this module"
        )
    return CompilationInput(replayed or module, ids, lowering=lowering)


def lowering_from_dump(module: Module, config: ReplayConfig) -> Compilation | None:
    """XLA's passes before fusion, repeated on the module before optimizations next to a dump of their result.
    None where nothing depends on the order, where there is no such module, and where it cannot be lowered."""
    if not TARGETS[config.target].has_history or module.order_source == "replayed":
        return None
    source = companions_of(module).before_optimizations
    if source is None:
        return None
    try:
        unoptimized = load(source)
        restore_literals(unoptimized)
        in_creation_order(unoptimized, unique_ids_for(unoptimized))
        lowering = lowering_to(module, unoptimized, config)
        lowering.span(Stage.INPUT)
    except HlofuseError:
        return None
    return lowering


def lowering_to(module: Module, unoptimized: Module, config: ReplayConfig) -> Compilation:
    """The passes before fusion on `unoptimized`, without those that did not run where XLA wrote `module`."""
    passes = _left_out(module)
    config = config.xla or config
    return Compilation.of(unoptimized, Stage.BEFORE, config.without_passes(passes) if passes else config)


def _left_out(module: Module) -> Strings:
    """Passes that did not run: without a GPU, XLA has no table of CUB's speeds and keeps its sorts."""
    instructions = [x for c in module.computations for x in c]
    if any(is_radix_sort(x) for x in instructions) or not any(x.opcode == "sort" for x in instructions):
        return ()
    return ("sort-rewriter",)


def _name(module: Module) -> str:
    return printable(module.filename) if module.filename else "it"
