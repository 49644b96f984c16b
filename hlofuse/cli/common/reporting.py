"""Printing a report in the form asked for, headed by what it rests on and what a what-if run changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.cli.common.output import emit, rendered

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.format.order import Ordered
    from hlofuse.reports.difference.model import Difference


def report(
    form: str,
    color: str,
    output: Path | None,
    *,
    text: Callable[[Console], None],
    markdown: Callable[[], str],
    json: Callable[[], dict[str, Any]],
    replay: Ordered | None = None,
    note: str = "",
    differences: Sequence[Difference] = (),
    limit: int = 10,
) -> None:
    """Emit one of the three forms.

    The first line says where the order of instructions comes from, if decisions depend on it.
    A file says also where in a longer text the module was found, which the terminal has as a note.
    JSON has fields `xla` and `order` of the replay, `approximate` for the note, `difference` and `text_note`.
    """
    from hlofuse.format.order import order_line

    order = order_line(replay) if replay is not None else ""
    text_note = replay.text_note if replay is not None else None
    if form == "json":
        from json import dumps

        document = {"approximate": note, **json()} if note else json()
        if replay is not None and replay.config is not None:
            document |= {"xla": replay.config.build.to_json(), "order": replay.order_source}
        if text_note is not None:
            document["text_note"] = text_note
        if differences:
            from hlofuse.reports.difference.json import difference_json

            found = [difference_json(d) for d in differences]
            document["difference"] = found[0] if len(found) == 1 else found
        emit(dumps(document, indent=2), output)
    elif form == "markdown":
        from hlofuse.format.markdown import markdown as escaped

        head = "".join(f"{escaped(line)}\n\n" for line in (text_note, order) if line)
        if note:
            head += f"> **{escaped(note)}**\n\n"
        if differences:
            from hlofuse.reports.difference.markdown import difference_markdown

            head += "\n".join(difference_markdown(d, limit=limit) for d in differences) + "\n"
        emit(head + markdown(), output)
    else:

        def draw(console: Console) -> None:
            if text_note is not None and output is not None:
                console.print(text_note, style="yellow")
            if order:
                console.print(order, style="dim")
            if note:
                console.print(f"{note}\n", style="yellow")
            if differences:
                from hlofuse.reports.difference.text import print_difference

                for d in differences:
                    print_difference(d, console, limit=limit)
            text(console)

        emit(rendered(draw, color, output), output)
