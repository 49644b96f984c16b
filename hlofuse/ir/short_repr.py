"""Short texts for people: what an object prints in a notebook and a debugger."""

from dataclasses import fields

_LONGEST = 120
_MOST = 800


def short_repr(self: object) -> str:
    """The class with its plain fields; of collections the number of entries, of objects the class."""
    parts = [f"{f.name}={_field(getattr(self, f.name))}" for f in fields(self) if f.repr]  # type: ignore[arg-type]
    return shortened(f"{type(self).__name__}({', '.join(parts)})", _MOST)


def shortened(text: str, most: int = _LONGEST) -> str:
    """The text, its end left out where it is longer than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _field(value: object) -> str:
    if value is None or isinstance(value, str | int | float):
        return shortened(repr(value))
    if isinstance(value, tuple | list | dict | set | frozenset):
        return f"[{len(value)}]"
    return f"<{type(value).__name__}>"
