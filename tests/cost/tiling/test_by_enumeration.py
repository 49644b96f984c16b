"""Index maps, tiles and conditions against all indices of small arrays, one by one."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from hlofuse.cost.tiling.constraints import ALWAYS, NEVER, Condition, both, either, one, simplify
from hlofuse.cost.tiling.expressions import (
    Expr,
    add,
    canonicalize,
    constant,
    floordiv,
    is_multiple_of,
    largest_divisor,
    mod,
    mul,
    substitute,
    to_text,
    variable,
)
from hlofuse.cost.tiling.indexing_map import IndexingMap, compose_simplified, make_map, map_from_sizes
from hlofuse.cost.tiling.op_kinds import operand_maps
from hlofuse.cost.tiling.simplifier import Simplifier, contains, intersect
from hlofuse.cost.tiling.size_and_stride import symbolic_tile
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.ir.text.reader import parse_module

D0, D1, D2 = variable(0), variable(1), variable(2)
Index = tuple[int, ...]


def value(expr: Expr, at: Iterable[int]) -> int:
    return substitute(expr, [constant(n) for n in at]).value


def draw(choose: random.Random, depth: int) -> Expr:
    """An expression of d0, d1 and d2, negative factors and offsets included."""
    if depth == 0 or choose.random() < 0.2:
        return choose.choice([D0, D1, D2, constant(choose.randrange(-9, 20))])
    inner = draw(choose, depth - 1)
    if choose.random() < 0.4:
        return add(inner, draw(choose, depth - 1))
    if choose.random() < 0.4:
        return mul(inner, choose.choice([-3, -1, 2, 3, 4, 8, 12]))
    return choose.choice([floordiv, mod])(inner, choose.choice([2, 3, 4, 6, 8, 12]))


def every(sizes: Iterable[int]) -> Iterator[Index]:
    return product(*(range(n) for n in sizes))


@pytest.mark.parametrize("seed", range(150))
def test_an_expression_keeps_its_values_and_stays_in_its_range(seed: int) -> None:
    choose = random.Random(seed)
    sizes = [choose.choice([1, 2, 3, 4, 6, 8]) for _ in range(3)]
    expr = draw(choose, 4)
    simplifier = Simplifier([(0, n - 1) for n in sizes])
    simple, canonical = simplifier.simplify(expr), canonicalize(expr)
    low, high = simplifier.range_of(expr)
    divisor = largest_divisor(expr)
    found = {at: value(expr, at) for at in every(sizes)}
    text = to_text(expr)
    assert all(value(simple, at) == value(canonical, at) == v for at, v in found.items()), text
    assert all(low <= v <= high for v in found.values()), text
    assert all(v == 0 if divisor == 0 else v % divisor == 0 for v in found.values()), text
    assert canonicalize(canonical) is canonical
    assert simplifier.simplify(simple) is simple


@pytest.mark.parametrize(
    ("expr", "sizes"),
    [
        (add(mul(D0, 3), D1), (4, 5)),
        (add(mul(D0, -3), mul(D1, -2)), (4, 5)),
        (add(D0, -7), (9,)),
        (mul(add(D0, -2), mul(add(D1, -3), 1)), (6, 5)),
        (mod(D0, 8), (8,)),
        (mod(D0, 8), (7,)),
        (mod(D0, 8), (9,)),
        (mod(add(D0, -1), 8), (9,)),
        (floordiv(D0, 8), (17,)),
        (floordiv(add(D0, -3), 2), (8,)),
        (floordiv(mul(D0, -1), 3), (8,)),
    ],
)
def test_ranges_of_single_steps_are_tight(expr: Expr, sizes: Index) -> None:
    values = [value(expr, at) for at in every(sizes)]
    assert Simplifier([(0, n - 1) for n in sizes]).range_of(expr) == (min(values), max(values))


@pytest.mark.parametrize(
    ("expr", "divisor"),
    [
        (D0, 1),
        (constant(-6), 6),
        (mul(D0, 12), 12),
        (mul(mul(D0, 6), D1), 6),
        (add(mul(D0, 12), mul(D1, 18)), 6),
        (add(mul(D0, 12), D1), 1),
        (mod(mul(D0, 12), 8), 4),
        (floordiv(mul(D0, 12), 4), 3),
        (floordiv(mul(D0, 12), -4), 3),
        (floordiv(mul(D0, 12), 5), 1),
        (floordiv(mul(D0, 12), D1), 1),
    ],
)
def test_known_divisors(expr: Expr, divisor: int) -> None:
    assert largest_divisor(expr) == divisor
    for factor in (1, 2, 3, 4, 5, 6, 7, 12):
        assert is_multiple_of(expr, factor) is (divisor % factor == 0)
        assert is_multiple_of(expr, -factor) is (divisor % factor == 0)


@pytest.mark.parametrize("seed", range(60))
def test_canonical_sums_and_products_do_not_depend_on_the_order(seed: int) -> None:
    choose = random.Random(seed)
    terms = [draw(choose, 2) for _ in range(4)]
    mixed = choose.sample(terms, 4)
    left = add(add(add(terms[0], terms[1]), terms[2]), terms[3])
    right = add(mixed[0], add(mixed[1], add(mixed[2], mixed[3])))
    assert canonicalize(left) is canonicalize(right)
    assert canonicalize(add(left, mul(right, -1))) is constant(0)
    assert canonicalize(mul(left, 6)) is canonicalize(mul(mul(right, 2), 3))
    assert canonicalize(mul(left, D0)) is canonicalize(mul(D0, right))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (floordiv(mul(D0, 6), 4), "(d0 * 3) / 2"),
        (floordiv(mul(D0, 4), 6), "(d0 * 2) / 3"),
        (floordiv(add(mul(D0, 8), 3), 8), "d0"),
        (floordiv(add(mul(D0, 8), 8), 8), "d0 + 1"),
        (floordiv(add(mul(D0, 4), 7), 8), "(d0 * 4 + 7) / 8"),
        (floordiv(add(mul(D0, 4), 11), 8), "d0 / 2 + 1"),
        (floordiv(add(mul(D0, 16), D1), 8), "d0 * 2 + d1 / 8"),
        (floordiv(add(D1, -8), 8), "d1 / 8 - 1"),
        (floordiv(D0, -1), "-d0"),
        (mod(mul(D0, 6), 4), "((d0 * 3) mod 2) * 2"),
        (mod(mul(D0, 8), 4), "0"),
        (mod(mod(D0, 12), 4), "d0 mod 4"),
        (mod(mod(D0, 4), 12), "d0 mod 4 mod 12"),
        (mod(add(mul(D0, 8), D1), 4), "d1 mod 4"),
        (mod(add(D1, mul(D0, 8)), 8), "d1 mod 8"),
        (mod(add(mul(D0, 2), D1), 4), "(d0 * 2 + d1) mod 4"),
        (mod(D0, D0), "0"),
        (add(mul(floordiv(D0, 4), 8), mul(mod(D0, 4), 2)), "d0 * 2"),
        (add(mul(floordiv(D0, 4), 8), mul(mod(D0, 4), 3)), "(d0 mod 4) * 3 + (d0 / 4) * 8"),
        (add(D0, add(mul(D0, 2), 4)), "d0 * 3 + 4"),
        (add(mul(D0, 2), mul(D0, -2)), "0"),
    ],
)
def test_canonical_forms(expr: Expr, text: str) -> None:
    assert to_text(canonicalize(expr), ("d0", "d1")) == text


@pytest.mark.parametrize("seed", range(60))
def test_a_narrowed_constraint_holds_for_the_same_indices(seed: int) -> None:
    choose = random.Random(seed)
    expr = choose.choice([D0, mul(D0, 2), mul(D0, 3), floordiv(D0, 3), floordiv(mul(D0, 3), 2), mod(D0, 5)])
    for _ in range(3):
        step = choose.choice([add, mul, floordiv])
        expr = step(expr, choose.choice([2, 3, 5]) if step is not add else choose.choice([-4, 1, 6]))
    low = choose.randrange(-10, 20)
    interval = low, low + choose.randrange(-1, 30)
    bare, narrow = Simplifier([(0, 23)]).narrow(expr, interval)
    for n in range(24):
        inside = interval[0] <= value(expr, [n]) <= interval[1]
        assert inside is (narrow[0] <= value(bare, [n]) <= narrow[1]), to_text(expr)


def test_intervals() -> None:
    assert intersect((0, 5), (3, 9)) == (3, 5)
    assert intersect((3, 9), (0, 5)) == (3, 5)
    assert contains((0, 5), (0, 5))
    assert not contains((0, 5), (0, 6))
    assert not contains((1, 5), (0, 5))


# ------------------------------------------------------------ conditions


def holds(condition: Condition, at: Index) -> bool:
    return any(all(lo <= value(e, at) <= hi for e, (lo, hi) in conjunction) for conjunction in condition)


def draw_condition(choose: random.Random) -> Condition:
    exprs = [D0, D1, mod(D0, 3), floordiv(D1, 2), constant(choose.randrange(5))]
    low = choose.randrange(4)
    return one(choose.choice(exprs), (low, low + choose.randrange(-1, 4)))


@pytest.mark.parametrize("seed", range(80))
def test_conditions_are_what_their_parts_say(seed: int) -> None:
    choose = random.Random(seed)
    parts = [draw_condition(choose) for _ in range(4)]
    a, b = either(parts[0], parts[1]), either(parts[2], parts[3])
    for at in every((6, 6)):
        each = [holds(p, at) for p in parts]
        assert holds(a, at) is (each[0] or each[1])
        assert holds(both(a, b), at) is ((each[0] or each[1]) and (each[2] or each[3]))
        assert holds(simplify(both(a, b)), at) is holds(both(a, b), at)
    assert simplify(both(a, a)) in (simplify(a), simplify(both(a, simplify(a))))
    assert both(a, ALWAYS) == both(ALWAYS, a) == a
    assert both(a, NEVER) == both(NEVER, a) == NEVER


def test_a_condition_without_open_parts_is_decided() -> None:
    assert simplify(one(constant(3), (3, 3))) == ALWAYS
    assert simplify(one(constant(3), (4, 5))) == NEVER
    assert simplify(one(D0, (2, 1))) == NEVER
    assert simplify(one(D0, (2, 2))) == one(D0, (2, 2))
    assert simplify(both(one(D0, (1, 4)), one(D0, (4, 9)))) == one(D0, (4, 4))
    assert both(one(D0, (1, 4)), one(D0, (5, 9))) == NEVER


# ------------------------------------------------------------ maps of operations


def positions(shape: Shape) -> NDArray[np.int64]:
    """The place in memory of each element."""
    sizes, order = shape.dimensions, shape.minor_to_major
    found = np.arange(math.prod(sizes), dtype=np.int64).reshape([sizes[d] for d in reversed(order)])
    return found.transpose(np.argsort(list(reversed(order)))) if sizes else found


def operation(line: str, *operands: str) -> Instruction:
    parameters = "\n".join(f"  p{i} = {t} parameter({i})" for i, t in enumerate(operands))
    region = "r { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
    return parse_module(f"HloModule m\n{region}ENTRY e {{\n{parameters}\n  ROOT x = {line}\n}}").entry.root


def reads(m: IndexingMap) -> dict[Index, set[Index]]:
    """For each index of the result within the domain, the indices that are read."""
    found: dict[Index, set[Index]] = {}
    rank = len(m.dims)
    for at in product(*(range(lo, hi + 1) for lo, hi in m.bounds)):
        if all(lo <= value(e, at) <= hi for e, (lo, hi) in m.constraints):
            found.setdefault(at[:rank], set()).add(tuple(value(e, at) for e in m.results))
    return found


def read_places(line: str, *operands: str) -> list[dict[Index, set[int]]]:
    """For each operand the row-major numbers of the elements that each element of the result needs."""
    root = operation(line, *operands)
    found = []
    for operand, m in zip(root.operands, operand_maps(root), strict=True):
        assert m is not None
        sizes = operand.shape.dimensions
        rows = {
            at: {int(np.ravel_multi_index(i, sizes)) if sizes else 0 for i in r} for at, r in reads(m).items()
        }
        found.append(rows)
    return found


def as_rows(values: NDArray[np.int64]) -> dict[Index, set[int]]:
    return {at: {int(v)} for at, v in np.ndenumerate(values)}


def numbers(*sizes: int) -> NDArray[np.int64]:
    return np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)


X = numbers(4, 3, 2)


@pytest.mark.parametrize(
    ("line", "operand", "wanted"),
    [
        ("f32[4,3,2] negate(p0)", "f32[4,3,2]", X),
        ("f32[2,4,3] transpose(p0), dimensions={2,0,1}", "f32[4,3,2]", X.transpose(2, 0, 1)),
        ("f32[3,2,4] transpose(p0), dimensions={1,2,0}", "f32[4,3,2]", X.transpose(1, 2, 0)),
        ("f32[4,3,2] reverse(p0), dimensions={0,2}", "f32[4,3,2]", X[::-1, :, ::-1]),
        ("f32[2,2,1] slice(p0), slice={[1:4:2], [1:3], [1:2]}", "f32[4,3,2]", X[1:4:2, 1:3, 1:2]),
        ("f32[1,2,2] slice(p0), slice={[3:4], [0:3:2], [0:2]}", "f32[4,3,2]", X[3:4, 0:3:2, :]),
        ("f32[12,2] reshape(p0)", "f32[4,3,2]", X.reshape(12, 2)),
        ("f32[4,6] reshape(p0)", "f32[4,3,2]", X.reshape(4, 6)),
        ("f32[3,8] reshape(p0)", "f32[4,3,2]", X.reshape(3, 8)),
        ("f32[2,2,6] reshape(p0)", "f32[4,3,2]", X.reshape(2, 2, 6)),
        ("f32[24] reshape(p0)", "f32[4,3,2]", X.reshape(24)),
        ("f32[1,4,3,1,2] reshape(p0)", "f32[4,3,2]", X.reshape(1, 4, 3, 1, 2)),
        ("f32[5,3,4] broadcast(p0), dimensions={1,2}", "f32[3,4]", np.broadcast_to(numbers(3, 4), (5, 3, 4))),
        ("f32[4,5,3] broadcast(p0), dimensions={2}", "f32[3]", np.broadcast_to(numbers(3), (4, 5, 3))),
        ("f32[4,2] broadcast(p0), dimensions={}", "f32[]", np.zeros((4, 2), dtype=np.int64)),
    ],
)
def test_maps_read_what_numpy_reads(line: str, operand: str, wanted: NDArray[np.int64]) -> None:
    assert read_places(line, operand) == [as_rows(wanted)]


@pytest.mark.parametrize(
    ("result", "operand"),
    [
        ("f32[3,8]{1,0}", "f32[4,6]{1,0}"),
        ("f32[8,3]{0,1}", "f32[3,8]{1,0}"),
        ("f32[2,3,4]{0,2,1}", "f32[4,6]{0,1}"),
        ("f32[2,3,4]{1,2,0}", "f32[6,4]{1,0}"),
        ("f32[24]{0}", "f32[2,3,4]{1,2,0}"),
        ("f32[2,3,4]{2,1,0}", "f32[3,4,2]{1,0,2}"),
        ("f32[2,3,4]{2,1,0}", "f32[4,2,3]{0,2,1}"),
        ("f32[1,6,4]{0,2,1}", "f32[6,4]{1,0}"),
        ("f32[4,2,3]{1,0,2}", "f32[3,8]{1,0}"),
    ],
)
def test_a_bitcast_reads_the_same_place_in_memory(result: str, operand: str) -> None:
    root = operation(f"{result} bitcast(p0)", operand)
    (m,) = operand_maps(root)
    assert m is not None
    there, here = positions(root.operands[0].shape), positions(root.shape)
    assert all({here[at]} == {there[i] for i in found} for at, found in reads(m).items())
    assert len(reads(m)) == here.size


def test_a_bitcast_to_narrower_elements_has_no_map() -> None:
    assert operand_maps(operation("s8[8] bitcast(p0)", "s32[2]")) == (None,)


@pytest.mark.parametrize("reduced", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_a_reduction_reads_all_that_it_adds(reduced: tuple[int, ...]) -> None:
    left = [n for d, n in enumerate((4, 3, 2)) if d not in reduced]
    sizes, axes = ",".join(map(str, left)), ",".join(map(str, reduced))
    line = f"f32[{sizes}] reduce(p0, p1), dimensions={{{axes}}}, to_apply=r"
    own, start = read_places(line, "f32[4,3,2]", "f32[]")
    places = np.moveaxis(X, reduced, range(-len(reduced), 0)).reshape(*left, -1)
    assert own == {at: set(map(int, places[at])) for at in every(left)}
    assert start == {at: {0} for at in every(left)}


def test_parts_of_a_concatenation_are_read_where_they_stand() -> None:
    parts = read_places(
        "f32[2,9] concatenate(p0, p1, p2), dimensions={1}", "f32[2,3]", "f32[2,1]", "f32[2,5]"
    )
    first = 0
    for n, part in zip((3, 1, 5), parts, strict=True):
        assert part == {(i, first + j): {i * n + j} for i in range(2) for j in range(n)}
        first += n


@pytest.mark.parametrize(
    ("left", "right", "attributes", "spec"),
    [
        ((3, 4), (4, 5), "lhs_contracting_dims={1}, rhs_contracting_dims={0}", "mk,kn->mn"),
        ((4, 3), (5, 4), "lhs_contracting_dims={0}, rhs_contracting_dims={1}", "km,nk->mn"),
        (
            (2, 3, 4),
            (4, 2, 5),
            "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
            "bmk,kbn->bmn",
        ),
        ((2, 3, 4), (4, 3, 5), "lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}", "mjk,kjn->mn"),
    ],
)
def test_a_product_reads_rows_and_columns(left: Index, right: Index, attributes: str, spec: str) -> None:
    ins, out = spec.split("->")
    a, b = ins.split(",")
    size = dict(zip(a + b, left + right, strict=True))
    shapes = [f"f32[{','.join(map(str, s))}]" for s in ([size[c] for c in out], left, right)]
    found = read_places(f"{shapes[0]} dot(p0, p1), {attributes}", shapes[1], shapes[2])
    summed = [c for c in size if c not in out]
    for names, rows in zip((a, b), found, strict=True):
        for at in every(size[c] for c in out):
            fixed = dict(zip(out, at, strict=True))
            wanted = set()
            for rest in every(size[c] for c in summed):
                place = fixed | dict(zip(summed, rest, strict=True))
                wanted.add(int(np.ravel_multi_index([place[c] for c in names], [size[c] for c in names])))
            assert rows[at] == wanted


def test_a_scalar_predicate_is_read_for_every_element() -> None:
    chosen, own, _ = read_places("f32[2,3] select(p0, p1, p2)", "pred[]", "f32[2,3]", "f32[2,3]")
    assert chosen == {at: {0} for at in every((2, 3))}
    assert own == as_rows(numbers(2, 3))


# ------------------------------------------------------------ compositions

MAPS = [
    map_from_sizes([D0, D1], [4, 6]),
    map_from_sizes([D1, D0], [6, 4]),
    map_from_sizes([floordiv(D0, 6), mod(D0, 6)], [24]),
    map_from_sizes([D0, add(mul(D1, 2), 1)], [4, 2]),
    map_from_sizes([D0, variable(1)], [4], [6]),
    map_from_sizes([variable(2), D1], [3, 6], [4]),
    make_map([D0, add(D1, -2)], [(0, 3), (2, 7)]),
    make_map([D0, D1], [(0, 3), (0, 5)], (), [(add(D0, D1), (3, 6))]),
    make_map([D0, D1], [(0, 5), (0, 7)]),
]
"""Maps to indices of an array of 4 × 6, the last one to more."""
SECOND = [
    map_from_sizes([D0, D1], [4, 6]),
    map_from_sizes([D1], [4, 6]),
    make_map([add(mul(D0, 6), D1)], [(0, 3), (0, 5)]),
    make_map([add(D1, -3)], [(1, 3), (3, 5)]),
    map_from_sizes([D0, variable(2)], [4, 6], [2]),
    make_map([D0, D1], [(0, 3), (0, 5)], (), [(mod(add(D0, D1), 3), (0, 1))]),
]


@pytest.mark.parametrize("replace_points", [True, False])
@pytest.mark.parametrize("second", SECOND, ids=str)
@pytest.mark.parametrize("first", MAPS, ids=str)
def test_a_composition_reads_through_both(
    first: IndexingMap, second: IndexingMap, replace_points: bool
) -> None:
    inner = reads(second)
    wanted: dict[Index, set[Index]] = {}
    for at, middle in reads(first).items():
        if found := {i for m in middle for i in inner.get(m, ())}:
            wanted[at] = found
    assert reads(compose_simplified(first, second, replace_points)) == wanted


# ------------------------------------------------------------ tiles


def lattice(start: int, stride: int, size: int) -> set[int]:
    return {start + stride * k for k in range(size)}


def blocks(sizes: Index, tile: Index) -> Iterator[tuple[Index, list[Index]]]:
    """The start and the indices of each block that lies within the array."""
    for number in every(n // t for n, t in zip(sizes, tile, strict=True)):
        start = tuple(k * t for k, t in zip(number, tile, strict=True))
        yield start, [tuple(s + i for s, i in zip(start, at, strict=True)) for at in every(tile)]


def _id(given: list[Expr] | Index) -> str:
    return ", ".join(to_text(n) if isinstance(n, Expr) else str(n) for n in given)


TILED = [
    ([D0], (6,)),
    ([add(D0, 3)], (6,)),
    ([add(mul(D0, 3), 1)], (6,)),
    ([add(mul(D0, -1), 5)], (6,)),
    ([D1, D0], (4, 6)),
    ([constant(2), D0], (4, 2)),
    ([floordiv(D0, 4), mod(D0, 4)], (24,)),
    ([floordiv(D0, 6), mod(D0, 6)], (24,)),
    ([floordiv(D0, 12), mod(floordiv(D0, 4), 3), mod(D0, 4)], (24,)),
    ([add(mul(D0, 4), D1)], (6, 4)),
    ([add(mul(D0, 8), add(mul(D1, 2), D2))], (3, 4, 2)),
    ([add(mul(D0, 12), add(mul(D1, 3), D2))], (2, 4, 3)),
    ([add(D0, mul(D1, 4))], (4, 6)),
]


@pytest.mark.parametrize(("results", "sizes"), TILED, ids=_id)
def test_a_tile_holds_the_indices_of_each_block(results: list[Expr], sizes: Index) -> None:
    """The condition holds for a tile size if, and only if, each block reads what size and stride say."""
    found = symbolic_tile(map_from_sizes(results, sizes))
    assert found is not None
    for tile in product(*([k for k in range(1, n + 1) if k == n or not k & (k - 1)] for n in sizes)):
        limits = [min(t, n) for t, n in zip(tile, found.limits, strict=True)]
        size = [value(e, tile) for e in found.sizes]
        stride = [value(e, limits) for e in found.strides]
        fits = True
        for start, indices in blocks(sizes, tile):
            for k, expr in enumerate(results):
                read = {value(expr, at) for at in indices}
                fits = fits and read == lattice(value(expr, start), stride[k], size[k])
        assert [value(e, [0] * len(sizes)) for e in results] == [e.value for e in found.offsets]
        assert holds(found.condition, tile) is fits, (tile, size, stride)


@pytest.mark.parametrize(
    ("results", "sizes"),
    [
        ([add(mul(D0, 5), D1)], (6, 4)),
        ([add(mul(D0, 3), D1)], (6, 4)),
        ([add(mul(D0, 2), floordiv(D1, 4)), mod(D1, 4)], (3, 8)),
        ([floordiv(D0, 2), add(mul(mod(D0, 2), 4), D1)], (6, 4)),
        ([floordiv(mul(D0, 3), 2)], (6,)),
        ([mod(mul(D0, 3), 4)], (6,)),
        ([floordiv(D0, add(D1, 1))], (6, 4)),
        ([add(floordiv(D0, 3), D1)], (6, 4)),
    ],
    ids=_id,
)
def test_indices_with_gaps_have_no_tile(results: list[Expr], sizes: Index) -> None:
    assert symbolic_tile(map_from_sizes(results, sizes)) is None


@pytest.mark.parametrize(("factor", "found"), [(3, False), (4, True), (5, True), (8, True)])
def test_gaps_between_rows_are_taken_where_asked_for(factor: int, found: bool) -> None:
    sliced = map_from_sizes([add(mul(D0, factor), D1)], [6, 4])
    tile = symbolic_tile(sliced, gaps=True)
    assert (tile is not None) is found
    if tile is not None:
        assert holds(tile.condition, (1, 4))
        assert holds(tile.condition, (6, 1))
        assert holds(tile.condition, (2, 4)) is (factor == 4)
        assert not holds(tile.condition, (2, 2))


def test_symbols_are_read_whole() -> None:
    tile = symbolic_tile(map_from_sizes([D0, variable(1)], [8], [32]))
    assert tile is not None
    assert (tile.sizes, tile.strides) == ((D0, constant(32)), (constant(1), constant(1)))
    beyond = make_map([D0, variable(1)], [(0, 7)], [(1, 32)])
    assert symbolic_tile(beyond) is None
    below = make_map([D0], [(0, 7)], (), [(D0, (0, 5))])
    assert symbolic_tile(below) is not None


def test_a_constraint_that_is_no_padding_has_no_tile() -> None:
    padded = make_map([add(D0, D1)], [(0, 3), (0, 3)], (), [(add(D0, D1), (0, 5))])
    shifted = make_map([add(D0, D1)], [(0, 3), (0, 3)], (), [(add(D0, D1), (1, 5))])
    other = make_map([D0], [(0, 3), (0, 3)], (), [(add(D0, D1), (0, 5))])
    assert symbolic_tile(shifted) is None
    assert symbolic_tile(other) is None
    assert symbolic_tile(padded) is None or padded.constraints
