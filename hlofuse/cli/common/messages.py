"""Messages on standard error: errors, warnings, notes and written files, each in one form."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hlofuse.format.escape import printable

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.live import Live
    from rich.progress import Progress

_OPEN_WITH = {
    ".html": "open it in a browser",
    ".svg": "open it in a browser; the wheel zooms, dragging pans, a double click shows the whole",
    ".dot": "draw it with dot -Tsvg",
    ".hlo": "read it with hlofuse stats",
}


def message(kind: str, text: str) -> None:
    """Print `error: …`, `warning: …` or `note: …`; nothing for an empty message. A message may quote a dump:
    line ends stay, control sequences do not reach the terminal."""
    if text:
        click.echo("\n".join(printable(line) for line in f"{kind}: {text}".split("\n")), err=True)


def refused_call(error: click.ClickException) -> None:
    """Print what is wrong with a call, and below it the usage of the command."""
    from hlofuse.inputs.suggest import names_meant

    if isinstance(error, click.NoSuchOption):
        text = f"no such option {error.option_name}{names_meant(error.possibilities or ())}"
    else:
        text = error.format_message().strip().removesuffix(".")
    message("error", text[:1].lower() + text[1:])
    context = getattr(error, "ctx", None)
    if context is not None:
        usage = " ".join(context.get_usage().removeprefix("Usage: ").split())
        click.echo(f"usage: {usage}\nhelp:  {context.command_path} --help", err=True)


def wrote(path: Path) -> None:
    """Print name and size of a written file, and how to open it."""
    from hlofuse.format.units import bytes_text

    if path.is_file():
        how = _OPEN_WITH.get(path.suffix, "")
        click.echo(
            f"wrote {printable(str(path))} ({bytes_text(path.stat().st_size)})" + (f": {how}" if how else ""),
            err=True,
        )


@contextmanager
def spinner(
    what: str,
    draw: Callable[[Console], None] | None = None,
    after: float = 1.0,
) -> Iterator[None]:
    """Says on stderr what is going on, for as long as it lasts, once `after` seconds passed. What `draw`
    prints stands above it meanwhile, and stays if the user stops the work."""
    if not sys.stderr.isatty():
        yield
        return
    import threading

    lock = threading.Lock()
    live: Live | None = None
    over = False
    figures = _drawn(draw) if draw is not None else ""

    def start() -> None:
        nonlocal live
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        with lock:
            if not over:
                console = Console(stderr=True)
                live = Live(_above(figures, Spinner("dots", what)), console=console, transient=True)
                live.start()

    timer = threading.Timer(after, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if live is not None and figures:
            live.update(_above(figures, f"Stopped {what}."))
            live.transient = False
        raise
    finally:
        timer.cancel()
        with lock:
            over = True
            if live is not None:
                live.stop()


def _drawn(draw: Callable[[Console], None]) -> str:
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        draw(console)
    return capture.get().rstrip("\n")


def _above(figures: str, last: RenderableType) -> Group:
    from rich.console import Group
    from rich.text import Text

    return Group(Text.from_ansi(figures), "", last) if figures else Group(last)


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
