"""Options that are written once: fields of a dataclass, which commands take from the command line."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, field
from typing import Any

from hlofuse.ir import Record


class Option(Record):
    """The form of a field on the command line: an argument without `flags`, a flag without `value`."""

    flags: str
    value: str | Sequence[str]  # The placeholder of the value, or the choices
    help: str
    kind: str = "text"  # `text`, `path`, `int`, `float` or `percent`
    least: float | None = None
    multiple: bool = False
    convert: Callable[[Any], Any] | None = None  # From the text on the command line to the value of the field


def option(flags: str, value: str | Sequence[str], help: str, default: Any = None, **more: Any) -> Any:
    """A field of options that a command takes as `flags`; `more` are fields of `Option`."""
    default = () if more.get("multiple") else default
    return field(default=default, metadata={"option": Option(flags, value, help, **more)})


def flag(flags: str, help: str) -> Any:
    """A field of options that is False unless a command has the flag."""
    return field(default=False, metadata={"option": Option(flags, "", help)})


def argument(value: str, default: Any = MISSING, **more: Any) -> Any:
    """A field of options that a command takes as an argument, required without a default."""
    return field(default=default, metadata={"option": Option("", value, "", **more)})


def limit(default: int, help: str) -> Any:
    """`--limit N`, the number of entries shown of a list."""
    return option("--limit", "N", help, default, kind="int", least=0)
