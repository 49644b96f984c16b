"""Work without cyclic garbage: looking for some takes up to a third of the time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
