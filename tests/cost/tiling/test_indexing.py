"""Expressions, index maps and symbolic tiles, and how they print."""

from __future__ import annotations

import pytest

from hlofuse.cost.tiling.constraints import Conjunction
from hlofuse.cost.tiling.expressions import (
    Expr,
    add,
    canonicalize,
    constant,
    floordiv,
    mod,
    mul,
    to_text,
    variable,
)
from hlofuse.cost.tiling.indexing_map import compose_simplified, make_map, map_from_sizes
from hlofuse.cost.tiling.op_kinds import operand_maps
from hlofuse.cost.tiling.simplifier import Simplifier
from hlofuse.cost.tiling.size_and_stride import symbolic_tile
from hlofuse.ir.text.reader import parse_module

D0, D1, D2 = variable(0), variable(1), variable(2)
NAMES = ["d0", "d1", "d2"]


def test_equal_expressions_are_one_object() -> None:
    assert add(mul(D0, 4), D1) is add(mul(D0, 4), D1)
    assert canonicalize(add(D1, mul(D0, 4))) is canonicalize(add(mul(D0, 4), D1))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (add(D0, -256), "d0 - 256"),
        (add(mul(D0, 2), floordiv(D1, 384)), "d0 * 2 + d1 / 384"),
        (mod(floordiv(D0, 4), 8), "(d0 / 4) mod 8"),
        (mul(add(D0, D1), 3), "(d0 + d1) * 3"),
        (add(D0, mul(D1, -3)), "d0 - d1 * 3"),
        (mul(D0, -1), "-d0"),
        (floordiv(D0, floordiv(D1, 2)), "d0 / (d1 / 2)"),
    ],
)
def test_text(expr: Expr, text: str) -> None:
    assert to_text(expr, NAMES) == text


def test_a_quotient_and_its_remainder_make_the_whole() -> None:
    simplifier = Simplifier([(0, 1023)])
    assert simplifier.simplify(add(mul(floordiv(D0, 32), 32), mod(D0, 32))) is D0
    assert simplifier.simplify(mod(D0, 2048)) is D0
    assert simplifier.simplify(floordiv(D0, 1024)) is constant(0)


def maps_of(line: str, operands: dict[str, str]) -> list[str]:
    """The maps of the root of a small module, as text."""
    parameters = "\n".join(f"  {n} = {t} parameter({i})" for i, (n, t) in enumerate(operands.items()))
    add_region = "r { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
    module = parse_module(f"HloModule m\n{add_region}ENTRY e {{\n{parameters}\n  ROOT x = {line}\n}}")
    return [str(m) for m in operand_maps(module.entry.root)]


@pytest.mark.parametrize(
    ("line", "operands", "maps"),
    [
        (
            "f32[8]{0} reduce(p, q), dimensions={1}, to_apply=r",
            {"p": "f32[8,32]{1,0}", "q": "f32[]"},
            ["(d0)[s0] -> (d0, s0), domain: d0 in [0, 7], s0 in [0, 31]", "(d0) -> (), domain: d0 in [0, 7]"],
        ),
        (
            "f32[16,4]{1,0} concatenate(p, q), dimensions={0}",
            {"p": "f32[10,4]{1,0}", "q": "f32[6,4]{1,0}"},
            [
                "(d0, d1) -> (d0, d1), domain: d0 in [0, 9], d1 in [0, 3]",
                "(d0, d1) -> (d0 - 10, d1), domain: d0 in [10, 15], d1 in [0, 3]",
            ],
        ),
        (
            "f32[256,768]{1,0} bitcast(p)",
            {"p": "f32[512,384]{1,0}"},
            ["(d0, d1) -> (d0 * 2 + d1 / 384, d1 mod 384), domain: d0 in [0, 255], d1 in [0, 767]"],
        ),
        (
            "f32[24]{0} bitcast(p)",
            {"p": "f32[2,3,4]{1,2,0}"},
            ["(d0) -> (d0 / 12, d0 mod 3, (d0 / 3) mod 4), domain: d0 in [0, 23]"],
        ),
        (
            "f32[5]{0} reverse(p), dimensions={0}",
            {"p": "f32[5]{0}"},
            ["(d0) -> (-d0 + 4), domain: d0 in [0, 4]"],
        ),
    ],
)
def test_maps_of_operations(line: str, operands: dict[str, str], maps: list[str]) -> None:
    assert maps_of(line, operands) == maps


def test_composition_constrains_what_the_second_map_takes() -> None:
    rows = map_from_sizes([D0, D2], [512, 512], [512])
    second = make_map([D0, add(D1, -384)], [(0, 511), (384, 511)])
    composed = compose_simplified(rows, second, replace_points=True)
    assert str(composed) == (
        "(d0, d1)[s0] -> (d0, s0 - 384), domain: d0 in [0, 511], d1 in [0, 511], s0 in [384, 511]"
    )
    assert symbolic_tile(composed) is None


def test_points_become_constants_unless_kept() -> None:
    plain = map_from_sizes([D0, D1], [8, 1])
    assert compose_simplified(plain, plain, replace_points=True).results == (D0, constant(0))
    assert compose_simplified(plain, plain, replace_points=False).results == (D0, D1)


def test_an_empty_map_says_so() -> None:
    only_five = map_from_sizes([constant(5)], [3])
    outer = make_map([D0], [(10, 19)])
    assert str(compose_simplified(only_five, outer, replace_points=True)) == "KNOWN EMPTY\n"


def tile(results: list[Expr], dims: list[int]) -> tuple[list[str], list[str], set[Conjunction]] | None:
    found = symbolic_tile(map_from_sizes(results, dims))
    if found is None:
        return None
    texts = [[to_text(e, NAMES) for e in part] for part in (found.sizes, found.strides)]
    return texts[0], texts[1], {*found.condition}


def test_tile_of_a_quotient_and_a_remainder() -> None:
    assert tile([floordiv(D0, 8), mod(D0, 8)], [64]) == (
        ["(d0 + 7) / 8", "d0 - ((d0 - 1) / 8) * 8"],
        ["1", "1"],
        {((mod(constant(8), D0), (0, 0)),), ((mod(D0, 8), (0, 0)),)},
    )


def test_tile_of_a_sum_fills_its_strides() -> None:
    sizes, _, condition = tile([add(mul(D0, 8), D1)], [4, 8]) or ([], [], set())
    assert sizes == ["d0 * d1"]
    assert condition == {((D0, (1, 1)),), ((D1, (1, 1)),), ((D1, (8, 8)),)}
    assert tile([add(mul(D0, 9), D1)], [4, 8]) is None, "there is a gap between rows"
