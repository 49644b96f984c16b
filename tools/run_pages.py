"""Run the commands that pages show, and write what they print into the pages.

    run_pages.py [PAGE...] [--write]

A page shows commands in blocks of ```console: a line that begins with `$ `, and below it what the command
prints. They run in order in a scratch copy of the folder that the comment `<!-- commands run in FOLDER -->`
names. A line `…` stands for lines that are left out. Commands of SKIPPED are shown only. `# exit status 1`
after a command is expected. Without --write, exit status 1 says that a page shows something else.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_TEXTS = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
PAGES = sorted(p for p in _TEXTS if "<!-- commands run in " in p.read_text("utf-8"))
SKIPPED = ("pip ", "python ", "git ", "make ")
"""Commands that install something, or print times of the machine."""
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """A command of a page, the status it ends with and the lines below it."""

    command: str
    status: int
    lines: tuple[str, ...]

    @property
    def is_run(self) -> bool:
        return not self.command.startswith(SKIPPED)

    def with_output(self, printed: list[str]) -> list[str]:
        """What the page shows of the lines that the command printed."""
        if "…" not in self.lines or not printed:
            return printed if self.lines else []
        at = self.lines.index("…")
        below = len(self.lines) - at - 1
        return [*printed[:at], "…", *printed[len(printed) - below :]]


def folder_of(page: str) -> Path | None:
    """The folder whose copy the commands of a page run in."""
    found = re.search(r"<!-- commands run in (\S+) -->", page)
    return ROOT / found[1] if found else None


def commands(block: str) -> Iterator[Shown]:
    """The commands of a block, in order."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        status = re.search(r" +# exit status (\d)$", command)
        text = command[: status.start()] if status else command
        yield Shown(text, int(status[1]) if status else 0, tuple(lines))


def shown(page: str) -> list[Shown]:
    """All commands of a page."""
    return [command for block in _BLOCK.findall(page) for command in commands(block)]


def run(command: Shown, folder: Path) -> list[str]:
    """The lines that a command prints; an error if it does not end as the page says."""
    env = {**os.environ, "COLUMNS": "104", "NO_COLOR": "1"}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    done = subprocess.run(command.command, shell=True, cwd=folder, env=env, text=True, capture_output=True)
    if done.returncode != command.status:
        raise SystemExit(f"exit status {done.returncode}: {command.command}\n{done.stdout}{done.stderr}")
    return [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")] if done.stdout else []


def rewritten(page: str) -> str:
    """The page with what its commands print now."""
    source = folder_of(page)
    assert source is not None
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / source.name
        shutil.copytree(source, folder)

        def block(found: re.Match[str]) -> str:
            out = []
            for c in commands(found[1]):
                lines = c.with_output(run(c, folder)) if c.is_run else list(c.lines)
                status = f"  # exit status {c.status}" if c.status else ""
                out += [f"$ {c.command}{status}", *lines]
            return "```console\n" + "\n".join(out) + "\n```"

        return _BLOCK.sub(block, page)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--write", action="store_true")
    a = parser.parse_args()
    status = 0
    for path in a.pages:
        page = path.read_text("utf-8")
        new = rewritten(page)
        if new != page:
            print(f"{path.name}: " + ("rewritten" if a.write else "shows something else"))
            status |= not a.write
            if a.write:
                path.write_text(new, "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
