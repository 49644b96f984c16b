"""Protocol buffers by columns: the same field of many messages at once, with numpy."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlofuse.inputs.wire_format import varint

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Chunk: TypeAlias = tuple[Bytes, Ints, Ints, list[tuple[int, int | bytes]]]

PADDING = 16
"""Padding after a buffer, so that a field at its end can be read beyond it."""
_CHUNK = 4 << 20


@dataclass(frozen=True, slots=True)
class Fields:
    rows: Ints
    number: Ints
    wire: Ints
    value: Ints
    """The number, or the length of text, bytes or a message."""
    at: Ints
    """Offset of the content, or for a number its end."""


def fields_of(data: Bytes, starts: Ints, ends: Ints) -> Iterator[Fields]:
    """The first field of every message, then the second …; `data` is padded. Raises `ValueError`."""
    rows = np.flatnonzero(starts < ends)
    at, ends = starts[rows], ends[rows]
    while rows.size:
        tag, at = varints(data, at)
        wire = tag & 7
        fixed = (wire == 1) | (wire == 5)
        if np.any((wire != 0) & (wire != 2) & ~fixed):
            raise ValueError("a field of unknown kind")
        value, content = varints(data, at)
        size = np.where(wire == 2, value, 0)
        content = np.where(fixed, at, content)
        size = np.where(fixed, np.where(wire == 1, 8, 4), size)
        at = content + size
        if np.any((at > ends) | (size < 0)):
            raise ValueError("it ends in the middle of a field")
        yield Fields(rows, tag >> 3, wire, value, content)
        more = at < ends
        rows, at, ends = rows[more], at[more], ends[more]


def varints(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The numbers at some offsets, and the end of each."""
    byte = data[at].astype(np.int64)
    value, at = byte & 127, at + 1
    longer = np.flatnonzero(byte > 127)
    shift = 7
    while longer.size:
        if shift > 63:
            raise ValueError("a number is too long")
        where = at[longer]
        byte = data[where].astype(np.int64)
        value[longer] |= (byte & 127) << shift
        at[longer] = where + 1
        longer = longer[byte > 127]
        shift += 7
    return value, at


def repeated(data: mmap.mmap, at: int, end: int, number: int) -> Iterator[Chunk]:
    """The messages of field `number` in a message, in chunks of bounded size.

    With each chunk: its bytes (padded), start and end of each message, and the other fields so far as
    (number, value). The last chunk may have no messages. Raises `ValueError` for other data.
    """
    tag_byte = number << 3 | 2
    others: list[tuple[int, int | bytes]] = []
    size = _CHUNK
    while at < end:
        buffer = data[at : min(at + size, end)]
        is_last = at + len(buffer) == end
        tags, used = _tags_in(buffer, tag_byte, others, is_last)
        if not used:
            size *= 2
            continue
        _release(data, at, used)
        at, size = at + used, _CHUNK
        padded = np.frombuffer(buffer + bytes(PADDING), np.uint8)
        length, starts = varints(padded, np.array(tags, np.int64) + 1)
        yield padded, starts, starts + length, others


def _release(data: mmap.mmap, at: int, size: int) -> None:
    """Release pages that have been read; otherwise a large file would count as memory in use."""
    if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        data.madvise(mmap.MADV_DONTNEED, at // mmap.PAGESIZE * mmap.PAGESIZE, size)


def _tags_in(
    buffer: bytes, tag_byte: int, others: list[tuple[int, int | bytes]], is_last: bool
) -> tuple[list[int], int]:
    """The offsets of the messages' tags, and the number of bytes in whole fields."""
    tags: list[int] = []
    append = tags.append
    at = whole = 0
    limit = len(buffer)
    try:
        while at < limit:
            whole = at
            tag = buffer[at]
            if tag == tag_byte:
                length = buffer[at + 1]
                if length < 128:
                    at += 2 + length
                else:
                    length, at = varint(buffer, at + 1)
                    at += length
                append(whole)
                continue
            tag, at = varint(buffer, at)
            value: int | bytes = 0
            if tag & 7 == 0:
                value, at = varint(buffer, at)
            elif tag & 7 == 2:
                length, at = varint(buffer, at)
                value, at = buffer[at : at + length], at + length
            elif tag & 7 in (1, 5):
                at += 8 if tag & 7 == 1 else 4
            else:
                raise ValueError(f"a field of unknown kind {tag & 7}")
            if at <= limit:
                others.append((tag >> 3, value))
    except IndexError:
        at = limit + 1
    if at == limit:
        return tags, limit
    if is_last:
        raise ValueError("it ends in the middle of a field")
    if tags and tags[-1] == whole:
        tags.pop()
    return tags, whole
