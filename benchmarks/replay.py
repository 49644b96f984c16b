"""How long a replay takes for each module, and how that grows when layers are stacked.

    python benchmarks/replay.py [CORPUS_DIR] [--layers 1,4,16,64]

Times are CPU seconds of the replay alone, parsing not counted: the best of three.
"""

from __future__ import annotations

import argparse
import tarfile
import time
from pathlib import Path

from hlofuse.compilation import compile, replay_config
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Module

DATA = Path(__file__).parent.parent / "tests" / "data" / "cpu.tar.xz"


def seconds(module: Module, option: str | None = None) -> float:
    """CPU time of one replay."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        compile(module, replay_config("cpu", option=option))
        best = min(best, time.process_time() - start)
    return best


def count(module: Module) -> int:
    """Instructions in all computations."""
    return sum(1 for _ in module.instructions())


def modules(folder: Path | None) -> list[tuple[str, Module]]:
    """The corpus folder's modules, or the corpus part kept with the tests."""
    if folder is not None:
        return [(p.parent.name, parse_module(p.read_text())) for p in sorted(folder.glob("*/before.hlo"))]
    with tarfile.open(DATA) as tar:
        wanted = [m for m in tar if m.name.startswith("corpus/") and m.name.endswith("before.hlo")]
        texts = {m.name.split("/")[1]: tar.extractfile(m) for m in wanted}
        return [(name, parse_module(f.read().decode())) for name, f in sorted(texts.items()) if f is not None]


def stacked(layers: int) -> Module:
    """Layers of normalize, softmax, small products, slices and updates, each reading the one before."""
    x = "f32[64,64]{1,0}"
    lines = [f"%x0 = {x} parameter(0)", "%zero = f32[] constant(0)", "%low = f32[] constant(-inf)"]
    lines += ["%one = s32[] constant(1)", "%half = f32[] constant(0.5)"]
    for k in range(layers):
        a, n = f"%x{k}", f".{k}"
        lines += [
            f"%scale{n} = {x} broadcast(%half), dimensions={{}}",
            f"%scaled{n} = {x} multiply({a}, %scale{n})",
            f"%sum{n} = f32[64]{{0}} reduce(%scaled{n}, %zero), dimensions={{1}}, to_apply=%plus",
            f"%mean{n} = {x} broadcast(%sum{n}), dimensions={{0}}",
            f"%centered{n} = {x} subtract({a}, %mean{n})",
            f"%max{n} = f32[64]{{0}} reduce(%centered{n}, %low), dimensions={{1}}, to_apply=%most",
            f"%shift{n} = {x} broadcast(%max{n}), dimensions={{0}}",
            f"%shifted{n} = {x} subtract(%centered{n}, %shift{n})",
            f"%exp{n} = {x} exponential(%shifted{n})",
            f"%total{n} = f32[64]{{0}} reduce(%exp{n}, %zero), dimensions={{1}}, to_apply=%plus",
            f"%totals{n} = {x} broadcast(%total{n}), dimensions={{0}}",
            f"%soft{n} = {x} divide(%exp{n}, %totals{n})",
            f"%dot{n} = {x} dot(%soft{n}, {a}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            f"%left{n} = f32[32,64]{{1,0}} slice(%dot{n}), slice={{[0:32], [0:64]}}",
            f"%right{n} = f32[32,64]{{1,0}} slice(%dot{n}), slice={{[32:64], [0:64]}}",
            f"%gate{n} = f32[32,64]{{1,0}} tanh(%left{n})",
            f"%gated{n} = f32[32,64]{{1,0}} multiply(%gate{n}, %right{n})",
            f"%update{n} = {x} dynamic-update-slice(%dot{n}, %gated{n}, %one, %one)",
            f"%x{k + 1} = {x} add(%update{n}, {a})",
        ]
    lines.append(f"ROOT %out = ({x}) tuple(%x{layers})")
    helpers = "".join(
        f"%{name} (a.{name}: f32[], b.{name}: f32[]) -> f32[] {{\n  %a.{name} = f32[] parameter(0)\n"
        f"  %b.{name} = f32[] parameter(1)\n  ROOT %r.{name} = f32[] {opcode}(%a.{name}, %b.{name})\n}}\n\n"
        for name, opcode in (("plus", "add"), ("most", "maximum"))
    )
    body = "\n".join(f"  {line}" for line in lines)
    head = f"HloModule stacked\n\n{helpers}ENTRY %main (x0: f32[64,64]) -> (f32[64,64]) {{\n"
    return parse_module(head + body + "\n}\n")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--layers", default="1,4,16,64,256", help="layers stacked, separated by commas")
    a = parser.parse_args()
    print(f"{'module':32} {'instructions':>12} {'ms':>9} {'us each':>9}")
    total = 0.0
    for name, module in modules(a.corpus):
        n, t = count(module), seconds(module)
        total += t
        print(f"{name:32} {n:12} {t * 1e3:9.2f} {t / n * 1e6:9.1f}")
    print(f"{'together':32} {'':12} {total * 1e3:9.2f}\n")
    columns = f"{'layers stacked':>14} {'instructions':>12} {'ms':>9} {'us each':>9}"
    print(f"{columns} {'multi-output ms':>16} {'us each':>9}")
    for layers in map(int, a.layers.split(",")):
        module = stacked(layers)
        n, t, m = count(module), seconds(module), seconds(module, "multi-output")
        print(f"{layers:14} {n:12} {t * 1e3:9.2f} {t / n * 1e6:9.1f} {m * 1e3:16.2f} {m / n * 1e6:9.1f}")


if __name__ == "__main__":
    main()
