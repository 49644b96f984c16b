"""Build the pages of the rule catalogue: an index and one page per rule.

    generate_docs.py [OUT]

The pages are written to OUT, by default out/docs/rules; a page of a rule that no longer exists is removed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hlofuse.rules.catalogue import catalogue
from hlofuse.rules.pages import index_markdown, rule_markdown

_INTRODUCTION = """\
# Rules

Every reason XLA gives for fusing or not fusing, by code. Codes are stable: traces and `hlofuse explain` refer
to them, and `hlofuse rule CODE` prints a page.

"""


def pages() -> dict[str, str]:
    """The text of every page, by file name."""
    rules = catalogue()
    out = {f"{code}.md": rule_markdown(rule) for code, rule in rules.items()}
    out["README.md"] = _INTRODUCTION + index_markdown(rules.values())
    return out


def build(folder: Path) -> None:
    """Write all pages to a folder and remove its other pages."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="?", type=Path, default=Path("out/docs/rules"), metavar="OUT")
    out = parser.parse_args().out
    build(out)
    print(f"{len(pages()) - 1} rules in {out}/README.md")


if __name__ == "__main__":
    main()
