"""Bytes to text: plain files, gzip, standard input, with a bound on what is taken into memory."""

import codecs
import os
import sys
from pathlib import Path
from typing import BinaryIO, cast

from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError

DEFAULT_LIMIT = 1 << 30
"""The most bytes of text that are read, decompressed: 1 GiB."""

LIMIT_VARIABLE = "HLOFUSE_MAX_INPUT_BYTES"
"""The environment variable that sets another limit."""

_CHUNK = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_FOREIGN_STARTS = (b"ML\xefR", b"\n")
"""How StableHLO bytecode and HLO protos start."""


def input_limit() -> int:
    """The limit in force, in bytes."""
    text = os.environ.get(LIMIT_VARIABLE)
    if text is None:
        return DEFAULT_LIMIT
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise HlofuseError(f"{LIMIT_VARIABLE} must be a number of bytes, not {text!r}")
    return int(text)


def read_text(path: str | os.PathLike[str], limit: int | None = None, *, as_module: bool = True) -> str:
    """The text of a dump: a file (gzip is seen by its first bytes), or `-` for standard input.

    Unless `as_module` is false it is the module in that text, with the line numbers of the file; one that is
    cut short is as it is written.

    Raises HlofuseError for what cannot be read, is empty, is not text, or is longer than `limit` bytes;
    as a module also for what is known to be another kind of text, and for several modules of a size.
    """
    return decode(read_bytes(path, limit), called(path), as_module)


def called(path: str | os.PathLike[str]) -> str:
    """What an input is called in messages."""
    return "standard input" if str(path) == "-" else str(path)


def read_bytes(path: str | os.PathLike[str], limit: int | None = None) -> bytes:
    """What is in a file or standard input (`-`), decompressed; HlofuseError as for `read_text`."""
    limit = input_limit() if limit is None else limit
    name = called(path)
    if str(path) == "-":
        return _read(sys.stdin.buffer, name, limit)
    try:
        with open(path, "rb") as file:
            return _read(file, name, limit)
    except FileNotFoundError:
        raise HlofuseError(_missing(Path(path))) from None
    except OSError as e:
        raise HlofuseError(f"cannot read {printable(name)}: {e.strerror or e}") from None
    except ValueError:  # a NUL in the name
        raise HlofuseError(f"cannot read {printable(name)}: not a file name") from None


def _missing(path: Path) -> str:
    from hlofuse.inputs.suggest import close_matches, names_meant

    try:
        siblings = sorted(path.parent.iterdir())
    except OSError:
        siblings = []
    # A suffix that every dump has makes no two names alike.
    similar_names = close_matches(path.stem, [p.stem for p in siblings])
    meant = [p.name for p in siblings if p.stem in similar_names][:3]
    return f"{printable(str(path))} does not exist{names_meant(meant)}"


def _read(file: BinaryIO, name: str, limit: int) -> bytes:
    first = file.read(_CHUNK)
    if not first:
        raise HlofuseError(f"{printable(name)} is empty")
    if first.startswith(_GZIP_MAGIC):
        return _gunzip(first, file, name, limit)
    _refuse_early(first, name)
    chunks = [first]
    size = len(first)
    while chunk := file.read(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise _too_long(name, limit)
        chunks.append(chunk)
    if size > limit:
        raise _too_long(name, limit)
    return b"".join(chunks)


def _gunzip(first: bytes, file: BinaryIO, name: str, limit: int) -> bytes:
    """Decompress piece by piece, so that a small file cannot grow without bound."""
    import gzip
    import zlib

    chunks: list[bytes] = []
    size = 0
    try:
        with gzip.GzipFile(mode="rb", fileobj=cast("BinaryIO", _Prepended(first, file))) as unzipped:
            while chunk := unzipped.read(_CHUNK):
                if not chunks:
                    _refuse_early(chunk, name)
                size += len(chunk)
                if size > limit:
                    raise _too_long(name, limit, " once decompressed")
                chunks.append(chunk)
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise HlofuseError(f"{printable(name)}: not a complete gzip file: {e}") from None
    if not chunks:
        raise HlofuseError(f"{printable(name)} is empty once decompressed")
    return b"".join(chunks)


class _Prepended:
    """A stream with its first bytes put back: standard input cannot be rewound."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first = first
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        if self._first:
            if size < 0:
                out, self._first = self._first + self._rest.read(), b""
                return out
            out, self._first = self._first[:size], self._first[size:]
            return out
        return self._rest.read(size)


def _too_long(name: str, limit: int, how: str = "") -> HlofuseError:
    return HlofuseError(
        f"{printable(name)} has more than {limit:,} bytes{how}; set {LIMIT_VARIABLE} to read more"
    )


def _refuse_early(first: bytes, name: str) -> None:
    """A stream that is neither text nor a module in another form is not read to its end."""
    if not first.startswith(_FOREIGN_STARTS):
        _refuse_binary(first, name)


def _refuse_binary(first: bytes, name: str) -> None:
    if b"\0" not in first[:65536]:
        return
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise HlofuseError(f"{printable(name)} is UTF-16 text (as PowerShell's > writes); save it as UTF-8")
    hint = ""
    if b"HloModule" not in first[:65536]:
        hint = (
            "; an HLO proto (.hlo.pb) would be damaged or not accepted here: give the .txt dump next to it,"
            " or add --xla_dump_hlo_as_text to XLA_FLAGS"
        )
    raise HlofuseError(f"{printable(name)} is a binary file, not text{hint}")


def decode(data: bytes, name: str, as_module: bool = True) -> str:
    """The text in `data`, as `read_text` gives it; `name` is what messages call it."""
    _refuse_binary(data, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise HlofuseError(
            f"{printable(name)} is not UTF-8 text: byte {data[e.start]:#04x} in line {line} (offset"
            f" {e.start})"
        ) from None
    if not text.strip():
        raise HlofuseError(f"{printable(name)} is empty")
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    if as_module:
        from hlofuse.inputs.excerpt import find_module

        return find_module(text, name).text
    return text
