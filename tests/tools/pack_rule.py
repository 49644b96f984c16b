"""Append a case to tests/rules/CODE.hlo, as XLA answered it.

    python -m tests.tools.pack_rule CASE CODE NAME --device D
        [--applied CODE]... [--not-applied CODE]... [--refused REASON]...

CASE holds before.hlo and after.hlo. XLA's record of the case must hold each `--refused`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .pack_gpu import lean

RULES = Path(__file__).parent.parent / "rules"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", type=Path)
    parser.add_argument("code")
    parser.add_argument("name")
    parser.add_argument("--device", required=True)
    parser.add_argument("--applied", action="append", default=[])
    parser.add_argument("--not-applied", action="append", default=[])
    parser.add_argument("--refused", action="append", default=[])
    a = parser.parse_args()
    record = (a.case / "priority_fusion.txtpb").read_text(encoding="utf-8")
    for reason in a.refused:
        if f'reason: "{reason}"' not in record:
            parser.error(f"XLA's record of {a.case} does not say {reason!r}")
    before, after = (
        lean((a.case / f"{f}.hlo").read_text(encoding="utf-8"), metadata=False) for f in ("before", "after")
    )
    header = f"// CASE {a.name} target=gpu device={a.device}"
    header += "".join(
        f" {key}={','.join(codes)}"
        for key, codes in (("applied", a.applied), ("not_applied", a.not_applied))
        if codes
    )
    refused = ["// REFUSED", *a.refused, ""] if a.refused else []
    lines = [header, before.rstrip("\n"), "", *refused, "// EXPECT", after.rstrip("\n")]
    file = RULES / f"{a.code}.hlo"
    earlier = [file.read_text(encoding="utf-8")] if file.exists() else []
    file.write_text("\n".join([*earlier, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
