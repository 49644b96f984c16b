"""Python itself: the options of compiled classes (`docs/compiled.md`), and its garbage collector."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:
    T = TypeVar("T")

    def mypyc_attr(**_: bool) -> Callable[[T], T]:
        """A decorator with options for mypyc; it has no effect at run time."""
        return lambda decorated: decorated


__all__ = ["mypyc_attr"]


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause Python's garbage collector; also a decorator, `@no_collection()`."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
