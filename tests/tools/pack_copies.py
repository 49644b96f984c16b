"""Pack what XLA's copy insertion made of modules into tests/data/copy-insertion.tar.xz.

    python -m tests.tools.pack_copies OUT.tar.xz TARGET=FOLDER... [--limit BYTES]

Each FOLDER is a dump directory of XLA's, each TARGET `cpu` or `gpu` (H100). It is written by
`--xla_dump_to=FOLDER --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*`, and holds loops, branches or
updates in place if it is to tell something: the programs of `tests/tools/loop_programs.py` do. A case is the
module before copy insertion and after it; on GPU also before and after the copies that follow scheduling.
Cases are taken from the smallest up, until LIMIT bytes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .packing import arguments, write_archive

LIMIT = 380_000
_FILE = re.compile(r"module_\d+\.jit_(.+?)\.(\d{4})\.(.+)\.txt")
_TABLES = re.compile(r"\n(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d+ .*\n)+")
_METADATA = re.compile(r", (?:metadata|sharding)=\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\"|\{[^{}]*\})*\}")
_CONFIG = re.compile(
    r'"(?:operation_queue_id|force_earliest_schedule|reification_cost|device_type|wait_on_operation_queues)":'
    r'(?:"[^"]*"|false|\[\]|true),?'
)
_SCHEDULED = "scheduled-gpu-module.after_pipeline-start"
_RESCHEDULED = "post-scheduler-xla-transforms.after_pipeline-start"


def lean(text: str) -> bytes:
    """The module without what says where it came from."""
    text = _CONFIG.sub("", _METADATA.sub("", _TABLES.sub("\n", text)))
    text = re.sub(r', frontend_attributes=\{xla\.sdy\.[^\n]*?"\}(?=[,\n])', "", text)
    return re.sub(r"\n{3,}", "\n\n", text).encode()


def programs(folder: Path) -> Iterator[tuple[str, dict[str, Path]]]:
    """The dumps of each program that copy insertion has seen, by what they are to a case."""
    found: dict[str, list[tuple[int, str, Path]]] = defaultdict(list)
    for file in folder.glob("module_*.txt"):
        if match := _FILE.fullmatch(file.name):
            found[match[1]].append((int(match[2]), match[3], file))
    for name, dumps in sorted(found.items()):
        dumps.sort()
        stages = [stage for _, stage, _ in dumps]
        after = next((k for k, stage in enumerate(stages) if ".after_copy-insertion." in stage), None)
        if after is None:
            continue
        before = next(k for k in range(after - 1, -1, -1) if not stages[k].startswith("copy-insertion."))
        files = {"before": dumps[before][2], "after": dumps[after][2]}
        for key, start in (("scheduled", _SCHEDULED), ("rescheduled", _RESCHEDULED)):
            for stage, (_, _, file) in zip(stages, dumps, strict=True):
                if stage.startswith(start):
                    files[key] = file
        yield name, files


def is_instructive(text: str) -> bool:
    """True if there is anything that may need a copy, or may overwrite an argument."""
    opcodes = (" copy(", " while(", " conditional(", " dynamic-update-slice(", "input_output_alias=")
    return any(opcode in text for opcode in opcodes)


def files_of(files: dict[str, Path]) -> Iterator[tuple[str, bytes]]:
    """The texts of a case. XLA's two steps are left out where they are the same."""
    for key, path in files.items():
        if key in ("before", "after") or (
            lean(files["scheduled"].read_text()) != lean(files["rescheduled"].read_text())
        ):
            yield f"{key}.hlo", lean(path.read_text())


def main() -> None:
    a = arguments(__doc__, "TARGET=FOLDER", LIMIT)
    cases: list[tuple[int, str, dict[str, Path]]] = []
    for folder in a.folders:
        target, _, path = folder.partition("=")
        for name, files in programs(Path(path)):
            text = files["after"].read_text()
            if is_instructive(text):
                cases.append((len(text), f"{target}/{name}", files))
    cases.sort(key=lambda case: case[:2])
    write_archive(a.out, [(name, partial(files_of, files)) for _, name, files in cases], a.limit)


if __name__ == "__main__":
    main()
