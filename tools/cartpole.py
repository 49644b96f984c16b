"""The figures of docs/cartpole.md and its picture, from the dumps in samples/cartpole.

    cartpole.py [--check]

Writes them anew; with --check nothing is written, exit status 1 when something is out of date. Needs no jax.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cartpole_chart import chart

from hlofuse.account import Account
from hlofuse.account.replaying import pair_detail
from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import iter_kernels, launched_computations
from hlofuse.compilation import Compilation, CompilationInput, compile, replay_config
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import load_device
from hlofuse.format.escape import table
from hlofuse.format.units import bytes_text, plural, us_text
from hlofuse.inputs import load
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.releases import AROUND_FUSION
from hlofuse.reports.explain.explain import explain
from hlofuse.reports.kernels import Choice, kernel_selection

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples" / "cartpole"
PAGE, PICTURE = ROOT / "docs" / "cartpole.md", ROOT / "docs" / "images" / "cartpole.svg"
CARD = "rtx2080ti"
TARGETS = ("gpu-legacy", "gpu", "cpu")
STEPS_PER_ITERATION = {"unrolled_10": 10}
PROGRAMS = {
    "baseline": "random numbers in the loop, by a library call",
    "baseline_today": "the same, random numbers as arithmetic",
    "precomputed_noise": "random numbers drawn beforehand",
    "stacked_rows": "the same, state as [4, 2048] instead of [2048, 4]",
    "no_concatenate": "four separate states, no concatenate",
    "unrolled_10": "ten steps in a turn of the loop",
    "scan": "a scan that keeps who fell",
}
CODE_DUPLICATION = {"gpu-legacy": "GI006", "gpu": "PF013", "cpu": "CPU012"}
"""XLA's `CodeDuplicationTooHigh`, the rule the paper relaxed, as each target asks it."""
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_BLOCK = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Figures:
    """One program on one target: what the loop's body launches in a turn, and who keeps it apart."""

    before: int
    """Kernels of the body if nothing were fused."""
    kernels: tuple[Choice, ...]
    """Of the body, and of loops within it."""
    launches: int
    """Kernels launched in a turn: those of an inner loop count as often as it runs."""
    bytes_moved: int
    us: float
    """Estimated time of a turn, where there are estimates."""
    unknown: int
    """Library calls nobody estimates."""
    replay: Compilation


@cache
def figures(name: str, target: str, without: str = "") -> Figures | None:
    """None for a program that the target has no dump of."""
    if not (SAMPLES / target / name).is_dir():
        return None
    card = None if target == "cpu" else load_device(CARD)
    module = load(SAMPLES / target / name, target=target)
    config = replay_config(target, card, disable=(without,) if without else ())
    done = compile(CompilationInput(module, unique_ids_for(module)), config)
    after = done.after
    executed = _executed(after)
    # The study is about kernels: waits for the host would be most of the time of nearly every program.
    with patch.object(Account, "host_wait_us", return_value=0.0):
        selection = kernel_selection(after, target, done.config.release, device=card)
    chosen = {(k.computation, k.name): k for k in selection.kernels}
    cost = CostAnalysis()
    kernels: list[Choice] = []
    launches, moved, us, unknown = 0, 0, 0.0, 0
    for computation, times in executed:
        for kernel in iter_kernels(computation):
            choice = chosen[computation.name, kernel.name]
            kernels.append(choice)
            launches += times
            moved += times * int(cost.instruction(kernel).bytes_accessed)
            us += times * (choice.us or 0.0)
            unknown += times * (choice.us is None and target != "cpu")
    before = sum(times * sum(1 for _ in iter_kernels(c)) for c, times in _executed(module))
    return Figures(before, tuple(kernels), launches, moved, us, unknown, done)


def _executed(module: Module) -> list[tuple[Computation, int]]:
    """The step loop's body and what runs inside it, with how often in a turn."""
    loops = [i for c in launched_computations(module)[:1] for i in c if i.opcode == "while"]
    (steps,) = loops
    found = [(dict(steps.called)["body"], 1)]
    for computation, times in found:  # grows while it is walked
        for instruction in computation:
            if instruction.opcode == "call":
                found += [(callee, times) for _, callee in instruction.called]
            elif instruction.opcode == "while":
                found += _inner(instruction, times)
    return found


