"""Pack what XLA made of optimised modules into tests/data/kernels.tar.xz.

    python -m tests.tools.pack_kernels OUT.tar.xz DEVICE=FOLDER...

Each FOLDER is a dump directory of XLA's (`--xla_dump_to=FOLDER --xla_dump_hlo_as_text`), each DEVICE a name
that `hlofuse devices` lists, or `cpu`. A case is the module after optimizations and what runs its
instructions: on GPU the thunks with their launch dimensions (`….thunk_sequence.txt`,
`….thunk_metadata.txt`), on CPU the object files with code, which tell the tiled emitter from the others.
Cases are taken from the smallest up, until LIMIT bytes.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

from .pack_gpu import lean
from .packing import arguments, write_archive

LIMIT = 330_000
_ANNOTATION = re.compile(r'profile_annotation: "([^"]*)"\s*thunk_id: (\d+)')
_THUNK = re.compile(
    r"(\d+): (k\w+)\s+\[[^\]]*\]\s*\S*(?: grid: \[(\d+), (\d+), (\d+)\] threads: \[(\d+), (\d+), (\d+)\])?"
)
_TILED = "__compute_module_"


def gpu_answer(after: Path) -> dict[str, list[list[object]]] | None:
    """Instruction to its thunks: kind, blocks and threads (null where there is no grid)."""
    base = re.sub(r"\.sm_[\d.]+a?_gpu_after_optimizations\.txt$", "", str(after))
    sequence, metadata = Path(f"{base}.thunk_sequence.txt"), Path(f"{base}.thunk_metadata.txt")
    if not sequence.exists():
        return None
    names = {int(number): name for name, number in _ANNOTATION.findall(metadata.read_text())}
    found: dict[str, list[list[object]]] = {}
    for m in _THUNK.finditer(sequence.read_text()):
        name = names.get(int(m[1]))
        if name is not None:
            sizes = [int(n) for n in m.groups()[2:]] if m[3] else None
            grid = (sizes[0] * sizes[1] * sizes[2], sizes[3] * sizes[4] * sizes[5]) if sizes else (None, None)
            found.setdefault(name, []).append([m[2], *grid])
    return found


def cpu_answer(after: Path) -> dict[str, str]:
    """Instruction to `tiled` or `emitted`; kernels like another one have no code of their own."""
    base = str(after).removesuffix(".cpu_after_optimizations.txt")
    found = {}
    for file in after.parent.glob(f"{Path(base).name}.obj-file.*.o"):
        name = file.name[len(Path(base).name) + len(".obj-file.") : -2]
        if name.startswith(_TILED):
            found[name.removeprefix(_TILED)] = "tiled"
        else:
            found[name.removesuffix("_kernel_module")] = "emitted"
    return found


def main() -> None:
    a = arguments(__doc__, "DEVICE=FOLDER", LIMIT)
    cases = []
    for folder in a.folders:
        device, _, path = folder.partition("=")
        for after in Path(path).glob("*_after_optimizations.txt"):
            answer = cpu_answer(after) if device == "cpu" else gpu_answer(after)
            if answer:
                text = lean(after.read_text(encoding="utf-8"), metadata=False)
                name = re.sub(r"module_\d+\.(?:jit_)?([\w-]+)\..*", r"\1", after.name)
                files = [
                    ("after.hlo", text.encode()),
                    ("answer.json", json.dumps(answer, sort_keys=True).encode()),
                ]
                cases.append((len(text), f"{device}/{name}", files))
    write_archive(a.out, [(name, partial(list, files)) for _, name, files in sorted(cases)], a.limit)


if __name__ == "__main__":
    main()
