"""Write the documentation that is made from the code: docs/rules/, one page a rule, and their index.

    generate_docs.py [--check]

With --check nothing is written; exit status 1 when a file is missing, different or left over.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hlofuse.rules.catalogue import catalogue
from hlofuse.rules.pages import index_markdown, rule_markdown

ROOT = Path(__file__).resolve().parent.parent
_INTRODUCTION = """\
# Rules

Every reason XLA can give for fusing or not fusing, by code. Codes are stable: `hlofuse rule CODE` prints
a page, a trace and `hlofuse explain` refer to them. These files are made from the catalogue in
`hlofuse/rules/` by `make docs`.

"""


def pages() -> dict[Path, str]:
    """Every generated file with its text."""
    rules = catalogue()
    folder = ROOT / "docs" / "rules"
    out = {folder / f"{code}.md": rule_markdown(rule) for code, rule in rules.items()}
    out[folder / "README.md"] = _INTRODUCTION + index_markdown(rules.values())
    return out


def stale() -> list[Path]:
    """Files that are not as they would be generated."""
    wanted = pages()
    found = set((ROOT / "docs" / "rules").glob("*.md"))
    differing = [p for p, text in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    return sorted([*differing, *(found - wanted.keys())])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    check = parser.parse_args().check
    for path in stale():
        print(path.relative_to(ROOT))
        if check:
            continue
        text = pages().get(path)
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale() else 0


if __name__ == "__main__":
    sys.exit(main())
