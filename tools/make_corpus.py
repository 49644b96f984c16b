"""Compile the reference corpora with XLA and compare our replay with what it did.

    make_corpus.py [NAME...] [-o DIR] [--only PROGRAM]... [--python PYTHON]

NAME is a corpus of tools/corpus/corpora.toml (default: all), which names the file of its programs. Needs the
extras capture, capture-gpu or capture-tpu, each for its targets. Exit status 1 if `hlofuse verify` finds a
difference.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hlofuse.capture import Capture, CaptureError, Destination
from hlofuse.capture.capturing import capture_function
from hlofuse.cli.main import group

HERE = Path(__file__).resolve().parent / "corpus"


def corpora() -> dict[str, tuple[Path, Destination]]:
    """The file of programs and the destination of each corpus, by name."""
    with (HERE / "corpora.toml").open("rb") as file:
        entries = tomllib.load(file)
    return {
        name: (HERE / entry.pop("programs", "programs.py"), Destination(**entry))
        for name, entry in entries.items()
    }


def main() -> int:
    cached = corpora()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(cached))
    parser.add_argument("-o", "--out", type=Path, default=Path("out/corpus"))
    parser.add_argument("--only", action="append", default=[], metavar="PROGRAM")
    parser.add_argument("--python", help="the Python whose JAX compiles, if not this one")
    a = parser.parse_args()
    unknown = [name for name in a.names if name not in cached]
    if unknown:
        parser.error(f"no corpus {', '.join(unknown)}; there are {', '.join(cached)}")
    # Names of source files without the folders they happen to lie in here.
    os.environ.setdefault("JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX", ".*/")
    status = 0
    for name in a.names or cached:
        programs, destination = cached[name]
        make = partial(capture_function, only=a.only, python=a.python)
        status |= _make(name, programs, destination, a.out / name, make)
    return status


def _make(
    name: str, programs: Path, destination: Destination, out: Path, capture: Callable[..., Capture]
) -> int:
    print(f"{name}: compiling", flush=True)
    try:
        created = capture(str(programs), "PROGRAMS", destination, out)
    except CaptureError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    for program, why in [*created.errors.items(), *created.left_out.items()]:
        print(f"  {program}: {why}", file=sys.stderr)
    versions = ", ".join(f"{k} {v}" for k, v in created.versions.items())
    print(f"{name}: {len(created.modules)} modules in {out} ({versions})", flush=True)
    if destination.target == "tpu":
        return 0  # closed: there is nothing of ours to compare
    text = ["verify", str(out), "--target", destination.target]
    result = group.main(text, standalone_mode=False)
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