def _inner(loop: Instruction, times: int) -> list[tuple[Computation, int]]:
    trips = _TRIPS.search(loop.attributes.raw("backend_config") or "")
    iterations = int(trips[1]) if trips else 1
    parts = dict(loop.called)
    return [(parts["body"], times * iterations), (parts["condition"], times * (iterations + 1))]


# ------------------------------------------------------------------------- tables


def summary() -> str:
    """Kernels in a turn of the loop, on each target."""
    rows = []
    for name, text in PROGRAMS.items():
        row = [f"`{name}`: {text}"]
        for target in TARGETS:
            f = figures(name, target)
            row.append(f"{f.before:,} → **{f.launches:,}**" if f is not None else "as above")
        rows.append(row)
    return table(("program", *TARGETS), rows, right=(1, 2, 3))


def times() -> str:
    """Per step: bytes, and the time that XLA's own model estimates."""
    rows = []
    for name in PROGRAMS:
        steps = STEPS_PER_ITERATION.get(name, 1)
        row = [f"`{name}`"]
        for target in ("gpu-legacy", "gpu"):
            f = figures(name, target)
            assert f is not None
            calls = f" and {plural(f.unknown, 'call')}" if f.unknown else ""
            row += [f"{us_text(f.us / steps)}{calls}", bytes_text(f.bytes_moved / steps)]
        rows.append(row)
    return table(("program", "gpu-legacy", "bytes", "gpu", "bytes"), rows, right=(1, 2, 3, 4))


def walls(name: str, target: str) -> str:
    """The rules that keep a program's kernels apart."""
    f = figures(name, target)
    assert f is not None
    rows = [
        (o.rule.code, o.rule.title, str(o.edges))
        for o in sorted(explain(f.replay).blocking_rules, key=lambda o: -o.edges)
    ]
    return table(("rule", "", "separated pairs of kernels"), rows, right=(2,))


def runs(name: str, target: str) -> str:
    """The kernels of a turn, and who runs them."""
    f = figures(name, target)
    assert f is not None
    rows = [
        (
            f"`{k.name}`",
            f"{k.run_by} ({k.rule.code})",
            us_text(k.us) if k.us is not None else "–",
            k.source or "",
        )
        for k in f.kernels
    ]
    return table(("kernel", "implementation", "est.", "source"), rows, right=(2,))


def concatenate() -> str:
    """The join alone and with its user, by its dimension."""
    rows = []
    for name in ("precomputed_noise", "stacked_rows"):
        module = load(SAMPLES / "gpu" / name, target="gpu")
        join = next(i for c, _ in _executed(module) for i in c if i.opcode == "concatenate")
        (user,) = join.users
        detail = pair_detail(CombinedModel(load_device(CARD), AROUND_FUSION), join, user)
        assert detail is not None
        rows.append(
            (
                f"`{name}`",
                f"{join.shape.text_without_layout}, dimension {join.dimensions[0]}",
                "400" if detail.notes else "6",
                us_text(detail.cost.producer.us_compute),
                us_text(detail.us_unfused),
                us_text(detail.us_fused),
            )
        )
    header = ("program", "joins", "operations an element", "compute", "apart", "fused into its user")
    return table(header, rows, right=(2, 3, 4, 5))


def duplication() -> str:
    """A turn with and without the rule against duplicated code."""
    rows = []
    for name in ("baseline", "precomputed_noise"):
        row = [f"`{name}`"]
        for target, rule in CODE_DUPLICATION.items():
            as_xla, relaxed = figures(name, target), figures(name, target, rule)
            if as_xla is None or relaxed is None:
                row.append("as above")
                continue
            text = f"{as_xla.launches:,} → {relaxed.launches:,}"
            if target != "cpu":
                text += f" ({us_text(as_xla.us)} → {us_text(relaxed.us)})"
            row.append(text)
        rows.append(row)
    header = ("program", *(f"{t} without {r}" for t, r in CODE_DUPLICATION.items()))
    return table(header, rows, right=(1, 2, 3))


