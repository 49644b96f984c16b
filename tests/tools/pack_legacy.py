"""Pack XLA:GPU 0.4.35's answers, priority fusion off, into tests/data/gpu-legacy.tar.xz.

    python -m tests.tools.pack_legacy OUT.tar.xz DEVICE=FOLDER...

Each FOLDER holds cases as XLA left them: before.hlo, NN-PIPELINE.PASS.hlo and decisions.log. What the
passes do not look at is left out; the log is taken apart into decisions and terms of the cost model. Cases
are taken from the smallest up, until LIMIT bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .decision_log import xla_decisions
from .pack_gpu import lean
from .packing import pack

LIMIT = 700_000
_COSTS = ("Runtime data", "Read time unfused", "Compute time by", "Input access time by")


def files_of(case: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(case.glob("*.hlo")):
        if file.name != "after.hlo":
            yield file.name, lean(file.read_text(encoding="utf-8"), metadata=False).encode()
    log = (case / "decisions.log").read_text(encoding="utf-8").splitlines()
    yield "decisions.log", "".join(f"{line}\n" for line in xla_decisions(log)).encode()
    costs = [line for line in log if line.startswith(_COSTS)]
    yield "costs.log", "".join(f"{line}\n" for line in costs).encode()


if __name__ == "__main__":
    pack(__doc__, lambda case: True, files_of, LIMIT)
