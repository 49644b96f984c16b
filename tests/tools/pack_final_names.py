"""Pack modules after fusion and as XLA launched them into tests/data/final-names.tar.xz.

    python -m tests.tools.pack_final_names OUT.tar.xz TARGET=FOLDER... [--limit BYTES]

Each FOLDER is a dump directory of XLA's with the dumps of the fusion passes and of the end. Modules of one
kernel are left out. Cases are taken from the smallest up.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hlofuse.analysis.kernels import kernels
from hlofuse.inputs import load
from hlofuse.inputs.dump_directory import DumpDirectory
from hlofuse.ir.errors import HlofuseError
from .pack_gpu import lean
from .packing import arguments, write_archive

LIMIT = 40_000


def main() -> None:
    a = arguments(__doc__, "TARGET=FOLDER", LIMIT)
    cases: list[tuple[int, str, Path, Path]] = []
    for folder in a.folders:
        target, _, path = folder.partition("=")
        for module in DumpDirectory(path).modules:
            try:
                before, passes = module.stages(target)
            except HlofuseError:
                continue
            after = passes[-1][1] if passes else before
            final = module.finished
            if final is not None and len(kernels(load(final))) > 1:
                cases.append((final.stat().st_size, f"{target}/{module.name}", after, final))
    write_archive(
        a.out, [(name, partial(_files, after, final)) for _, name, after, final in sorted(cases)], a.limit
    )


def _files(after: Path, final: Path) -> list[tuple[str, bytes]]:
    texts = (("after.hlo", after), ("final.hlo", final))
    return [(name, lean(path.read_text("utf-8"), metadata=False).encode()) for name, path in texts]


if __name__ == "__main__":
    main()
