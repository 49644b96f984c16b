"""Pack XLA:GPU 0.4.35's answers, priority fusion off, into tests/data/gpu-legacy.tar.xz.

    pack_legacy.py OUT.tar.xz DEVICE=FOLDER...

Each FOLDER holds cases as XLA left them: before.hlo, NN-PIPELINE.PASS.hlo and decisions.log. What the
passes do not look at is left out; the log is taken apart into
decisions and terms of the cost model. Cases are taken from the
smallest up, until LIMIT bytes.
"""

from __future__ import annotations

import argparse
import io
import lzma
import tarfile
from pathlib import Path

from decision_log import xla_decisions
from pack_gpu import lean

LIMIT = 700_000
_COSTS = ("Runtime data", "Read time unfused", "Compute time by", "Input access time by")


def files_of(case: Path) -> dict[str, bytes]:
    found = {
        file.name: lean(file.read_text(encoding="utf-8"), metadata=False).encode()
        for file in sorted(case.glob("*.hlo"))
        if file.name != "after.hlo"
    }
    log = (case / "decisions.log").read_text(encoding="utf-8").splitlines()
    found["decisions.log"] = "".join(f"{line}\n" for line in xla_decisions(log)).encode()
    costs = [line for line in log if line.startswith(_COSTS)]
    found["costs.log"] = "".join(f"{line}\n" for line in costs).encode()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="+", metavar="DEVICE=FOLDER")
    a = parser.parse_args()
    cases: list[tuple[int, str, Path]] = []
    for folder in a.folders:
        device, _, path = folder.partition("=")
        for before in Path(path).glob("*/before.hlo"):
            cases.append((before.stat().st_size, f"{device}/{before.parent.name}", before.parent))
    packed, count = b"", 0
    with io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for _, name, case in sorted(cases):
                for file, data in files_of(case).items():
                    info = tarfile.TarInfo(f"{name}/{file}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
                count += 1
                if count % 20 == 0 and len(lzma.compress(buffer.getvalue())) > LIMIT:
                    break
        packed = lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    a.out.write_bytes(packed)
    print(f"{count} cases of {len(cases)}, {len(packed)} bytes")


if __name__ == "__main__":
    main()
