"""How far a replay from `before_optimizations` alone agrees with XLA.

    measure_unoptimized.py DUMP_DIR [--target cpu] [--device h100_sxm] [--list]

Kernels of the module that XLA's fusion passes left, against those of our replay of the module before
optimizations: equal in every detail, operations and operands all the way up to the parameters.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from hlofuse.analysis.kernels import is_kernel, launched_computations
from hlofuse.compilation import compile
from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs import load
from hlofuse.inputs.dump_directory import DumpDirectory, DumpedModule
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.matching.kernels import KernelKeys, ModuleKeys
from ..running import lowered


def last_fused(dumped: DumpedModule, target: str) -> tuple[Path, Path]:
    """The module ahead of the fusion passes and the one they left."""
    before, stages = dumped.stages(target)
    return before, stages[-1][1] if stages else before


def kernels(structure: ModuleKeys) -> Counter[int]:
    launched = set(launched_computations(structure.module))
    return Counter(k for i, k in structure.keys.items() if is_kernel(i) and i.computation in launched)


def measure(
    before: Module, preceding: Module, after: Module, target: str, device: str | None
) -> tuple[int, int, int, bool]:
    """Kernels of XLA's, of ours, those of both, and whether the modules ahead of fusion are the same."""
    structures = KernelKeys(output_order=False)
    rough = lowered(before, target, load_device(device) if device else None).module
    same = structures.module(rough).key == structures.module(preceding).key
    actual = compile(rough, target, device=device).after
    a, b = kernels(structures.module(after)), kernels(structures.module(actual))
    return a.total(), b.total(), (a & b).total(), same


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dumps")
    p.add_argument("--target", default="cpu")
    p.add_argument("--device")
    p.add_argument("--list", action="store_true")
    args = p.parse_args()
    total = Counter[str]()
    for dumped in DumpDirectory(args.dumps).modules:
        whole = dumped.whole.get("before_optimizations")
        try:
            before, after = last_fused(dumped, args.target)
        except HlofuseError:
            continue
        if whole is None:
            continue
        other, actual, both, same = measure(load(whole), load(before), load(after), args.target, args.device)
        total["programs"] += 1
        total["kernels"] += other
        total["equal kernels"] += both
        total["programs with all kernels equal"] += other == actual == both
        total["programs with the same number of kernels"] += other == actual
        total["programs the same ahead of fusion"] += same
        if args.list and not same:
            print(f"{dumped.name}: {both} of {other} kernels, {actual} of ours")
    for name, n in total.items():
        print(f"{name}: {n}")


if __name__ == "__main__":
    main()
