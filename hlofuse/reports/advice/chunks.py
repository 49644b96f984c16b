"""Large arrays, and what follows from them, in loops over parts of one dimension."""

from hlofuse.ir import Instruction, Instructions, Shape, reach
from hlofuse.passes.common import make
from hlofuse.passes.common.index_vectors import counted_loop
from hlofuse.passes.common.shapes import with_dimensions
from hlofuse.passes.control_flow.partition import WHOLE, resize, sharding_rule
from hlofuse.passes.dce import HloDCE
from hlofuse.trace import OnlySkipped
from .matching import is_total
from .recipe import Recipe
from .written import Rewriting, starts_at

_LEAST = 1 << 25  # Bytes of an array that is small enough
_SMALLER = 4  # A part is so many times smaller than the largest argument or result
_NONE = -1
_SPREAD = ("broadcast", "iota")
_SEVERAL = ("reduce", "sort")  # Operations whose results have the same shape, if there are several
_LARGE = "add convert dot exponential gather multiply reduce reshape scatter select subtract tanh transpose"


def compute_in_parts(x: Instruction) -> bool:
    """The largest array, at least twice any argument or result, is computed in parts, with all as large."""
    entry, size = x.computation, x.byte_size
    if entry is None or not entry.is_entry or size < 2 * _LEAST:
        return False
    given = [s.byte_size for i in (*entry.parameters, entry.root) for s in i.shape.leaf_shapes]
    limit = max(_LEAST, *given)
    if size < 2 * limit or any(i.byte_size > size for i in entry if i.is_array):
        return False
    if (root := entry.root).opcode in ("topk", *_SEVERAL) and root.is_tuple:
        entry.root = make.tuple_of(root, make.elements(root, range(root.tuple_size)))
    sizes, needed = x.sizes, -(-_SMALLER * size // limit)
    for d in sorted(range(x.rank), key=lambda d: -min(sizes[d], needed)):
        count = next(n for n in range(min(sizes[d], needed), sizes[d] + 1) if sizes[d] % n == 0)
        along = _region(x, d, limit) if count > 1 else None
        if along is not None and _write(along, count):
            HloDCE().run(entry.parent, OnlySkipped())
            return True
    return False


def _places(reader: Instruction, x: Instruction, d: int) -> list[int]:
    """The dimensions that are divided with that of `x`; nothing where a part of `x` is not enough."""
    if reader.is_get_tuple_element:
        return [d, d] if reader.operand.opcode in ("topk", *_SEVERAL) else []
    if reader.opcode == "topk":
        return [] if d == reader.operand.rank - 1 else [d, d]
    rule = sharding_rule(reader) if reader.is_array or reader.opcode in _SEVERAL else None
    if rule is None:
        return []
    sides = [*rule.operands, rule.result]
    own = zip((*reader.operands, reader), sides, strict=True)
    factors = {places[d] for o, places in own if o is x}
    if len(factors) > 1 or WHOLE in factors:
        return []
    factor = factors.pop()
    return [places.index(factor) if factor in places else _NONE for places in sides]


def _adds(x: Instruction) -> bool:
    return is_total(x) or x.opcode in ("dot", "convolution", "scatter")


def _region(x: Instruction, d: int, limit: int) -> dict[Instruction, int] | None:
    """The values computed in parts with `x`, each with its dimension; None where one is needed as a whole."""
    along = {x: d}
    arrays = (i for i in x.parent if i.is_array and not i.is_parameter)
    large = {i for i in arrays if i.byte_size > limit}
    ends = [i for i in large if i.opcode not in _SPREAD]
    below = set(reach(ends, lambda i: i.users))
    above = set(reach(ends, lambda i: i.operands))
    between = below & above
    queue = [x]
    for i in queue:
        near = [i] if i.opcode in _SPREAD else [i, *i.users]
        for y in near:
            places = _places(y, i, along[i])
            if y not in between and i not in large and i.is_array:
                continue
            if not places:
                return None
            for o, place in zip((*y.operands, y), places, strict=False):
                if place == _NONE and o is y and (y in between or not _adds(y)):
                    return None
                if place == _NONE or not (o is y or o in large or o in between):
                    continue
                if o not in along:
                    queue.append(o)
                if along.setdefault(o, place) != place:
                    return None
    return along


def _write(along: dict[Instruction, int], count: int) -> bool:
    """A loop computes the values that others read; False where there are none, or it waits for the others."""
    at = next(iter(along))
    parts = {i: _places(i, i, along[i]) for i in at.parent.post_order() if i in along}
    sums = {}
    rows = dict.fromkeys(i for i in parts if i.is_root)
    for i in parts:
        for user in () if i.opcode in _SPREAD else i.users:
            places = _places(user, i, along[i])
            if user not in along and places and places[-1] == _NONE and _adds(user):
                sums[user] = places
            elif user not in along:
                rows[i] = None
    pairs = [(o, d) for i, places in (parts | sums).items() for o, d in zip(i.operands, places, strict=False)]
    leaves = [o for o in dict.fromkeys(o for o, _ in pairs) if o not in along and not o.is_constant]
    later = set(reach(parts, lambda i: i.users))
    results = [*rows, *sums]
    if not results or any(along.get(o, d) != d for o, d in pairs) or not later.isdisjoint(leaves):
        return False

    def iteration(number: Instruction, state: Instructions) -> Instructions:
        values = dict(zip(leaves, state, strict=False))

        def starts(x: Instruction, d: int) -> Instructions:
            length = make.scalar(number, "s32", x.sizes[d] // count)
            return starts_at(number, x.rank, make.binary(number, "multiply", number, length), d)

        def shape(of: Shape, d: int) -> Shape:
            if of.is_tuple:
                return Shape.tuple_of([shape(s, d) for s in of.tuple_shapes])
            sizes = list(of.dimensions)
            sizes[d] //= count
            return with_dimensions(of, sizes)

        def operand(o: Instruction, d: int) -> Instruction:
            value = values[o] if o in values else number.parent.add_instruction(o.clone())
            if o in along or d == _NONE:
                return value
            return make.dynamic_slice(number, value, starts(o, d), shape(o.shape, d).dimensions)

        for x, places in (parts | sums).items():
            operands = [operand(o, d) for o, d in zip(x.operands, places, strict=False)]
            d = along.get(x, _NONE)
            new = x.clone(operands, shape=x.shape if d == _NONE else shape(x.shape, d))
            number.parent.add_instruction(new)
            if x.is_array:
                resize(new, [k == d for k in range(x.rank)])
            values[x] = new
        found = Instructions()
        for x, total in zip(results, state[len(leaves) :], strict=True):
            if x in sums:
                found.append(make.binary(number, "add", total, values[x]))
            else:
                place = starts(x, along[x])
                found.append(make.dynamic_update_slice(number, total, values[x], place))
        return [*state[: len(leaves)], *found]

    zeros = [make.zeros(at, i.shape) for i in results]
    after = counted_loop(at, [*leaves, *zeros], iteration, count)
    for i, new in zip(results, after[len(leaves) :], strict=True):
        i.replace_all_uses_with(new)
    return True


CHUNKS = {"compute-in-parts": Rewriting(_LARGE, compute_in_parts)}
IN_PARTS = (Recipe("compute-in-parts", "Compute the array in parts (jax.lax.map, or a scan over chunks)"),)
