"""Run JAX programs with modules of hlofuse in place of XLA:CPU's own (`run-as`), and compare the values.

    python benchmarks/run_as.py [--programs tools/corpus/programs.py] [--count 20]

Each program is captured and replayed to the end of fusion, as XLA fuses it or with a change. It runs three
times: as it is, with its inputs moved by an ulp, and with that module. The last may differ by ten times what
the move changes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CHANGES = [
    (),
    ("--enable", "multi-output"),
    ("--disable", "CPU007"),
    ("--disable", "CPU012"),
    ("--disable", "CPU019", "--disable", "CPU006"),
]


def child(programs: str, name: str, out: str, moved: str) -> None:
    """The program as a user runs it: jitted, on random inputs."""
    import jax
    import numpy as np

    sys.path.insert(0, str(Path(programs).parent))
    entry = __import__(Path(programs).stem).PROGRAMS[name]
    function, shapes = entry() if callable(entry) else entry
    random = np.random.default_rng(0)

    def value(leaf: Any) -> Any:
        if not hasattr(leaf, "dtype"):
            return leaf
        if not jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact):
            return random.integers(0, 2, leaf.shape).astype(leaf.dtype)
        array = (abs(random.normal(size=leaf.shape)) * 0.1 + 0.05).astype(leaf.dtype)
        return (array * (1 + jax.numpy.finfo(leaf.dtype).eps)).astype(leaf.dtype) if moved == "1" else array

    def entry_(*arguments: Any) -> Any:
        return function(*arguments)

    entry_.__name__ = entry_.__qualname__ = name
    jitted = function if hasattr(function, "lower") else jax.jit(entry_)
    outputs = jax.tree.leaves(jitted(*jax.tree.map(value, tuple(shapes))))
    np.savez(out, *(np.asarray(o).astype("complex128") for o in outputs))


def run(*command: object) -> str:
    """Standard error of a command that succeeds."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, *map(str, command)], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-600:])
    return done.stderr


def compared(folder: Path, programs: str, name: str, case: Path, change: tuple[str, ...]) -> str:
    """`same`, `same, sharply` or what is wrong."""
    import numpy as np

    module, files = folder / "module.hlo", [folder / f"{n}.npz" for n in ("own", "moved", "replaced")]
    before = case / "before_optimizations.hlo"
    run("-m", "hlofuse", "replay", before, "--target", "cpu", *change, "-o", module)
    program = [Path(__file__), "--child", programs, name]
    run(*program, files[0], 0)
    run(*program, files[1], 1)
    messages = run("-m", "hlofuse", "run-as", module, "--", sys.executable, *program, files[2], 0)
    if "module.hlo: replaced" not in messages:
        return messages.strip().splitlines()[-1]
    off = 0.0
    own, moved, replaced = (np.load(f) for f in files)
    for key in own.files:
        a, control, b = own[key], moved[key], replaced[key]
        if not np.isfinite(a).all():
            return "nan or inf"
        if a.size:
            scale = abs(a).max() or 1.0
            tolerance = 10 * abs(control - a).max() + 1e-6 * scale
            off = max(off, abs(b - a).max() / tolerance)
            if tolerance > 0.2 * scale:
                return "the control is as large as the values"
    return "same" if off <= 1 else f"off by {off:.3g} times what is tolerated"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", default=str(ROOT / "tools" / "corpus" / "programs.py"))
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--child", nargs=4)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return 0
    same = tried = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run(
            "-m",
            "hlofuse",
            "capture",
            f"{options.programs}:PROGRAMS",
            "--target",
            "cpu",
            "-o",
            folder / "out",
        )
        cases = sorted(p for p in (folder / "out").iterdir() if p.is_dir())
        for n, case in enumerate(cases[:: max(1, len(cases) // options.count)][: options.count]):
            change = CHANGES[n % len(CHANGES)]
            try:
                found = compared(folder, options.programs, case.name, case, change)
            except RuntimeError as error:
                found = str(error).strip().splitlines()[-1]
            tried, same = tried + 1, same + (found == "same")
            print(f"{case.name:<28} {' '.join(change) or 'as XLA fuses':<40} {found}", flush=True)
    print(f"{same} of {tried} ran with the module of hlofuse and the same values")
    return 0 if same == tried else 1


if __name__ == "__main__":
    sys.exit(main())
