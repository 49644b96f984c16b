"""Compile every module again with each XLA flag that hlofuse suggests for it, and compare the kernels.

    python tools/try_flags.py CAPTURES [--python PYTHON]

CAPTURES is a folder that `hlofuse capture` wrote, with modules before optimizations. XLA compiles each with
and without the flag; what that changes in kernels, launches and bytes has to be what the suggestion says.
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
    """Totals of the module as XLA compiles it with the flag."""
    backend, device = report["xla"]["backend"], report["xla"]["device"]
    command = [sys.executable, "-m", "hlofuse", "capture", str(case / "before_optimizations.hlo")]
    command += ["--target", backend, "-o", str(out)]
    command += ["--flags", flag] if flag else []
    command += ["--device", device] if device else []
    command += ["--python", python] if python else []
    subprocess.run(command, capture_output=True, text=True, check=True)
    return explained(str(next(p.parent for p in out.rglob("before.hlo"))))["totals"]


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
                before, after = (
                    with_flag(case, report, flag, given.python, Path(folder, name))
                    for name, flag in (("before", ""), ("after", s["flag"]))
                )
            actual = [before[k] - after[k] for k in ("kernels", "launches", "bytes")]
            expected = [s["tried"][f"{k}_saved"] for k in ("kernels", "launches", "bytes")]
            same = actual == expected and any(actual)
            wrong += not same
            figures = f"{actual[0]} kernels, {actual[2]} bytes fewer; suggested {expected[0]}, {expected[2]}"
            print(f"{case.name:24} {s['flag']:56} {figures:60} {'ok' if same else 'DIFFERS'}", flush=True)
    print(f"{tried - wrong} of {tried} suggested flags change the module as suggested")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
