"""Strings and numbers as HLO text writes them: unescaping (`absl::CUnescape`), 64-bit integers."""

import re

UNSIGNED_LIMIT = 1 << 64  # Integers are read as 64 bits, signed or unsigned (`HloLexer::LexInt64Impl`)
_SIMPLE = {
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11,
    "\\": 92, "?": 63, "'": 39, '"': 34,
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?'\"])|([0-7]{1,3})|[xX]([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)
# Everything up to what XLA takes for no escape: an unknown letter, a byte above 255, a surrogate.
_GOOD = re.compile(
    r"(?:[^\\]++|\\(?:[abfnrtv\\?'\"]|[0-3][0-7]{0,2}|[4-7][0-7]?(?![0-7])|[xX]0*[0-9a-fA-F]{1,2}(?![0-9a-fA-F])"
    r"|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|U00(?:0(?!0[dD][89a-fA-F])[0-9a-fA-F]|10)[0-9a-fA-F]{4}))*+"
)


def bad_escape(text: str) -> int | None:
    """The offset of an invalid escape in `text`; None if there is none."""
    end = _GOOD.match(text).end()  # type: ignore[union-attr]  # matches the empty text too
    return end if end < len(text) else None


def unquote(text: str) -> str:
    """The content of a quoted string; escaped bytes are decoded as UTF-8 where valid."""
    body = text[1:-1]
    if "\\" not in body:
        return body
    return (
        _ESCAPE.sub(_unescape, body.encode().decode("latin-1"))
        .encode("latin-1")
        .decode(errors="backslashreplace")
    )


def _unescape(match: re.Match[str]) -> str:
    simple, octal, hexadecimal, short, long = match.groups()
    if simple:
        return chr(_SIMPLE[simple])
    if octal:
        return chr(int(octal, 8))
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return chr(int(short or long, 16)).encode().decode("latin-1")


def signed(text: str) -> int:
    """An integer as XLA stores it: values beyond int64 wrap around."""
    value = int(text)
    return value - UNSIGNED_LIMIT if value >= UNSIGNED_LIMIT // 2 else value


def bare(name: str) -> str:
    """A name without its `%` or `:`."""
    return name.strip("%:")
