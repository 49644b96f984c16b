"""Make a file of tests/rules from a case as XLA answered it.

    pack_rule.py CASE NAME --device D [--settles CODE]... [--passes-over CODE]... [--says REASON]...

CASE holds before.hlo and after.hlo. `--says` is a refusal that XLA's record of the case must hold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pack_gpu import lean

RULES = Path(__file__).parent.parent / "rules"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", type=Path)
    parser.add_argument("name")
    parser.add_argument("--device", required=True)
    parser.add_argument("--settles", action="append", default=[])
    parser.add_argument("--passes-over", action="append", default=[])
    parser.add_argument("--says", action="append", default=[])
    a = parser.parse_args()
    record = (a.case / "priority_fusion.txtpb").read_text(encoding="utf-8")
    for reason in a.says:
        if f'reason: "{reason}"' not in record:
            parser.error(f"XLA's record of {a.case} does not say {reason!r}")
    head = [f"// replay --target gpu --device {a.device}"]
    head += [f"// {code} settles" for code in a.settles]
    head += [f"// {code} passes over" for code in a.passes_over]
    head += [f"// says {reason}" for reason in a.says]
    before, after = (
        lean((a.case / f"{f}.hlo").read_text(encoding="utf-8"), metadata=False) for f in ("before", "after")
    )
    (RULES / f"{a.name}.hlo").write_text("\n".join(head) + "\n" + before, encoding="utf-8")
    (RULES / f"{a.name}.expected.hlo").write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
