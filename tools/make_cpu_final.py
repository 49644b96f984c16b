"""Compile programs with XLA:CPU to the end and keep what is launched: tests/data/cpu-final.tar.xz.

    make_cpu_final.py [-o ARCHIVE] [--only PROGRAM]...

Needs jax and jaxlib 0.11.1. Of every program it keeps, without metadata:

    input.hlo       the module as it enters the fusion passes
    simplified.hlo  the module as it enters copy insertion
    copied.hlo      the module after copy insertion
    final.hlo       the module after optimizations
    launches.txt    the runtime's thunks, read from the serialized executable: kind and instruction
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hlofuse.inputs.wire_format import fields, varint

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("programs.py", "cpu_final.py")
_PIPELINE = "HLO_passes_after_layout_assignment"
_DUMP = re.compile(r"\.\d{4}\.(?P<pipeline>.+?)\.after_(?P<done>.+?)(?:\.before_.+)?\.txt$")
_FUSION = ("fusion", "fusion-wrapper")

# Numbers of fields: `executable.proto`, `thunk.proto`.
_EXECUTABLE, _THUNKS = 1, 6
_KIND, _INFO, _NAME = 1, 2, 1
_CALL, _CONDITIONAL, _WHILE = 3, 4, 10
_NESTED = {_CALL: (1,), _CONDITIONAL: (1,), _WHILE: (1, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "tests" / "data" / "cpu-final.tar.xz")
    parser.add_argument("--only", action="append", default=[], metavar="PROGRAM")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(a.out, "w:xz", preset=9) as tar:
        flags = f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text"
        os.environ |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
        for name, executable in _compiled(a.only):
            files = {**_stages(Path(folder), name), "launches.txt": _launches(executable)}
            for file, text in files.items():
                content = text.encode()
                info = tarfile.TarInfo(f"{name}/{file}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    print(f"{a.out}: {a.out.stat().st_size:,} bytes")
    return 0


def _compiled(only: list[str]) -> Iterator[tuple[str, bytes]]:
    """Programs by name, and the serialized executable of each."""
    import jax

    sys.path.insert(0, str(ROOT / "tools" / "corpus"))
    for file in PROGRAMS:
        spec = importlib.util.spec_from_file_location(Path(file).stem, ROOT / "tools" / "corpus" / file)
        assert spec is not None
        assert spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        donated = getattr(module, "DONATED", {})
        for name, (function, arguments) in module.PROGRAMS.items():
            if only and name not in only:
                continue

            def entry(*xs: Any, function: Any = function) -> Any:
                return function(*xs)

            entry.__name__ = entry.__qualname__ = name
            compiled = jax.jit(entry, donate_argnums=donated.get(name, ())).lower(*arguments).compile()
            yield name, compiled.runtime_executable().serialize()


def _stages(folder: Path, name: str) -> dict[str, str]:
    dumps = [
        (match, path)
        for path in sorted(folder.glob(f"module_*.jit_{name}.*.txt"))
        if (match := _DUMP.search(path.name))
    ]
    place = {match["pipeline"]: n for n, (match, _) in enumerate(dumps)}
    begin = place["after_layout_assignment"]
    of_fusion = [n for n, (m, _) in enumerate(dumps) if m["pipeline"] == _PIPELINE and m["done"] in _FUSION]
    copied = next(n for n, (match, _) in enumerate(dumps) if match["done"] == "copy-insertion")
    simplified = max(n for n in range(copied) if dumps[n][0]["pipeline"] != "copy-insertion")
    final = next(iter(folder.glob(f"module_*.jit_{name}.cpu_after_optimizations.txt")))
    at_fusion = of_fusion[0] - 1 if of_fusion else begin
    return {
        "input.hlo": _without_metadata(dumps[at_fusion][1].read_text()),
        "simplified.hlo": _without_metadata(dumps[simplified][1].read_text()),
        "copied.hlo": _without_metadata(dumps[copied][1].read_text()),
        "final.hlo": _without_metadata(final.read_text()),
    }


def _without_metadata(text: str) -> str:
    header, tables = text.partition("\n")[0], re.search(r"^(?:%|ENTRY)", text, re.MULTILINE)
    assert tables is not None
    return header + "\n\n" + re.sub(r", metadata=\{[^{}]*\}", "", text[tables.start() :])


def _launches(executable: bytes) -> str:
    """A line for each thunk that is no control flow."""
    length, start = varint(executable, 0)  # what JAX says of it comes first
    options = executable[start + length :]
    result = _message(options, _EXECUTABLE)
    return "".join(f"{kind} {name}\n" for kind, name in _thunks(_message(result, _THUNKS)))


def _thunks(sequence: bytes) -> Iterator[tuple[str, str]]:
    for number, thunk in fields(sequence):
        if number != 1 or not isinstance(thunk, bytes):
            continue
        parts = dict(fields(thunk))
        nested = [n for n in _NESTED if n in parts]
        if not nested:
            yield _text(thunk, _KIND), _text(_message(thunk, _INFO), _NAME)
        for n in nested:
            for field, inner in fields(_message(thunk, n)):
                if field in _NESTED[n] and isinstance(inner, bytes):
                    yield from _thunks(inner)


def _message(data: bytes, number: int) -> bytes:
    return next(v for n, v in fields(data) if n == number and isinstance(v, bytes))


def _text(data: bytes, number: int) -> str:
    return _message(data, number).decode()


if __name__ == "__main__":
    sys.exit(main())
