"""Captured programs to modules.tar.xz and manifest.json: python benchmarks/pass_ordering/pack.py CAPTURED.

CAPTURED is the folder that hlofuse capture wrote from programs.py (its docstring has the command line).
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path

from hlofuse.ir.opcodes import PrintOptions
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.search.space import count_ops, module_hash

HERE = Path(__file__).parent


def compact(text: str) -> str:
    """The module without names of source files and percent signs."""
    module = parse_module(text)
    options = PrintOptions(metadata=False, operand_numbers=0, signatures=False, percent=False)
    return print_module(module, options) + "\n"


def main(captured: Path) -> None:
    sys.path.insert(0, str(HERE))
    from programs import FAMILY, PROGRAMS, TEST  # needs jax, which nothing else here does

    manifest = []
    with tarfile.open(HERE / "modules.tar.xz", "w:xz", preset=9) as tar:
        for name in PROGRAMS:
            text = compact((captured / name / "before_optimizations.hlo").read_text())
            entry = tarfile.TarInfo(f"{name}.hlo")
            entry.size = len(data := text.encode())
            tar.addfile(entry, io.BytesIO(data))
            module = parse_module(text)
            assert module_hash(parse_module(print_module(module))) == module_hash(module)
            manifest.append(
                {
                    "name": name,
                    "family": FAMILY[name],
                    "split": "test" if name in TEST else "train",
                    "instructions": count_ops(module),
                    "hash": module_hash(module),
                }
            )
    rows = ",\n".join(map(json.dumps, manifest))
    (HERE / "manifest.json").write_text(f"[\n{rows}\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
