"""Differences where the hot modules are compiled (`docs/compiled.md`)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:
    T = TypeVar("T")

    def mypyc_attr(**_: bool) -> Callable[[T], T]:
        """A decorator with options for mypyc; it has no effect at run time."""
        return lambda decorated: decorated


__all__ = ["mypyc_attr"]
