"""Conditions under which XLA:TPU leaves two operations in two kernels: codes TP… They were learnt from
compiled programs and are not XLA's, whose source for a TPU is not public."""

import math
import re

from hlofuse.analysis.elementwise import is_elementwise, without_bitcasts
from hlofuse.ir.graph import Instruction
from hlofuse.ir.grouping import reach
from hlofuse.ir.names import own_name
from hlofuse.ir.opcodes import values, with_trait
from .catalogue import catalogue
from .instruction_fusion import CandidatePair
from .verdict import condition

_ON_ITS_OWN = with_trait("collective") | values(
    "reduce reshape sort concatenate dynamic-update-slice gather scatter reduce-window custom-call"
    " select-and-scatter transpose rng-bit-generator reverse"
)
_MOVES = with_trait("collective") | {"copy"}
_KINDS = ("dynamic-update-slice", "scatter", "convolution", "reduce", "reduce-window")
_FEW = 1 << 18  # Elements of a product's operand that XLA:TPU reads again


def is_created(x: Instruction) -> bool:
    """True for a fusion that this pass made: those from before it are custom fusions."""
    return x.is_fusion and x.fusion_kind != "kCustom"


def kind(kernel: Instruction) -> str:
    """`loop`, or the opcode that decides how the kernel runs."""
    opcodes = {i.opcode for i in kernel.fused_computation} if is_created(kernel) else {kernel.opcode}
    found = next((o for o in _KINDS if o in opcodes), None)
    return found or ("loop" if is_created(kernel) or is_loop(kernel) else kernel.opcode)


def is_loop(x: Instruction) -> bool:
    """Computed element by element; XLA:TPU treats copies and collectives as moves of data."""
    return is_elementwise(x) and x.opcode not in _MOVES


def is_pool(x: Instruction) -> bool:
    """True if a window moves over whole tiles: over none of the two minor dimensions."""
    sizes = [d.size for d in x.attributes["window"]] if x.opcode == "reduce-window" and x.is_array else []
    return any(n > 1 for n in sizes) and all(sizes[k] == 1 for k in x.minor_to_major[:2])


def readers(producer: Instruction, consumer: Instruction) -> list[tuple[Instruction, int]]:
    """The instructions of a consumer that read the producer, with the operand's number."""
    if not is_created(consumer):
        return [(consumer, k) for k, o in enumerate(consumer.operands) if o is producer]
    parameter = consumer.parameter_of(producer)
    return [(u, k) for u in parameter.users for k, o in enumerate(u.operands) if o is parameter]


def _takes_in(reader: Instruction, number: int, value: Instruction) -> bool:
    """True if a kernel may compute the operand while it computes the reader."""
    inside = reader.fusion_around is not None
    opcode = reader.opcode
    if opcode == "bitcast" and _tile(reader) == _tile(reader.operand):
        return inside or (bool(reader.users) and all(_takes_all(reader, u) for u in reader.users))
    if opcode == "slice":
        return value.opcode == "pad"
    if opcode == "dynamic-update-slice":
        return number <= _writes_tiles(reader) and (inside or reader.operand.user_count == 1)
    if opcode == "convolution":
        is_narrow = value.opcode == "convert" and value.byte_size == value.element_count
        return not (is_narrow and is_loop(value.operand))
    if is_pool(reader):
        return value.user_count == 1
    return opcode in ("reduce", "scatter") or (is_loop(reader) and opcode != "fusion")


