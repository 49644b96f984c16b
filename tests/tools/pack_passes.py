"""What XLA did ahead of fusion, packed for tests/passes.

    python -m tests.tools.pack_passes OUT.tar.xz DUMP_DIR...
        [--target cpu] [--device h100_sxm] [--of-each 6] [--only PASS...]

DUMP_DIR is written by `--xla_dump_to` with `--xla_dump_hlo_pass_re=.*`. Of every program the module before
optimizations and the one ahead of fusion; of every pass the smallest modules that it changed, each from
another program, with what it made of them. Pairs that cannot be told from their text alone are left out:
where a text merges get-tuple-elements, or lists instructions in another order than XLA held them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs.dump_directory import DumpDirectory, DumpedModule
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.base import Pass, UnimplementedPass
from hlofuse.pipelines.targets import before_fusion
from hlofuse.trace import Recorder
from .compare_passes import runs, same_structure
from .measure_unoptimized import last_fused
from .pack_gpu import lean
from .packing import write_archive

Case = tuple[str, Callable[[], list[tuple[str, bytes]]]]


def text_of(path: Path) -> str:
    return lean(path.read_text(encoding="utf-8"), metadata=False)


def case(name: str, **texts: str) -> Case:
    return name, lambda: [(f"{file}.hlo", text.encode()) for file, text in texts.items()]


def programs(modules: list[DumpedModule], target: str) -> Iterator[Case]:
    for dumped in modules:
        before, preceding = dumped.whole["before_optimizations"], last_fused(dumped, target)[0]
        place = f"programs/{dumped.name.removeprefix('jit_')}"
        yield case(place, before=text_of(before), ahead=text_of(preceding))


def passes(
    modules: list[DumpedModule], pipelines: Sequence[Pass], of_each: int, only: Sequence[str]
) -> Iterator[Case]:
    changed: dict[str, list[tuple[int, str, Path, Path, Pass]]] = {}
    for dumped in modules:
        seen: set[str] = set()
        for step, given, left in runs(dumped, pipelines):
            if left is None or isinstance(step, UnimplementedPass) or step.name in seen:
                continue
            if only and step.name not in only:
                continue
            seen.add(step.name)
            size = given.path.stat().st_size
            changed.setdefault(step.name, []).append((size, dumped.name, given.path, left.path, step))
    for name, found in sorted(changed.items()):
        remaining = 0
        for _, program, given_path, left_path, step in sorted(found, key=lambda f: f[:2]):
            given_text, left_text = text_of(given_path), text_of(left_path)
            module = parse_module(given_text)
            if step.run(module, Recorder()) and same_structure(module, parse_module(left_text)):
                place = f"passes/{name}/{program.removeprefix('jit_')}"
                yield case(place, given=given_text, left=left_text)
                remaining += 1
                if remaining == of_each:
                    break


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("dumps", nargs="+")
    p.add_argument("--target", default="cpu")
    p.add_argument("--device", help="for --target gpu")
    p.add_argument("--of-each", type=int, default=6)
    p.add_argument("--only", nargs="+", default=(), help="pack what these passes changed, and no others")
    args = p.parse_args()
    modules = [m for d in args.dumps for m in DumpDirectory(d).modules if "before_optimizations" in m.whole]
    modules = [m for m in modules if m.between]
    pipelines = before_fusion(args.target, load_device(args.device) if args.device else None)
    cases = [*programs(modules, args.target), *passes(modules, pipelines, args.of_each, args.only)]
    write_archive(args.out, cases, limit=1 << 30)


if __name__ == "__main__":
    main()
