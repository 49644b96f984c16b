"""Which of XLA's passes ahead of fusion are repeated, by XLA's own dumps.

    compare_simplifications.py DUMP_DIR [--target cpu] [--pass NAME] [--module NAME] [--show DIR]

DUMP_DIR is written by `--xla_dump_to` with `--xla_dump_hlo_pass_re=.*`. Every pass that changed a module
left a dump: the latest one before it is run through our pass and compared, names aside. A pass that left
none had changed nothing, and ours must not either. With --show, both texts of each difference are written
to a folder.
"""

from __future__ import annotations

import argparse
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs import load
from hlofuse.inputs.dump_directory import DumpDirectory, DumpedModule, DumpFile
from hlofuse.inputs.ordered import restore_literals
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.matching.kernels import KernelKeys
from hlofuse.passes.base import Pass, Pipeline, UnimplementedPass
from hlofuse.pipelines.targets import before_fusion
from hlofuse.releases import REFERENCE, release_of
from hlofuse.trace import Recorder
from .module_checks import verify_module

Runs = Iterator[tuple[Pass, DumpFile, DumpFile | None]]


def runs(dumped: DumpedModule, pipelines: Sequence[Pass]) -> Runs:
    """Each run of a pass: the dump it was given, and the one it left if it changed anything."""
    cached = {p.name for top in pipelines for p in top.flattened() if isinstance(p, Pipeline)}
    files = deque(f for f in dumped.between if f.pipeline in cached)
    for top in pipelines:
        if isinstance(top, Pipeline) and files and files[0].pipeline == top.name:
            yield from _traverse(top, files)
            while files and files[0].pipeline == top.name:
                files.popleft()  # of passes that are not listed, such as those that only pool shapes


def _traverse(pipeline: Pipeline, files: deque[DumpFile]) -> Runs:
    """One run of a pipeline; its dumps are taken from `files`."""
    given = files.popleft()
    names = [s.name for s in pipeline.steps]
    for k, step in enumerate(pipeline.steps):
        inner = next((p for p in step.flattened() if isinstance(p, Pipeline)), None)
        while inner is not None and _is(files, inner.name, "pipeline-start"):
            last = files[0]
            for run in _traverse(inner, files):
                yield run
                last = run[2] or last
            given = last
        if _is(files, pipeline.name, names[k]) and (
            names.count(names[k]) == 1 or files[0].before == (*names, "pipeline-end")[k + 1]
        ):
            left = files.popleft()
            if inner is None:
                yield step, given, left
            given = left
        elif inner is None:
            yield step, given, None


def _is(files: deque[DumpFile], pipeline: str, after: str) -> bool:
    return bool(files) and files[0].pipeline == pipeline and files[0].after == after


def with_ids(module: Module) -> Module:
    """With what a text leaves out, where a proto lies beside: ids, whose order passes go by, and arrays."""
    restore_literals(module)
    ids = unique_ids_for(module)
    if ids is not None:
        ids.apply(module)
    return module


def same_structure(actual: Module, xlas: Module) -> bool:
    """True if the two are equal but for names."""
    structures = KernelKeys()
    return structures.module(actual).key == structures.module(xlas).key


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dumps")
    p.add_argument("--target", default="cpu")
    p.add_argument("--device", default="h100_sxm")
    p.add_argument("--xla", default=REFERENCE, metavar="RELEASE")
    p.add_argument("--pass", dest="only")
    p.add_argument("--module")
    p.add_argument("--show")
    args = p.parse_args()
    device = load_device(args.device) if args.target == "gpu" else None
    pipelines = before_fusion(args.target, device, (), release_of(args.xla))
    changed, equal, quiet = Counter[str](), Counter[str](), Counter[str]()
    programs: dict[str, set[str]] = {}
    differing: dict[str, list[str]] = {}
    for dumped in DumpDirectory(args.dumps).modules:
        if args.module and dumped.name not in (args.module, f"jit_{args.module}"):
            continue
        read: dict[Path, Module] = {}
        for step, given, left in runs(dumped, pipelines):
            if args.only and step.name != args.only:
                continue
            if left is not None:
                changed[step.name] += 1
                programs.setdefault(step.name, set()).add(dumped.label)
            if isinstance(step, UnimplementedPass) and not (args.show and args.only and left):
                continue
            if given.path not in read:
                read = {given.path: with_ids(load(given.path))}
            module = copy_module(read[given.path])
            where = f"{dumped.name}.{given.number:04d}"
            try:
                did = step.run(module, Recorder())
                broken = verify_module(module)
            except Exception:
                differing.setdefault(step.name, []).append(f"{where} crashed")
                traceback.print_exc()
                continue
            truth = with_ids(load(left.path)) if left is not None else read[given.path]
            if broken:
                differing.setdefault(step.name, []).append(f"{where} broken: {broken[0]}")
            elif left is None and not did:
                quiet[step.name] += 1
                continue
            elif same_structure(module, truth):
                equal[step.name] += left is not None
                quiet[step.name] += left is None
                continue
            else:
                differing.setdefault(step.name, []).append(where + ("" if left else " (XLA changed nothing)"))
            if args.show:
                folder = Path(args.show)
                folder.mkdir(parents=True, exist_ok=True)
                for side, shown in (("given", read[given.path]), ("ours", module), ("xla", truth)):
                    (folder / f"{step.name}.{where}.{side}.hlo").write_text(print_module(shown))
    print(f"{'pass':34} programs   runs  equal  left alone")
    for name, n in sorted(changed.items(), key=lambda kv: (-len(programs[kv[0]]), -kv[1])):
        print(f"{name:34} {len(programs[name]):8} {n:6} {equal[name]:6} {quiet[name]:11}")
    for name in sorted(quiet.keys() - changed.keys()):
        print(f"{name:34} {0:8} {0:6} {0:6} {quiet[name]:11}")
    for name, places in sorted(differing.items()):
        print(f"{name} differs: {', '.join(places)}")


if __name__ == "__main__":
    main()
