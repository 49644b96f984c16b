"""Messages on standard error: errors, warnings, notes and written files, each in one form."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hlofuse.format import command_line, printable

if TYPE_CHECKING:
    from hlofuse.format.terminal import Page

_EVERY = 10.0  # seconds between lines of progress where stderr is no terminal
_CLEAR = "\r\x1b[K"
_REFRESH = 0.2  # seconds, on a terminal
_START = time.monotonic()  # of the command, nearly
_active = list[object]()  # the work that goes on, the innermost last, which alone is shown
_ONE_INPUT = ("explain", "why", "kernels", "memory", "timeline", "trace-op", "what-if")
_OPEN_WITH = {
    ".html": "open it in a browser",
    ".svg": "open it in a browser; the wheel zooms, dragging pans, a double click shows all of it",
    ".dot": "draw it with dot -Tsvg",
    ".hlo": "read it with hlofuse stats",
}


def message(kind: str, text: str) -> None:
    """Print `error: …`, `warning: …` or `note: …`; nothing for an empty message. A message may quote a dump:
    line ends stay, control sequences do not reach the terminal."""
    if text:
        click.echo(_CLEAR if _active and sys.stderr.isatty() else "", err=True, nl=False)
        click.echo("\n".join(map(printable, f"{kind}: {text}".split("\n"))), err=True)


def refused_call(error: click.ClickException) -> None:
    """Print what is wrong with a call, and below it the usage of the command."""
    from hlofuse.inputs.suggest import names_meant

    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption):
        text = f"no such option {error.option_name}{names_meant(error.possibilities or ())}"
        if context and isinstance(context.command, click.Group):
            text += (
                f"; the options of a command follow it: {context.command_path} COMMAND … {error.option_name}"
            )
    else:
        text = error.format_message().strip().removesuffix(".").replace("a valid float range", "a number")
        text = text.replace("a valid integer range", "a whole number")
    message("error", text[:1].lower() + text[1:] + misplaced(sys.argv[1:]))
    if context is not None:
        usage = " ".join(context.get_usage().removeprefix("Usage: ").split())
        click.echo(f"usage: {usage}\nhelp:  {context.command_path} --help", err=True)


def misplaced(call: list[str]) -> str:
    """The call that was meant, where the words of a question stand in another order or name two inputs."""
    given = call[1:3]
    there = [word for word in given if Path(word).exists()]
    if not there or call[0] not in _ONE_INPUT or given[0].startswith("-"):
        return ""
    if given[0] in there or os.path.isdir(os.path.dirname(given[0])):  # a path, perhaps mistyped
        return f"; for two inputs, {command_line('diff', *there)}" if len(there) == 2 else ""
    return f"; INPUT comes first: {command_line(call[0], there[0], given[0])}"


def wrote(path: Path) -> None:
    """Print name and size of a written file, and how to open it."""
    from hlofuse.format import bytes_text

    if path.is_file():
        how = _OPEN_WITH.get(path.suffix, "")
        click.echo(
            f"wrote {printable(str(path))} ({bytes_text(path.stat().st_size)})" + (f": {how}" if how else ""),
            err=True,
        )


@contextmanager
def _status(text: Callable[[], str], after: float, above: str = "") -> Iterator[None]:
    """Shows `text` and the seconds so far on stderr in one line below `above` while the work lasts: on a
    terminal from `after` seconds of the command on, on a pipe or in a log a line every ten seconds."""
    import threading

    start, over = time.monotonic(), threading.Event()
    is_terminal = sys.stderr.isatty()
    height = above.count("\n")
    end = "\r\x1b[J"
    if height:
        end = f"\r\x1b[{height}A\x1b[J"
    shown = False

    def show() -> None:
        nonlocal shown
        wait = _EVERY
        if is_terminal:
            wait = min(after, max(_REFRESH, _START + after - start))
        while not over.wait(wait):
            if _active[-1] is not over:
                continue
            line = f"{text()}, {time.monotonic() - start:.0f} s"
            if not is_terminal:
                click.echo(line, err=True)
                continue
            click.echo(_CLEAR + ("" if shown else above) + line, err=True, nl=False)
            shown = True
            wait = _REFRESH

    thread = threading.Thread(target=show, daemon=True)
    _active.append(over)
    thread.start()
    try:
        yield
    except KeyboardInterrupt:
        if above:
            end = f"{_CLEAR}Stopped {text()}.\n"
        raise
    finally:
        over.set()
        thread.join()
        _active.remove(over)
        if shown:
            click.echo(end, err=True, nl=False)


@contextmanager
def spinner(
    what: str,
    draw: "Callable[[Page], None] | None" = None,
    after: float = 1.0,
) -> Iterator[None]:
    """Says on stderr what goes on. What `draw` prints stands above it on a terminal, also after Ctrl-C."""
    above = ""
    if draw is not None and sys.stderr.isatty():
        from hlofuse.format.terminal import Page

        console = Page(stderr=True, markup=False, highlight=False, emoji=False)
        console.limit = 5
        with console.capture() as capture:
            draw(console)
        above = capture.get().rstrip("\n") + "\n\n"
    with _status(lambda: what, after, above):
        yield


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Gives a function to call with (done, of), which says on stderr how far the work is."""
    shown = []
    with ExitStack() as stack:

        def report(done: int, total: int) -> None:
            shown.append(f"{what}: {done:,} of {total:,}")
            if len(shown) == 1:  # a thread may not run yet when the work starts processes
                stack.enter_context(_status(lambda: shown[-1], 1.0))

        yield report
