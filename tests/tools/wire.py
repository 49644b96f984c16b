"""Fields of protobuf messages, as bytes."""

from __future__ import annotations


def message(number: int, value: bytes) -> bytes:
    """A field with a string or a message in it."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])
