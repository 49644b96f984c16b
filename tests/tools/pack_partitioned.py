"""Captures of partitioned programs, packed for tests/passes/test_collectives.py.

    python -m tests.tools.pack_partitioned OUT.tar.xz BACKEND=CAPTURE...
    python -m tests.tools.pack_partitioned OUT.hlo BACKEND=CAPTURE...

The archive has of every program the modules before optimizations, at the fusion input (with its ids) and
after all optimizations. The text has the modules after fusion and after all optimizations, as cases to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hlofuse.inputs.wire_format import read_unique_ids
from .pack_final import text_of
from .pack_gpu import METADATA, TABLES, lean_proto
from .packing import arguments, write_archive

_USUAL_CONFIG = re.compile(
    rb', backend_config=\{"operation_queue_id":(?!.*fusion_backend_config).*\}$', re.MULTILINE
)


def files_of(program: Path) -> Iterator[tuple[str, bytes]]:
    unoptimized = (program / "before_optimizations.hlo").read_text(encoding="utf-8")
    yield "unoptimized.hlo", unoptimized_text(unoptimized).encode()
    yield "before.hlo", text_of(program / "before.hlo")
    yield "before.hlo.pb", lean_proto(read_unique_ids(program / "before.hlo.pb"))
    yield "final.hlo", text_of(program / "after_optimizations.hlo")


def unoptimized_text(text: str) -> str:
    """The module with its shardings, and without source tables and metadata."""
    head, _, rest = text.partition("\n")
    return head + "\n\n" + METADATA.sub("", TABLES.sub("", rest.lstrip("\n")))


def case_text(backend: str, program: Path) -> bytes:
    texts = (text_of(program / f) for f in ("after.hlo", "after_optimizations.hlo"))
    fused, final = (_USUAL_CONFIG.sub(b"", text).rstrip(b"\n") + b"\n" for text in texts)
    return b"// CASE %s\n%s\n// EXPECT %s\n%s" % (program.name.encode(), fused, backend.encode(), final)


def main() -> None:
    args = arguments(__doc__, "BACKEND=CAPTURE", limit=1 << 30)
    programs = [
        (backend, program.parent)
        for backend, _, capture in (text.partition("=") for text in args.folders)
        for program in sorted(Path(capture).glob("*/after_optimizations.hlo"))
    ]
    if args.out.suffix == ".hlo":
        args.out.write_bytes(b"\n".join(case_text(backend, program) for backend, program in programs))
        return
    cases = [(f"{backend}/{program.name}", partial(files_of, program)) for backend, program in programs]
    write_archive(args.out, cases, limit=args.limit)


if __name__ == "__main__":
    main()
