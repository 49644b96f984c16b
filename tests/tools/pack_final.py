"""What XLA:GPU does after its fusion passes, packed for tests/passes/test_final.py.

    python -m tests.tools.pack_final OUT.tar.xz DUMP_DIR...
    python -m tests.tools.pack_final OUT.hlo DUMP_DIR...

DUMP_DIR is written by `--xla_dump_to` with `--xla_dump_hlo_pass_re=.*`, as text and as protos. The archive
has of every program the modules after fusion (with its ids), after copy insertion and after all
optimizations, and the launches that XLA notes in `thunk_metadata.txt`. The text has the modules after
fusion and after all optimizations, as small cases to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hlofuse.inputs.dump_directory import DumpDirectory, DumpedModule
from hlofuse.inputs.wire_format import read_unique_ids
from .pack_gpu import lean, lean_proto
from .packing import arguments, write_archive

_THUNK = re.compile(r'thunk_metadata \{\s*thunk_info \{(.*?)\}\s*thunk_kind: "(\w+)"', re.DOTALL)
_NAME = re.compile(r'profile_annotation: "([^"]*)"')


def text_of(path: Path) -> bytes:
    return lean(path.read_text(encoding="utf-8"), metadata=False).encode()


def thunks(final: Path) -> Iterator[str]:
    metadata = final.with_name(final.name.split(".sm_")[0] + ".thunk_metadata.txt")
    if metadata.exists():
        for info, kind in _THUNK.findall(metadata.read_text(encoding="utf-8")):
            name = _NAME.search(info)
            yield f"{kind} {name[1] if name is not None else ''}\n"


def files_of(dumped: DumpedModule) -> Iterator[tuple[str, bytes]]:
    final = dumped.finished
    assert final is not None
    fused = next(f.path for f in dumped.between if f.pipeline == "post-fusion_optimization")
    copied = next(f.path for f in dumped.between if f.after == "copy-insertion")
    yield "fused.hlo", text_of(fused)
    yield "fused.hlo.pb", lean_proto(read_unique_ids(fused.with_suffix(".hlo.pb")))
    yield "copied.hlo", text_of(copied)
    yield "final.hlo", text_of(final)
    yield "thunks.txt", "".join(thunks(final)).encode()


def case_text(dumped: DumpedModule) -> bytes:
    files = dict(files_of(dumped))
    name = dumped.name.removeprefix("jit_").encode()
    fused, final = (files[f].rstrip(b"\n") + b"\n" for f in ("fused.hlo", "final.hlo"))
    return b"// CASE %s\n%s\n// EXPECT h100_sxm\n%s" % (name, fused, final)


def main() -> None:
    args = arguments(__doc__, "DUMPS", limit=1 << 30)
    modules = [m for d in args.folders for m in DumpDirectory(d).modules if m.between and m.finished]
    if args.out.suffix == ".hlo":
        args.out.write_bytes(b"\n".join(case_text(m) for m in modules))
        return
    cases = [(m.name.removeprefix("jit_"), partial(files_of, m)) for m in modules]
    write_archive(args.out, cases, limit=args.limit)


if __name__ == "__main__":
    main()
