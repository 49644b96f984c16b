"""Bytes to text: plain files, gzip, standard input, with bounded memory."""

import codecs
import os
import re
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import IO

from hlofuse.format import printable
from hlofuse.ir import AnyPath, HlofuseError
from .excerpt import find_module
from .suggest import close_matches, names_meant

DEFAULT_LIMIT = 1 << 30  # The limit of decompressed text: 1 GiB
LIMIT_VARIABLE = "HLOFUSE_MAX_INPUT_BYTES"  # The environment variable for another limit
_CHUNK = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_NOT_TEXT = (b"ML\xefR", b"\n", _GZIP_MAGIC)
"""First bytes of StableHLO bytecode, HLO protos and compressed files."""


def input_limit() -> int:
    text = os.environ.get(LIMIT_VARIABLE)
    if text is None:
        return DEFAULT_LIMIT
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise HlofuseError(f"{LIMIT_VARIABLE} must be a number of bytes, not {text!r}")
    return int(text)


def read_text(path: AnyPath, *, as_module: bool = True) -> str:
    """The text of a dump: a file (gzip is recognized by its first bytes), or `-` for standard input.

    With `as_module`, the module in that text, with the line numbers of the file; a truncated module is
    unchanged.

    Raises `HlofuseError` for unreadable, empty or non-text input, and for more bytes than the limit; with
    `as_module` also for other known formats, and for several modules of similar size."""
    return decode(read_bytes(path), input_name(path), as_module)


def input_name(path: AnyPath) -> str:
    return "standard input" if str(path) == "-" else str(path)


def read_bytes(path: AnyPath, limit: int | None = None) -> bytes:
    """The decompressed bytes of a file or standard input (`-`); raises `HlofuseError` as `read_text`."""
    limit = input_limit() if limit is None else limit
    name = input_name(path)
    if str(path) == "-":
        return _read_stream(sys.stdin.buffer, name, limit)
    try:
        with open(path, "rb") as file:
            return _read_stream(file, name, limit)
    except FileNotFoundError:
        raise HlofuseError(_missing(Path(path))) from None
    except OSError as e:
        raise HlofuseError(f"cannot read {printable(name)}: {e.strerror or e}") from None
    except ValueError:  # a NUL in the name
        raise HlofuseError(f"cannot read {printable(name)}: not a file name") from None


def _missing(path: Path) -> str:
    try:
        siblings = sorted(path.parent.iterdir())
    except OSError:
        siblings = []
    # A suffix that every dump has makes no two names alike.
    similar_names = close_matches(path.stem, [p.stem for p in siblings])
    meant = [p.name for p in siblings if p.stem in similar_names and p.name != path.name][:3]
    program, is_function, _ = str(path).rpartition(":")
    if is_function and program.endswith(".py") and Path(program).is_file():
        return f"{printable(path)} is a function, not a dump; hlofuse capture {printable(path)} compiles it"
    return f"{printable(path)} does not exist{names_meant(meant)}"


def _read_stream(file: IO[bytes], name: str, limit: int) -> bytes:
    data = _read_bounded(file.read, name, limit)
    if not data.startswith(_GZIP_MAGIC):
        return data
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as unzipped:
            return _read_bounded(unzipped.read, name, limit, " once decompressed")
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise HlofuseError(f"{printable(name)}: not a complete gzip file: {e}") from None


def _read_bounded(read: Callable[[int], bytes], name: str, limit: int, how: str = "") -> bytes:
    """A whole stream within the limit, read in parts, since a small compressed file may grow without bound.
    Other data than text and modules are not read to the end."""
    chunks = list[bytes]()
    size = 0
    while chunk := read(_CHUNK):
        if not chunks and not chunk.startswith(_NOT_TEXT):
            _refuse_binary(chunk, name)
        size += len(chunk)
        if size > limit:
            raise HlofuseError(
                f"{printable(name)} has more than {limit:,} bytes{how}; set {LIMIT_VARIABLE} to read more"
            )
        chunks.append(chunk)
    if not chunks:
        raise HlofuseError(f"{printable(name)} is empty{how}")
    return b"".join(chunks)


_ARCHIVES = (b"PK\3\4", b"\xfd7zXZ\0", b"BZh", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a")
"""First bytes of zip, xz, bzip2, Zstandard, 7-Zip and RAR."""
_SAVED_MODEL = b"\x08\x01\x12"


def _refuse_binary(first: bytes, name: str) -> None:
    if first.startswith(_ARCHIVES) or first[257:262] == b"ustar":
        raise HlofuseError(f"{printable(name)} is an archive; unpack it and give the file or folder in it")
    if first.startswith(_SAVED_MODEL) or _is_graph_def(first):
        raise HlofuseError(
            f"{printable(name)} is a graph of TensorFlow, not HLO; give the result of"
            ' experimental_get_compiler_ir(…)(stage="hlo")'
        )
    if b"\0" not in first[:65536]:
        return
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise HlofuseError(f"{printable(name)} is UTF-16 text (as PowerShell's > writes); save it as UTF-8")
    hint = ""
    if b"HloModule" not in first[:65536]:
        hint = (
            ", nor is it a whole HLO proto (.hlo.pb): give the .txt dump next to it, or add"
            " --xla_dump_hlo_as_text to XLA_FLAGS"
        )
    raise HlofuseError(f"{printable(name)} is a binary file, not text{hint}")


def _is_graph_def(first: bytes) -> bool:
    """True for a GraphDef: its first field is a node with a name, then an operation in CamelCase."""
    node = re.match(rb"\n[\x00-\xff]{1,3}?\n([\x01-\x7f])", first)
    if node is None:
        return False
    end = node.end() + node[1][0]
    operation = re.match(rb"\x12[\x02-\x3f]([A-Z][A-Za-z0-9]+)", first[end : end + 66])
    return operation is not None and len(operation[1]) >= first[end + 1]


def decode(data: bytes, name: str, as_module: bool = True) -> str:
    """The text in `data`, as `read_text` returns it; `name` is its name in messages."""
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
        return find_module(text, name).text
    return text
