"""How long `hlofuse diff` takes, and how that grows with the size of the modules.

    python benchmarks/diff.py [--sizes 5000,10000,20000] [BEFORE AFTER]

Without files it stacks layers of a small transformer-like block to the sizes asked for and compares
each stack with a renamed copy, with one that has a single change at the bottom, with one where 1% of the
instructions changed, with one computed in bf16, and with one that is fused. Times are CPU seconds: what else
runs on the machine does not count.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable

from hlofuse.diff import diff
from hlofuse.ir import parse_module

Line = tuple[str, str, list[int], str]
"""Shape, opcode, operands, attributes."""


def stack(size: int) -> list[Line]:
    """Layers of normalize, matrix product, gelu and residual, on shared constants, up to `size` lines."""
    x = "f32[64,256]{1,0}"
    lines: list[Line] = [(x, "parameter(0)", [], ""), ("f32[256,256]{1,0}", "parameter(1)", [], "")]
    for value in ("0", "1", "0.5", "1e-06"):
        lines.append(("f32[]", f"constant({value})", [], ""))

    def add(shape: str, opcode: str, operands: list[int], attributes: str = "") -> int:
        lines.append((shape, opcode, operands, attributes))
        return len(lines) - 1

    current = 0
    layer = 0
    while len(lines) < size - 2:
        layer += 1
        scale = add("f32[]", f"constant({layer})", [])
        total = add("f32[64]{0}", "reduce", [current, 2], "dimensions={1}, to_apply=region")
        wide = add(x, "broadcast", [total], "dimensions={0}")
        centred = add(x, "subtract", [current, wide])
        square = add(x, "multiply", [centred, centred])
        power = add("f32[64]{0}", "reduce", [square, 2], "dimensions={1}, to_apply=region")
        eps = add("f32[64]{0}", "broadcast", [5], "dimensions={}")
        scaled = add("f32[64]{0}", "rsqrt", [add("f32[64]{0}", "add", [power, eps])])
        normal = add(x, "multiply", [centred, add(x, "broadcast", [scaled], "dimensions={0}")])
        gain = add(x, "multiply", [normal, add(x, "broadcast", [scale], "dimensions={}")])
        product = add(x, "dot", [gain, 1], "lhs_contracting_dims={1}, rhs_contracting_dims={0}")
        half = add(x, "multiply", [product, add(x, "broadcast", [4], "dimensions={}")])
        cube = add(x, "multiply", [product, add(x, "multiply", [product, product])])
        bent = add(x, "tanh", [add(x, "add", [product, cube])])
        one = add(x, "add", [bent, add(x, "broadcast", [3], "dimensions={}")])
        current = add(x, "add", [current, add(x, "multiply", [half, one])])
    return lines


def text(lines: list[Line], seed: int = 0, fused: bool = False) -> str:
    """HLO with names by the seed; `fused` puts each run of elementwise operations into a fusion."""
    r = random.Random(seed)
    numbers = r.sample(range(10 * len(lines)), 4 * len(lines))
    names: list[str] = []
    body: list[str] = []
    computations = [
        "region {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
    ]
    for shape, opcode, operands, attributes in lines:
        name = f"{opcode.split('(')[0]}.{numbers.pop()}"
        given = [names[o] for o in operands]
        if fused and opcode in ("multiply", "add", "tanh", "subtract", "rsqrt"):
            unique = list(dict.fromkeys(operands))
            parameters = [f"  {name}.p{n} = {lines[o][0]} parameter({n})\n" for n, o in enumerate(unique)]
            inner = ", ".join(f"{name}.p{unique.index(o)}" for o in operands)
            root = f"  ROOT {name}.r = {shape} {opcode}({inner})\n"
            computations.append(f"fused.{name} {{\n{''.join(parameters)}{root}}}\n")
            given = [names[o] for o in unique]
            opcode, attributes = "fusion", f"kind=kLoop, calls=fused.{name}"
        call = opcode if "(" in opcode else f"{opcode}({', '.join(given)})"
        body.append(f"  {name} = {shape} {call}{', ' + attributes if attributes else ''}\n")
        names.append(name)
    body[-1] = "  ROOT " + body[-1].lstrip()
    return f"HloModule m\n\n{''.join(computations)}\nENTRY main {{\n{''.join(body)}}}\n"


def one_change(lines: list[Line]) -> list[Line]:
    at = next(i for i, line in enumerate(lines) if line[1] == "tanh")
    return [*lines[:at], (lines[at][0], "logistic", lines[at][2], ""), *lines[at + 1 :]]


def some_changes(lines: list[Line]) -> list[Line]:
    r = random.Random(1)
    out = list(lines)
    for i, (shape, opcode, operands, attributes) in enumerate(lines):
        if opcode in ("multiply", "add") and r.random() < 0.02:
            out[i] = (shape, "maximum", operands, attributes)
    return out


def other_type(lines: list[Line]) -> list[Line]:
    return [(shape.replace("f32", "bf16"), *rest) for shape, *rest in lines]  # type: ignore[misc]


def measure(name: str, before: str, after: str) -> float:
    start = time.process_time()
    one, other = parse_module(before), parse_module(after)
    parsed = time.process_time()
    found = diff(one, other)
    done = time.process_time()
    count = f"{found.before.instructions:>7,} {found.after.instructions:>7,}"
    result = f"{len(found.causes):>6,} changes {len(found.edits) - len(found.causes):>6,} following"
    print(f"{name:<22} {count}   parse {parsed - start:5.2f} s   diff {done - parsed:6.2f} s   {result}")
    return done - parsed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--sizes", default="5000,10000,20000")
    arguments = parser.parse_args()
    if arguments.files:
        texts = []
        for name in arguments.files:
            with open(name, encoding="utf-8") as file:
                texts.append(file.read())
        measure("files", *texts)
        return 0
    cases: dict[str, Callable[[list[Line]], str]] = {
        "renamed": lambda lines: text(lines, 1),
        "one change": lambda lines: text(one_change(lines), 1),
        "1% changed": lambda lines: text(some_changes(lines), 1),
        "bf16": lambda lines: text(other_type(lines), 1),
        "fused": lambda lines: text(lines, 1, fused=True),
    }
    slowest = 0.0
    for size in map(int, arguments.sizes.split(",")):
        lines = stack(size)
        for name, case in cases.items():
            slowest = max(slowest, measure(name, text(lines), case(lines)))
    print(f"slowest: {slowest:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