def apart(name: str, target: str) -> str:
    """The last words on the pairs of kernels of a turn that were asked about and stay apart."""
    f = figures(name, target)
    assert f is not None
    kernels = {k.name for k in f.kernels}
    last = {
        (e.producer, e.consumer): e
        for e in f.replay.events
        if e.event == "ineligible" and e.producer in kernels and e.consumer in kernels
    }
    rows = [(f"`{e.producer}`", f"`{e.consumer}`", str(e.rule), f"“{e.reason}”") for e in last.values()]
    return table(("kernel", "and", "rule", "XLA's words"), rows)


PAPER = {
    "baseline": ("the first version", "6 kernels in the loop's body", "baseline"),
    "noise": ("random numbers drawn beforehand", "1.87×", "precomputed_noise"),
    "duplication": ("code duplication allowed, more consumers", "about 10 %", ""),
    "separate": ("no concatenate", "3.41×", "no_concatenate"),
    "unrolled": ("loop unrolled, ten steps", "about 3.5×", "unrolled_10"),
}


def paper() -> str:
    """What the paper measured, and beside it what a replay counts."""
    rows = []
    for text, measured, name in PAPER.values():
        counted = []
        for target in TARGETS:
            f = figures(name, target) if name else None
            counted.append(_per_step(f.launches, STEPS_PER_ITERATION.get(name, 1)) if f is not None else "–")
        rows.append((text, measured, f"`{name}`" if name else "below", *counted))
    header = (
        "what was changed",
        "measured (the paper's)",
        "our program",
        *(f"{t}: kernels" for t in TARGETS),
    )
    return table(header, rows, right=(1, 3, 4, 5))


def _per_step(launches: int, steps: int) -> str:
    return f"{launches:,}" if steps == 1 else f"{launches / steps:.1f}"


BLOCKS = {
    "paper": paper,
    "summary": summary,
    "times": times,
    "baseline_legacy": lambda: runs("baseline", "gpu-legacy"),
    "baseline_legacy_walls": lambda: walls("baseline", "gpu-legacy"),
    "baseline_gpu_walls": lambda: walls("baseline", "gpu"),
    "baseline_cpu_walls": lambda: walls("baseline", "cpu"),
    "precomputed_legacy": lambda: runs("precomputed_noise", "gpu-legacy"),
    "precomputed_legacy_apart": lambda: apart("precomputed_noise", "gpu-legacy"),
    "concatenate": concatenate,
    "duplication": duplication,
    "today_gpu": lambda: runs("baseline_today", "gpu"),
    "separate_cpu_walls": lambda: walls("no_concatenate", "cpu"),
    "separate_gpu": lambda: runs("no_concatenate", "gpu"),
    "unrolled_cpu_walls": lambda: walls("unrolled_10", "cpu"),
    "scan_gpu": lambda: runs("scan", "gpu"),
}


def page(text: str) -> str:
    """The page with its figures as they are now."""
    missing = set(BLOCKS) ^ {m[2] for m in _BLOCK.finditer(text)}
    assert not missing, f"blocks of the page and of {Path(__file__).name} differ: {sorted(missing)}"
    return _BLOCK.sub(lambda m: f"{m[1]}{BLOCKS[m[2]]()}{m[3]}", text)


def picture() -> str:
    """Kernels in a step, by program and target."""
    bars = {}
    for name in PROGRAMS:
        found = {t: f for t in TARGETS if (f := figures(name, t)) is not None}
        bars[name] = {t: f.launches / STEPS_PER_ITERATION.get(name, 1) for t, f in found.items()}
    return chart(bars, TARGETS)


def files() -> dict[Path, str]:
    """Every generated file with its text."""
    return {PAGE: page(PAGE.read_text(encoding="utf-8")), PICTURE: picture()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    check = parser.parse_args().check
    stale = {p: t for p, t in files().items() if not p.exists() or p.read_text(encoding="utf-8") != t}
    for path, text in stale.items():
        print(path.relative_to(ROOT))
        if not check:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
