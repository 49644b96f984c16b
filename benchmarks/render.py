"""How long `hlofuse render` takes on big modules, part by part.

    python benchmarks/render.py [--sizes 1000,10000,50000] [--shape stack|mesh] [INPUT...]

Without files it writes modules of its own: `stack` is a transformer-like training step (layers forward,
then backward, each layer's activations kept for the way back), `mesh` random element by element
operations, each on two of the hundred before it. Prints seconds for planning (module to DOT) and for
Graphviz (DOT to SVG), the boxes drawn and the size of the SVG.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from hlofuse.inputs import load
from hlofuse.ir import Module, parse_module
from hlofuse.render import render

_X = "f32[64,256]{1,0}"


def stack(size: int) -> str:
    """Layers forward and back, with scopes in `op_name` as a framework writes them."""
    lines = [f"  w = {_X} parameter(0)", "  half = f32[] constant(0.5)"]
    remaining: list[tuple[str, str]] = []
    current, count = "w", 0
    layers = max(1, size // 16)

    def add(opcode: str, operands: str, scope: str) -> str:
        nonlocal count
        count += 1
        lines.append(
            f'  v{count} = {_X} {opcode}({operands}), metadata={{op_name="jit(step)/{scope}/{opcode}"}}'
        )
        return f"v{count}"

    for layer in range(layers):
        scope = f"fwd/layer_{layer}"
        first = add("multiply", f"{current}, w", f"{scope}/attn")
        bent = add("tanh", first, f"{scope}/attn")
        added = add("add", f"{bent}, {current}", f"{scope}/attn")
        wide = add("exponential", added, f"{scope}/mlp")
        current = add("subtract", f"{wide}, {first}", f"{scope}/mlp")
        remaining.append((first, wide))
    for layer in reversed(range(layers)):
        first, wide = remaining[layer]
        scope = f"bwd/layer_{layer}"
        current = add("multiply", f"{current}, {wide}", f"{scope}/mlp")
        current = add("negate", current, f"{scope}/mlp")
        slope = add("multiply", f"{current}, {first}", f"{scope}/attn")
        for _ in range(6):
            slope = add("sine", slope, f"{scope}/attn")
        step = add("multiply", f"{slope}, w", "update")
        current = add("add", f"{current}, {step}", f"{scope}/attn")
    lines[-1] = "  ROOT " + lines[-1].strip()
    return "HloModule stack\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


def mesh(size: int) -> str:
    """Random operations with nothing to tell them apart: the worst there is to draw."""
    pick = random.Random(0)
    lines = [f"  v0 = {_X} parameter(0)"]
    for n in range(1, size):
        a, b = pick.randint(max(0, n - 100), n - 1), pick.randint(max(0, n - 100), n - 1)
        lines.append(f"  v{n} = {_X} {pick.choice(['add', 'multiply', 'maximum'])}(v{a}, v{b})")
    lines[-1] = "  ROOT " + lines[-1].strip()
    return "HloModule mesh\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


def measure(module: Module) -> None:
    """One line of figures."""
    start = time.perf_counter()
    drawing = render(module)
    planned = time.perf_counter()
    svg = drawing.to_svg()
    done = time.perf_counter()
    count = sum(len(c) for c in module.computations)
    print(
        f"{module.name:>24} {count:>9,} {planned - start:>8.2f} {done - planned:>9.2f} {done - start:>8.2f} "
        f"{drawing.scene.box_count():>6} {len(svg) / 1000:>7.0f}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("inputs", nargs="*")
    parser.add_argument("--sizes", default="1000,10000,50000")
    parser.add_argument("--shape", choices=["stack", "mesh"])
    options = parser.parse_args()
    print(
        f"{'module':>24} {'count':>9} {'plan s':>8} {'graphviz':>9} {'total s':>8} {'boxes':>6} {'SVG kB':>7}"
    )
    if options.inputs:
        for path in options.inputs:
            measure(load(path))
        return 0
    for shape, write in (("stack", stack), ("mesh", mesh)):
        for size in map(int, options.sizes.split(",")):
            if options.shape in (None, shape):
                measure(parse_module(write(size)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
