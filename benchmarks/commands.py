"""Processor time and peak memory of commands in two source trees.

    python benchmarks/commands.py BASE [TREE] [--rounds 3] [--only TEXT]

BASE is a checkout of the commit to compare with. Each command runs in a process of its own, the trees taking
turns; a first run that is not counted compiles the bytecode. Printed are the least processor time (user and
system) and peak memory of each tree, and the ratio. With jax, the modules include a training step of 66 GPT-2
layers (17,000 instructions before optimizations, 20,000 at the fusion input of cpu and 22,000 of h100_sxm).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from replay import stacked

from hlofuse.compilation import replay_config
from hlofuse.compilation.spans import lower
from hlofuse.ir import parse_module, print_module

ROOT = Path(__file__).parent.parent
TARGETS = {"cpu": ("--target", "cpu"), "gpu": ("--device", "h100_sxm")}


def training_step(layers: int) -> str:
    """The HLO of one gradient step of GPT-2 layers, before optimizations."""
    import jax
    from gpt2_layers import _program

    run, (weights, x) = _program(layers)

    def step(weights: object, x: object) -> object:
        gradient = jax.grad(lambda w: (run(w, x) ** 2).mean())(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient)

    return str(jax.jit(step).lower(weights, x).compiler_ir("hlo").as_hlo_text())


def commands(folder: Path) -> dict[str, tuple[str, ...]]:
    """Arguments of `hlofuse` by a name; the modules are written to `folder`."""
    found: dict[str, tuple[str, ...]] = {}

    def add(name: str, text: str, target: str, *, why: bool = True) -> None:
        path = folder / f"{name.replace(' ', '_')}.hlo"
        path.write_text(text)
        found[f"explain {name}"] = ("explain", str(path), *TARGETS[target])
        if why:
            middle = [i for i in parse_module(text).entry if i.opcode in ("add", "multiply")]
            found[f"why {name}"] = ("why", str(path), middle[len(middle) // 2].name, *TARGETS[target])

    for target, sample in (("cpu", "cpu/gpt2_block"), ("gpu", "gpu/softmax")):
        found[f"explain {sample}"] = ("explain", str(ROOT / "samples" / sample), *TARGETS[target])
    if find_spec("jax") is not None:
        text = training_step(66)
        for target, options in TARGETS.items():
            add(f"step before {target}", text, target)
            config = replay_config(target, device=options[1] if target == "gpu" else None)
            add(f"step input {target}", print_module(lower(parse_module(text), config, ()).module), target)
    add("stacked 1053 gpu", print_module(stacked(1053)), "gpu")
    add("stacked 6000 gpu", print_module(stacked(6000)), "gpu", why=False)
    return found


def measure(tree: Path, arguments: tuple[str, ...], cache: str) -> tuple[float, float]:
    """Seconds of processor time and peak megabytes of one run."""
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    pid = os.fork()
    if not pid:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execve(sys.executable, [sys.executable, "-m", "hlofuse", *arguments], environment)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"hlofuse {' '.join(arguments)} fails in {tree}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def main() -> None:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", type=Path)
    parser.add_argument("tree", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="commands whose name has this text")
    a = parser.parse_args()
    trees = [a.base.resolve(), a.tree.resolve()]
    print(
        f"{'command':30} {'base s':>8} {'tree s':>8} {'ratio':>6} {'base MB':>8} {'tree MB':>8}", flush=True
    )
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        # In a process of its own: a child's peak is never below what its parent holds.
        with get_context("spawn").Pool(1) as pool:
            of_name = pool.apply(commands, (Path(folder),))
        for name, arguments in of_name.items():
            if a.only not in name:
                continue
            if a.rounds > 1 or "stacked" not in name:
                for tree in trees:
                    measure(tree, arguments, cache)
            runs = [[measure(tree, arguments, cache) for tree in trees] for _ in range(a.rounds)]
            (s, m), (t, n) = (
                [min(column) for column in zip(*own, strict=True)] for own in zip(*runs, strict=True)
            )
            print(f"{name:30} {s:8.2f} {t:8.2f} {t / s:6.2f} {m:8.0f} {n:8.0f}", flush=True)


if __name__ == "__main__":
    main()
