"""Cases that XLA answered, packed small enough to live in the repository."""

from __future__ import annotations

import argparse
import io
import lzma
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path


def pack(
    description: str | None,
    answered: Callable[[Path], bool],
    files_of: Callable[[Path], Iterator[tuple[str, bytes]]],
    limit: int,
) -> None:
    """The command line `OUT.tar.xz DEVICE=FOLDER... [--limit BYTES]`: cases that are `answered`, from the
    smallest up, until the archive has about `limit` bytes unless told otherwise.
    """
    a = arguments(description, "DEVICE=FOLDER", limit)
    cases: list[tuple[int, str, Path]] = []
    for folder in a.folders:
        device, _, path = folder.partition("=")
        for before in Path(path).glob("*/before.hlo"):
            if answered(before.parent):
                cases.append((before.stat().st_size, f"{device}/{before.parent.name}", before.parent))
    write_archive(a.out, [(name, partial(files_of, case)) for _, name, case in sorted(cases)], a.limit)


def arguments(description: str | None, folders: str, limit: int) -> argparse.Namespace:
    """`OUT.tar.xz FOLDERS... [--limit BYTES]`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="+", metavar=folders)
    parser.add_argument("--limit", type=int, default=limit, help="bytes of the archive")
    return parser.parse_args()


def write_archive(
    out: Path, cases: Sequence[tuple[str, Callable[[], Iterable[tuple[str, bytes]]]]], limit: int
) -> None:
    """The files of each named case, in order, until the archive has about `limit` bytes."""
    count = 0
    with io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, files in cases:
                for file, data in files():
                    info = tarfile.TarInfo(f"{name}/{file}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
                count += 1
                if count % 20 == 0 and len(lzma.compress(buffer.getvalue())) > limit:
                    break
        packed = lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    out.write_bytes(packed)
    print(f"{count} cases of {len(cases)}, {len(packed)} bytes")
