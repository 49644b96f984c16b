"""Judge what every recipe's rewrite makes of every module of the corpora by XLA:CPU.

    python -m tests.tools.judge_recipes [ARCHIVE...] [--write]

Prints a line for each module and recipe that applies: the verdict, the archive of tests/data, the module and
the recipe. Exit status 1 if values differ. `--write` writes tests/recipes/on_corpora.txt: for each archive
and recipe the smallest module that took a second at most.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from hlofuse.ir.errors import HlofuseError
from hlofuse.judge.judge import Judge
from hlofuse.library.loading import read
from hlofuse.library.options import ReplayOptions
from ..recipes.values import REWRITES, judge_rewrites

DATA = Path(__file__).parents[1] / "data"
LIST = Path(__file__).parents[1] / "recipes" / "on_corpora.txt"
ARCHIVES = (
    "cpu",
    "cpu-unoptimized",
    "cpu-multi-output",
    "gpu",
    "gpu-models",
    "gpu-users",
    "gpu-unusual",
    "h200",
)
_ROUNDING = 10
"""Times the tolerance: sums in another order differ so much at most."""
_SMALLEST = 1
"""Modules for each archive and recipe in the list."""


def modules(archive: str) -> Iterator[tuple[str, str]]:
    """The name and text of each different input of an archive."""
    seen = set()
    with tarfile.open(DATA / f"{archive}.tar.xz") as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is None or Path(member.name).name not in ("before.hlo", "input.hlo"):
                continue
            text = file.read().decode()
            if (body := text.partition("\n")[2]) not in seen:
                seen.add(body)
                yield member.name, text


def options(archive: str, member: str, path: str) -> ReplayOptions:
    """How a module of an archive is read."""
    if archive.startswith("cpu"):
        return ReplayOptions(path, target="cpu")
    return ReplayOptions(path, target="gpu", device="h200" if archive == "h200" else member.partition("/")[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("archives", nargs="*", default=ARCHIVES)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    counts: dict[str, int] = {}
    smallest: dict[tuple[str, str], list[tuple[int, str]]] = {}
    with Judge(timeout=120) as judge, tempfile.TemporaryDirectory() as folder:
        for archive in given.archives:
            for member, text in modules(archive):
                path = Path(folder) / "before.hlo"
                path.write_text(text)
                try:
                    loaded = read(options(archive, member, str(path)))
                    found = judge_rewrites(judge, loaded, REWRITES)
                    begin = time.monotonic()
                    for name, judged in found:
                        seconds, begin = time.monotonic() - begin, time.monotonic()
                        excess = max((d.excess for d in judged.differences), default=0.0)
                        found_is = "rounding" if 1 < excess < _ROUNDING else judged.verdict
                        print(found_is, archive, member, name, judged.reason, flush=True)
                        counts[found_is] = counts.get(found_is, 0) + 1
                        if found_is == "same" and seconds < 1:
                            smallest.setdefault((archive, name), []).append((len(text), member))
                except HlofuseError as error:
                    print("skipped", archive, member, error, flush=True)
    print(counts)
    if given.write:
        lines = [f"{a} {m} {n}" for (a, n), found in smallest.items() for _, m in sorted(found)[:_SMALLEST]]
        LIST.write_text("\n".join(lines) + "\n")
    return int("different" in counts)


if __name__ == "__main__":
    sys.exit(main())
