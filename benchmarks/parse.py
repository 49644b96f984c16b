"""How fast dumps are read, beside XLA's own parser where jaxlib 0.11.1 is installed.

    python benchmarks/parse.py [FILE.hlo ...] [--quick]

Prints, per file and for stacked programs of growing size, XLA's time over ours (above 1 we are the
faster): `graph` is names, opcodes, operands, users and shapes; `attributes` has every attribute of
every instruction typed as well. Both run in one process, in turn, memos cold, best of several with
the collector off. Texts of every era: until 2024 XLA wrote operands with their shapes, tuples in full.
Then the time per instruction as programs grow, and memory per instruction.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from stacked import count, stacked, with_large_tuples, with_operand_shapes, with_unique_attributes

from hlofuse.ir import Module, parse_module

SAMPLE = Path(__file__).parents[1] / "samples" / "cpu" / "gpt2_block" / "before.hlo"

try:
    from jaxlib._hlo import hlo_module_from_text  # type: ignore[import-not-found]
except ImportError:
    hlo_module_from_text = None


def read_all_attributes(text: str) -> Module:
    """The module with every attribute of every instruction typed."""
    module = parse_module(text)
    for computation in module.computations:
        for instruction in computation:
            dict(instruction.attributes)
    return module


def best(functions: list[Callable[[str], object]], text: str, seconds: float) -> list[float]:
    """The best time of each, taking turns; what is made is freed outside the measured stretch."""
    times = [float("inf")] * len(functions)
    deadline = time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or (time.perf_counter() < deadline and rounds < 50):
        for number, function in enumerate(functions):
            gc.collect()
            gc.disable()
            start = time.process_time()
            result = function(text)
            times[number] = min(times[number], time.process_time() - start)
            del result
            gc.enable()
        rounds += 1
    return times


def compare(name: str, text: str, seconds: float) -> None:
    """One line: our times per instruction and the ratios to XLA's."""
    functions: list[Callable[[str], object]] = [parse_module, read_all_attributes]
    if hlo_module_from_text is not None:
        functions.append(hlo_module_from_text)
    graph, attributes, *xla = best(functions, text, seconds)
    n = count(text)
    line = f"{name:44.44} {n:8}  {graph / n * 1e6:6.2f} {attributes / n * 1e6:6.2f} us"
    if xla:
        line += f"   {xla[0] / n * 1e6:6.2f} us   x{xla[0] / graph:4.2f}  x{xla[0] / attributes:4.2f}"
    print(line, flush=True)


def memory(text: str) -> None:
    """Bytes per instruction, as Python counts them and as the system does (in a process of its own)."""
    n = count(text)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    module = parse_module(text)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    print(f"  tracemalloc: {used / n:.0f} bytes an instruction, {used / 1e6:.1f} MB for {n}")
    del module


def resident(path: str) -> None:
    """Print how much the process grew while `path` was read (run by `main` in a fresh process)."""
    parse_module(SAMPLE.read_text())
    text = Path(path).read_text()
    gc.collect()
    before = _resident()
    module = parse_module(text)
    gc.collect()
    print((_resident() - before) / sum(len(c) for c in module.computations))


def _resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time reading dumps.")
    parser.add_argument("files", nargs="*", type=Path, help="dumps to read besides the stacked ones")
    parser.add_argument("--quick", action="store_true", help="smaller programs, fewer repetitions")
    parser.add_argument("--resident", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.resident:
        resident(options.resident)
        return
    seconds = 0.5 if options.quick else 4.0
    print(f"Python {sys.version.split()[0]}, jaxlib {'present' if hlo_module_from_text else 'absent'}")
    print(f"{'':44} {'instr.':>8}   graph  +attributes   XLA         graph  +attributes")
    for path in options.files:
        compare("/".join(path.parts[-3:]), path.read_text(), seconds)
    sample = SAMPLE.read_text()
    compare("stacked gpt2 blocks", stacked(sample, 4000), seconds)
    compare("the same, every attribute text unique", with_unique_attributes(stacked(sample, 4000)), seconds)
    compare("the same, a comment before it", f"// by hand\n\n{stacked(sample, 4000)}", seconds)
    compare("the same, operands with shapes", with_operand_shapes(stacked(sample, 4000)), seconds)
    for path in options.files:
        compare("old: " + "/".join(path.parts[-3:]), with_operand_shapes(path.read_text()), seconds)
    compare("operands that are tuples of 600", with_large_tuples(600), seconds)
    for size in (50_000,) if options.quick else (50_000, 200_000):
        compare("stacked gpt2 blocks", stacked(sample, size), seconds)
    print("memory before any attribute is touched")
    text = stacked(sample, 100_000)
    memory(text)
    scratch = Path(os.environ.get("TMPDIR", "/tmp")) / f"hlofuse-benchmark-{os.getpid()}.hlo"
    try:
        scratch.write_text(text)
        # glibc keeps freed memory for later unless told otherwise: what is in use, and with what it keeps.
        for label, setting in (
            ("in use", {"MALLOC_MMAP_THRESHOLD_": "131072"}),
            ("with what malloc keeps", {}),
        ):
            out = subprocess.run(
                [sys.executable, __file__, "--resident", str(scratch)],
                env={**os.environ, **setting},
                capture_output=True,
                text=True,
                check=True,
            )
            print(f"  resident:    {float(out.stdout):.0f} bytes an instruction {label}")
    finally:
        scratch.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
