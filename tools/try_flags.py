"""Compile every module again with each XLA flag that hlofuse suggests for it, and compare the kernels.

    python tools/try_flags.py CAPTURES [--python PYTHON]

CAPTURES is a folder that `hlofuse capture` wrote, with modules before optimizations. XLA has the flag from
hlofuse's own suggestion; the kernels of its result after fusion have to be those of the replay with the flag.
Exit status 1 if one differs, or if a suggestion changes nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def explained(*arguments: str) -> dict[str, Any]:
    """`hlofuse explain --format json`."""
    command = [sys.executable, "-m", "hlofuse", "explain", *arguments, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def with_flag(case: Path, report: dict[str, Any], flag: str, python: str | None, out: Path) -> dict[str, Any]:
    """The module as XLA compiles it with the flag, explained."""
    backend, device = report["xla"]["backend"], report["xla"]["device"]
    command = [sys.executable, "-m", "hlofuse", "capture", str(case / "before_optimizations.hlo")]
    command += ["--target", backend, "--flags", flag, "-o", str(out)]
    command += ["--device", device] if device else []
    command += ["--python", python] if python else []
    subprocess.run(command, capture_output=True, text=True, check=True)
    return explained(str(next(p.parent for p in out.rglob("before.hlo"))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("captures", type=Path)
    parser.add_argument("--python")
    given = parser.parse_args()
    tried = wrong = 0
    for case in sorted(p.parent for p in given.captures.rglob("before_optimizations.hlo")):
        report = explained(str(case))
        for s in report["suggestions"]:
            if s["kind"] != "flag":
                continue
            tried += 1
            with tempfile.TemporaryDirectory() as folder:
                done = with_flag(case, report, s["flag"], given.python, Path(folder))
            xla, told = done["xla_result"]["kernels"], done["xla_result"]["replayed"]
            actual, expected, before = done["totals"], s["tried"], report["totals"]
            same = (actual["kernels"], actual["bytes"]) == (expected["kernels"], expected["bytes"])
            changed = (actual["launches"], actual["bytes"]) != (before["launches"], before["bytes"])
            wrong += not (same and changed and xla == told)
            verdict = "as suggested" if same and changed and xla == told else "DIFFERS"
            figures = f"{before['kernels']} → {actual['kernels']} kernels, suggested {expected['kernels']}"
            print(f"{case.name:28} {s['flag']:60} {figures:40} {verdict}", flush=True)
    print(f"{tried - wrong} of {tried} suggested flags change the module as suggested")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
