"""Pack XLA:GPU's answers into tests/data/gpu.tar.xz, gpu-unusual.tar.xz and gpu-triton-multi-output.tar.xz.

    python -m tests.tools.pack_gpu OUT.tar.xz DEVICE=FOLDER... [--limit BYTES]

Each FOLDER holds cases as XLA left them: before.hlo, NN-PASS.hlo, before.hlo.pb and priority_fusion.txtpb.
What the passes do not look at (source tables, shardings) is left out, and of the proto
everything but names, ids and operands. Cases are taken from the smallest up, until LIMIT bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hlofuse.inputs.wire_format import read_unique_ids
from hlofuse.ir.unique_ids import UniqueIds
from .packing import pack
from .wire import message, varint

LIMIT = 1_450_000
TABLES = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*\n?", re.MULTILINE)
METADATA = re.compile(r', metadata=\{(?:[^{}"]|"[^"]*")*\}')
_SHARDING = re.compile(r", sharding=\{replicated\}")
_MESH = re.compile(r', frontend_attributes=\{xla\.sdy\.sharding="[^"]*"\}')
_HEADER = re.compile(r", (?:allow_spmd_\w+=\{[^}]*\}|frontend_attributes=\{.*\})")


def lean(text: str, *, metadata: bool) -> str:
    """The module without what no pass looks at, and without metadata unless asked for."""
    head, _, rest = text.partition("\n")
    rest = TABLES.sub("", rest.lstrip("\n"))
    rest = _MESH.sub("", _SHARDING.sub("", rest))
    return _HEADER.sub("", head) + "\n\n" + (rest if metadata else METADATA.sub("", rest))


def lean_proto(ids: UniqueIds) -> bytes:
    """A proto that says no more than the ids."""
    computations = b""
    for name, computation in ids.computations.items():
        elements = {element.name: key for key, element in computation.elements.items()}
        body = message(1, name.encode())
        for instruction, number in computation.by_name.items():
            one = message(1, instruction.encode()) + varint(35 << 3) + varint(number)
            if instruction in elements:
                operand, index = elements[instruction]
                one += message(2, b"get-tuple-element") + message(36, varint(operand))
                one += varint(13 << 3) + varint(index)
            body += message(2, one)
        computations += message(3, body)
    return message(1, computations)


def files_of(case: Path) -> Iterator[tuple[str, bytes]]:
    record = (case / "priority_fusion.txtpb").read_text(encoding="utf-8")
    for file in sorted(case.glob("*.hlo")):
        if file.name != "after.hlo":
            # What the program calls its operations tells something about ids, and refusals quote it.
            text = lean(file.read_text(encoding="utf-8"), metadata=file.name == "before.hlo")
            yield file.name, text.encode()
    yield "priority_fusion.txtpb", record[record.index("fusion_steps") :].encode()
    yield "before.hlo.pb", lean_proto(read_unique_ids(case / "before.hlo.pb"))


def has_record(case: Path) -> bool:
    record = case / "priority_fusion.txtpb"
    return record.exists() and "fusion_steps" in record.read_text(encoding="utf-8")


if __name__ == "__main__":
    pack(__doc__, has_record, files_of, LIMIT)