def _writes_tiles(x: Instruction) -> bool:
    """True if what is written has the two minor dimensions of the array, or multiples of a tile's."""
    minor = zip(x.minor_to_major, (128, 8), strict=False)
    return all(x.second.sizes[k] in (x.sizes[k], x.second.sizes[k] // n * n) for k, n in minor)


def _tile(x: Instruction) -> int:
    """Elements of a tile; 1 without tiles."""
    layout = x.shape.layout
    return math.prod(layout.tiles[0] if layout is not None and layout.tiles else ())


def _leaves_gaps(x: Instruction) -> bool:
    """True for a slice of every second element or so, and for padding between elements."""
    if x.is_slice:
        strides, minor = x.attributes["slice"].strides, x.minor_to_major[:2]
        return any(stride > 1 for k, stride in enumerate(strides) if k in minor)
    return x.opcode == "pad" and any(part.count("_") > 1 for part in (x.raw("padding") or "").split("x"))


def _joins_sublanes(x: Instruction) -> bool:
    """True for a bitcast to another size of the second minor dimension alone, unless a product reads it."""
    old, new = ([s.dimensions[k] for k in s.minor_to_major] for s in (x.operand.shape, x.shape))
    joins = x.is_bitcast and old[:1] == new[:1] and old[1:2] != new[1:2]
    return joins and any(u.opcode != "convolution" for u in x.users)


def _adds_ones(x: Instruction) -> bool:
    """True for a reshape of a vector to one row or column."""
    sizes = tuple(n for n in x.sizes if n > 1)
    return x.is_reshape and x.operand.sizes == sizes


def _takes_all(producer: Instruction, user: Instruction) -> bool:
    return all(_takes_in(u, k, producer) for u, k in readers(producer, user))


@condition("TP001", "The consumer moves data, or an earlier pass made its kernel")
def consumer_takes_nothing(pair: CandidatePair) -> bool:
    takes = pair.consumer.opcode not in ("bitcast", "tuple") and _takes_all(pair.producer, pair.consumer)
    return not takes


@condition("TP002", "The producer is a kind of operation that is a kernel of its own")
def producer_on_its_own(pair: CandidatePair) -> bool:
    producer = pair.producer
    if producer.opcode == "copy":
        keeps_lanes = producer.minor_to_major[:1] == producer.operand.minor_to_major[:1]
        return not keeps_lanes or any(_joins_sublanes(r) for r, _ in readers(producer, pair.consumer))
    if producer.is_fusion:
        return not (is_created(producer) and kind(producer) == "loop")
    if is_pool(producer) and producer.user_count == 1:
        return not is_loop(readers(producer, pair.consumer)[0][0])
    if producer.opcode == "convert" and producer.operand.opcode == "and" and producer.user_count == 1:
        return producer.element_type == "pred"  # one bit of a mask of bits
    if _adds_ones(producer):
        return _writes(readers(producer, pair.consumer)[0][0])
    return producer.opcode in _ON_ITS_OWN or _leaves_gaps(producer)


@condition("TP003", "The producer is a scalar")
def scalar(pair: CandidatePair) -> bool:
    shape = pair.producer.shape
    return shape.is_array and shape.element_count == 1 and not pair.producer.is_constant


@condition("TP004", "The producer is the result of a product's kernel")
def end_of_product(pair: CandidatePair) -> bool:
    producer = pair.producer
    if producer not in pair.state.ends:
        return False
    reading = readers(producer, pair.consumer)
    reader, number = next((r for r in reading if _is_product(r[0])), reading[0])
    if _writes(reader):
        return producer.user_count > 1
    # XLA:TPU chains two products if it computes the first again cheaply, and no reshape lies between.
    is_view = producer.is_bitcast and without_bitcasts(producer).opcode == "convolution"
    inside = pair.consumer.fused_computation if is_created(pair.consumer) else [pair.consumer]
    is_second = [i.opcode for i in inside].count("convolution") == 1
    chained = _is_product(reader) and is_second and not is_view
    return not (chained and producer.user_count == 1 and _is_cheap_again(producer, reader, number))


def _is_cheap_again(end: Instruction, second: Instruction, number: int) -> bool:
    """True if tiles of the second product may compute the first again, for one batch. The first multiplies
    `rows` × `depth` by `depth` × `inner` elements, the second its result by `inner` × `columns`."""
    before = reach([end], lambda x: map(without_bitcasts, x.operands) if is_loop(x) else ())
    result = end.element_count
    first = next((x for x in before if x.opcode == "convolution" and x.element_count == result), None)
    if first is not None and not _may_be_chained(first):
        return False
    if first is None or not result * second.operands[1 - number].element_count:
        return True
    batch = math.prod(d.base_dilation for d in second.attributes.get("window", ()))
    values = (*first.operands, end, second.operands[1 - number], second)
    left, right, middle, other, last = (x.element_count / batch for x in values)
    depth, rows = math.sqrt(left * right / middle), math.sqrt(middle * last / other)
    inner, columns = math.sqrt(middle * other / last), math.sqrt(other * last / middle)
    if rows * depth <= _FEW:
        return True
    if number:
        return columns <= 1024 and depth * inner <= 4 * _FEW
    return min(depth, columns) * inner <= 3 * _FEW or inner >= 1.5 * max(depth, columns)


def _writes(x: Instruction) -> bool:
    """True for a dynamic-update-slice, and for bitcasts that only such read."""
    if x.is_bitcast:
        return bool(x.users) and all(map(_writes, x.users))
    return x.opcode == "dynamic-update-slice"


def _is_product(x: Instruction) -> bool:
    window = x.raw("window") or ""
    is_plain = "pad=" not in window and "rhs_dilate" not in window
    return x.opcode == "convolution" and is_plain and _may_be_chained(x)


def _may_be_chained(product: Instruction) -> bool:
    """True unless the product takes several passes, or multiplies features in groups."""
    precision = product.raw("operand_precision") or ""
    return "highest" not in precision and product.raw("feature_group_count") is None


@condition("TP005", "Its readers would read more to compute the producer again than it takes in memory")
def stays_in_memory(pair: CandidatePair) -> bool:
    producer, ends = pair.producer, pair.state.ends
    return not _writes(readers(producer, pair.consumer)[0][0]) and _stays(producer, ends, 3, {})


_Decided = dict[tuple[Instruction, int], bool]  # Answers so far: many values are computed from one another


def _stays(x: Instruction, ends: set[Instruction], depth: int, decided: _Decided) -> bool:
    if (x, depth) not in decided:
        decided[x, depth] = _reads_less(x, ends, depth, decided)
    return decided[x, depth]


def _reads_less(x: Instruction, ends: set[Instruction], depth: int, decided: _Decided) -> bool:
    reading = {own_name(r.origin) for u in x.users for r, _ in readers(x, u)}
    if not is_loop(x) or x.is_fusion or len(reading) < 2:
        return False
    stored = any(map(_stores, x.users))
    computing = [u for u in x.users if not _stores(u)]
    read = _arrays_read(x, ends, depth, decided)
    if x.opcode in ("sine", "cosine"):
        return len(computing) + stored > 1 and bool(read)
    size = sum(map(_size, read))
    chain = {*map(without_bitcasts, x.operands)} - read
    again = sum(_size(o) for u in computing for o in read if not (chain and o in u.operands))
    is_result = any(u.opcode == "tuple" for u in x.users)  # as many bytes decide as well
    return again + (stored - 1) * size + is_result > (len(computing) + 1 - stored) * _size(x)


def _size(x: Instruction) -> int:
    """The bytes of the value and of what its tiles add; padding is computed."""
    return (x.operand if x.opcode == "pad" else x).shape.buffer_size


def _arrays_read(x: Instruction, ends: set[Instruction], depth: int, decided: _Decided) -> set[Instruction]:
    """The arrays that an elementwise computation of `x` reads, from kernels before it."""

    def is_read(o: Instruction) -> bool:
        if not is_loop(o) or o.is_fusion or o in ends:
            return o is not x and o.opcode not in ("broadcast", "iota", "constant")
        return o is not x and o.user_count > 1 and bool(depth) and _stays(o, ends, depth - 1, decided)

    found = reach([x], lambda o: () if is_read(o) else map(without_bitcasts, o.operands))
    return {*filter(is_read, found)}


def _stores(user: Instruction) -> bool:
    """True for a result of the computation, a pad, a slice, a copy, and for bitcasts that only such read."""
    if user.is_bitcast:
        return bool(user.users) and any(map(_stores, user.users))
    return user.opcode in ("tuple", "pad", "slice", "copy")


RULES = (consumer_takes_nothing, producer_on_its_own, scalar, end_of_product, stays_in_memory)


def reason(code: str) -> str:
    """Why a pair was not fused, with the share of such pairs that XLA:TPU did not fuse either."""
    rule = catalogue()[code]
    right, pairs = map(int, re.findall(r"\d+", rule.why))
    return f"{rule.title} ({100 * right // pairs}% of {pairs:,} such pairs; {code})"
