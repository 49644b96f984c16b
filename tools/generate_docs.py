"""Gather the pages of the site in out/docs; `make site` builds them.

    generate_docs.py [OUT]

The site has the pages of docs/, README.md as its first page, the pages of EXTRA, a page for every rule and
the options of every command. Links stay as the repository has them; here each is rewritten to the page that
it means, or to a copy of the file. OUT is emptied first.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

import click

from hlofuse.cli.main import group as command_group
from hlofuse.rules.catalogue import catalogue
from hlofuse.rules.pages import index_markdown, rule_markdown

ROOT = Path(__file__).resolve().parent.parent
EXTRA = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "samples/README.md": "samples.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples/ci/README.md": "examples/ci.md",
}
"""Pages outside docs/, and where they are in the site."""
RULES = """\
# Rules

Every reason XLA gives for fusing or not fusing, by code. Codes are stable: traces and `hlofuse explain` refer
to them, and `hlofuse rule CODE` prints a page.

"""
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)


_LATER_IN_SEARCH = "---\nsearch: {boost: 0.3}\n---\n\n"
"""Short pages on rules would come before the guides, whatever is searched for."""


def rule_pages() -> dict[str, str]:
    """The page of every rule and their index, by file name."""
    rules = catalogue()
    out = {f"{code}.md": rule_markdown(rule) for code, rule in rules.items()}
    out["README.md"] = RULES + index_markdown(rules.values())
    return out


def options() -> str:
    """The `--help` of every command."""
    parent = click.Context(command_group, info_name="hlofuse")
    parts = ["# Options\n\n`hlofuse COMMAND --help` prints the same.\n"]
    for name in command_group.list_commands(parent):
        command = command_group.get_command(parent, name)
        assert command is not None
        context = click.Context(
            command, info_name=name, parent=parent, terminal_width=100, max_content_width=100
        )
        parts.append(f"## {name}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def site_path(path: str) -> str:
    """Where a file of the repository is in the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return EXTRA.get(path) or f"files/{path.replace('/.', '/')}"  # hidden folders are no part of a site


def with_site_links(text: str, page: str) -> tuple[str, set[str]]:
    """A page of the repository with links to files of the site, and the files to copy for that."""
    copied: set[str] = set()

    def rewritten(link: re.Match[str]) -> str:
        path = normpath(str(PurePosixPath(page).parent / link[2]))
        if re.match(r"\w+:", link[2]) or not (ROOT / path).is_file():
            return link[0]
        if site_path(path).startswith("files/"):
            copied.add(path)
        return f"{link[1]}{relpath(site_path(path), PurePosixPath(site_path(page)).parent)}{link[3] or ''})"

    code = [m.span() for m in _CODE.finditer(text)]
    parts, end = [], 0
    for start, stop in [*code, (len(text), len(text))]:
        parts += [_LINK.sub(rewritten, text[end:start]), text[start:stop]]
        end = stop
    return "".join(parts), copied


def build(out: Path) -> int:
    """Write the source of the site to an empty folder; the number of pages."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "docs", out)
    for name, text in {**{f"rules/{n}": t for n, t in rule_pages().items()}, "options.md": options()}.items():
        _write(out / name, _LATER_IN_SEARCH + text)
    pages = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md"))]
    for page in (*pages, *EXTRA):
        text, copied = with_site_links((ROOT / page).read_text(encoding="utf-8"), page)
        if page.startswith("docs/recipes/"):
            fields = re.compile(r"^(Rules|Devices|Before|After):", re.MULTILINE)
            text = fields.sub(r"\n\1:", text)  # paragraphs of their own
        _write(out / site_path(page), text)
        for path in copied:
            copy = out / site_path(path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, copy)
    return sum(1 for _ in out.rglob("*.md"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="?", type=Path, default=Path("out/docs"), metavar="OUT")
    out = parser.parse_args().out
    print(f"{build(out)} pages in {out}")


if __name__ == "__main__":
    main()
