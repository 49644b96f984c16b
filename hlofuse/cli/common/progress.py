"""A progress bar for what takes longer than a second, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress
    from rich.status import Status


@contextmanager
def spinner(what: str, after: float = 1.0) -> Iterator[None]:
    """Says on stderr what is going on, for as long as it lasts, once `after` seconds passed."""
    if not sys.stderr.isatty():
        yield
        return
    import threading

    lock = threading.Lock()
    status: Status | None = None
    over = False

    def start() -> None:
        nonlocal status
        from rich.console import Console

        with lock:
            if not over:
                status = Console(stderr=True).status(what)
                status.start()

    timer = threading.Timer(after, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over = True
            if status is not None:
                status.stop()


@contextmanager
def progress_bar(what: str, after: float = 1.0) -> Iterator[Callable[[int, int], None]]:
    """Gives a function to call with (done, of); the bar appears on stderr once `after` seconds passed."""
    start = time.monotonic()
    bar: Progress | None = None
    task = None

    def report(done: int, total: int) -> None:
        nonlocal bar, task
        if bar is None:
            if not sys.stderr.isatty() or time.monotonic() - start < after or done == total:
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            bar = Progress(
                TextColumn(what),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            bar.start()
            task = bar.add_task(what, total=total)
        assert task is not None
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        if bar is not None:
            bar.stop()
