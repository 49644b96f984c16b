"""What the name of a dump file says (`xla/service/dump.cc`).

`module_0042.jit_step.0017.fusion.after_priority-fusion.before_cse.txt`: module 42, jit_step, the 18th
file of this compilation, pipeline `fusion`, between two passes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FILE = re.compile(
    r"(?:(?P<prefix>.+?)\.)?module_(?P<id>\d+)\.(?P<middle>.+)\.(?:txt|hlo)(?:\.gz)?", re.DOTALL
)
_BETWEEN = re.compile(
    r"(?P<name>.+?)\.(?:cl_\d+\.)?(?P<number>\d{4,9})\.(?P<pipeline>.+?)\.after_(?P<after>.+?)(?:\.before_(?P<before>.+))?",
    re.DOTALL,
)
_WHOLE = re.compile(
    r"(?P<name>.+?)\.(?:cl_\d+\.)?(?P<stage>before_optimizations|(?:cpu_|gpu_|sm_[\w.]+?_gpu_|gfx\w+?_gpu_|tpu_)?after_optimizations)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class DumpFile:
    """One dump file and what its name tells."""

    path: Path
    prefix: str
    module_id: int
    module: str
    number: int | None = None
    """Counts the files of one compilation, in the order they were written."""
    pipeline: str | None = None
    after: str | None = None
    before: str | None = None
    whole: str | None = None
    """`before_optimizations` or `cpu_after_optimizations` and the like."""


def read_name(path: Path) -> DumpFile | None:
    """What the name of `path` says; None for a file that is no module dump."""
    m = _FILE.fullmatch(path.name)
    if m is None:
        return None
    prefix, module_id = m["prefix"] or "", int(m["id"][:18])
    between = _BETWEEN.fullmatch(m["middle"])
    if between is not None:
        return DumpFile(
            path,
            prefix,
            module_id,
            between["name"],
            int(between["number"]),
            between["pipeline"],
            between["after"],
            between["before"],
        )
    whole = _WHOLE.fullmatch(m["middle"])
    if whole is not None:
        return DumpFile(path, prefix, module_id, whole["name"], whole=whole["stage"])
    return None
