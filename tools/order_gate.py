#!/usr/bin/env python3
"""What each mechanism of the estimated order is worth, on modules with XLA's answer.

    order_gate.py CORPUS:DEVICE... [--without all|NAME,NAME] [--order estimated|text|xla] [--only RE] [-j N]

Each folder of a CORPUS holds `before.hlo` and XLA's `after.hlo`, `before.hlo.pb` and `priority_fusion.txtpb`,
as `make_corpus.py` writes them. Counts the modules with XLA's kernels (L1), with the order of results as well
(L1x), those whose fusions come in XLA's order (L2), and the priority updates that agree (L3). With --without
each mechanism (an entry of the table of creating passes, or a step) is switched off by itself, and the line
says what is lost by that.

The gate: a mechanism enters, and stays, if on modules that nobody opened it gains at least 0.5% of the
priorities or one order in a hundred, and loses no kernel.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hlofuse.compilation import CompilationInput, compile
from hlofuse.inputs import load
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module
from hlofuse.matching.kernels import KernelKeys
from hlofuse.order import estimate
from hlofuse.trace.priority_record import FusionStep, PriorityStep, read_priority_record

_STEPS: dict[str, tuple[str, Callable[..., object]]] = {
    "program order": ("program_order", list),
    "alone in layout": ("alone_in_layout", lambda phases: ()),
    "recreated": ("add_recreated", lambda phases: None),
    "rounds": ("split_rounds", list),
    "computations": ("processing_order", lambda module: list(module.computations)),
    "bitcasts by number": ("number", lambda x: 0),
}
"""The steps of the estimate, and what stands in for each that is switched off."""
MECHANISMS = (*_STEPS, *(entry.name for entry in estimate.TABLE))


@contextmanager
def _switched_off(names: frozenset[str]) -> Iterator[None]:
    """The estimate without these."""
    whole = {name: getattr(estimate, name) for name, _ in _STEPS.values()}
    table = estimate.TABLE
    for name in names & _STEPS.keys():
        setattr(estimate, *_STEPS[name])
    estimate.TABLE = tuple(entry for entry in table if entry.name not in names)
    try:
        yield
    finally:
        estimate.TABLE = table
        for name, own in whole.items():
            setattr(estimate, name, own)


@dataclass(frozen=True)
class Task:
    """A module, and how it is replayed."""

    folder: Path
    device: str
    order: str = "estimated"
    without: frozenset[str] = frozenset()


@cache
def _loaded(folder: Path) -> tuple[Module, Module]:
    return load(str(folder / "before.hlo")), load(str(folder / "after.hlo"))


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-3 * max(abs(a), abs(b), 1e-9)


def score(task: Task) -> tuple[Task, dict[str, int]]:
    """The module's share of each level."""
    read, after = _loaded(task.folder)
    module = copy_module(read)
    if task.order == "estimated":
        with _switched_off(task.without):
            estimate.estimate_order(module)
    module.order_source = "text"
    ids = unique_ids_for(read) if task.order == "xla" else None
    done = compile(CompilationInput(module, ids), "gpu", device=task.device)
    found = {
        level: int(kinds.module(done.after).key == kinds.module(after).key)
        for level, kinds in (("L1", KernelKeys(output_order=False)), ("L1x", KernelKeys()))
    }
    record = task.folder / "priority_fusion.txtpb"
    if record.is_file():
        steps = read_priority_record(record.read_text(encoding="utf-8")).steps
        fused = [(s.producer, s.consumer) for s in steps if isinstance(s, FusionStep)]
        own = [
            (e.producer, e.consumer)
            for e in done.events
            if e.event == "fuse" and e.pass_name == "priority-fusion"
        ]
        times: dict[tuple[str, tuple[str, ...]], list[tuple[float, float]]] = {}
        for e in done.events:
            if e.event == "priority":
                key = (e.producer, tuple(sorted(e.consumers)))
                times.setdefault(key, []).append((e.us_fused, e.us_unfused))
        updates = [s for s in steps if isinstance(s, PriorityStep)]
        agreeing = sum(
            any(
                _near(a, s.us_fused) and _near(b, s.us_unfused)
                for a, b in times.get((s.producer, tuple(sorted(s.consumers))), ())
            )
            for s in updates
        )
        found |= {"L2": int(fused == own), "L2 of": 1, "L3": agreeing, "L3 of": len(updates)}
    return task, found


def _tasks(text: list[str], only: str, order: str, without: frozenset[str]) -> list[Task]:
    found = []
    for word in text:
        corpus, _, device = word.rpartition(":")
        folders = sorted(p.parent for p in Path(corpus).glob("*/before.hlo"))
        found += [Task(f, device, order, without) for f in folders if re.search(only, f.name)]
    return found


def _line(total: Counter[str], modules: int) -> str:
    share = total["L3"] / max(total["L3 of"], 1)
    return (
        f"L1 {total['L1']}/{modules}  L1x {total['L1x']}  L2 {total['L2']}/{total['L2 of']}"
        f"  L3 {total['L3']}/{total['L3 of']} ({share:.2%})"
    )


def main() -> None:
    """Print the whole, then what is lost without each of the mechanisms asked about."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", metavar="CORPUS:DEVICE")
    parser.add_argument("--without", default="")
    parser.add_argument("--order", default="estimated", choices=("estimated", "text", "xla"))
    parser.add_argument("--only", default="")
    parser.add_argument("--modules", action="store_true", help="a line for each module as well")
    parser.add_argument("-j", type=int, default=2)
    a = parser.parse_args()
    off = MECHANISMS if a.without == "all" else tuple(filter(None, a.without.split(",")))
    with ProcessPoolExecutor(a.j) as pool:
        whole: Counter[str] = Counter()
        for number, name in enumerate(("", *off)):
            tasks = _tasks(a.corpora, a.only, a.order, frozenset({name} if name else ()))
            total: Counter[str] = Counter()
            for task, found in pool.map(score, tasks, chunksize=4):
                total.update(found)
                if a.modules and not number:
                    print(task.folder.name, " ".join(f"{k} {v}" for k, v in found.items()), flush=True)
            if not number:
                whole = total
                print(_line(total, len(tasks)), flush=True)
                continue
            lost = {k: whole[k] - total[k] for k in ("L1", "L1x", "L2", "L3")}
            share = lost["L3"] / max(whole["L3 of"], 1)
            print(
                f"without {name:28}" + "".join(f" {k} {n:+d}" for k, n in lost.items()) + f" ({share:+.2%})"
            )


if __name__ == "__main__":
    main()
