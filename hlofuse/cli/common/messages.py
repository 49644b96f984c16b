"""Messages on standard error: errors, warnings, notes and written files, each in one form."""

from pathlib import Path

import click

from hlofuse.format.escape import printable

_OPEN_WITH = {
    ".html": "open it in a browser",
    ".svg": "open it in a browser; the wheel zooms, dragging pans, a double click shows the whole",
    ".dot": "draw it with dot -Tsvg",
    ".hlo": "read it with hlofuse stats",
}


def message(kind: str, text: str) -> None:
    """Print `error: …`, `warning: …` or `note: …`; nothing for an empty message.

    A message may quote a dump: line ends stay, control sequences do not reach the terminal.
    """
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


def wrote(path: Path, how: str = "") -> None:
    """Print name and size of a written file, and how to open it."""
    from hlofuse.format.units import bytes_text

    if path.is_file():
        how = how or _OPEN_WITH.get(path.suffix, "")
        click.echo(
            f"wrote {printable(str(path))} ({bytes_text(path.stat().st_size)})" + (f": {how}" if how else ""),
            err=True,
        )
