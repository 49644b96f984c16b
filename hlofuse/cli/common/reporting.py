"""Printing a report in the form asked for, headed by what a what-if run changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.cli.common.output import emit, rendered

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.reports.difference.model import Difference


def report(
    form: str,
    color: str,
    output: Path | None,
    *,
    text: Callable[[Console], None],
    markdown: Callable[[], str],
    json: Callable[[], dict[str, Any]],
    remark: str = "",
    differences: Sequence[Difference] = (),
    limit: int = 10,
) -> None:
    """Emit one of the three forms, headed by a remark where there is one.

    JSON has fields `approximate`, the remark, and `difference` where there are such.
    """
    if form == "json":
        from json import dumps

        document = {"approximate": remark, **json()} if remark else json()
        if differences:
            from hlofuse.reports.difference.json import difference_json

            found = [difference_json(d) for d in differences]
            document["difference"] = found[0] if len(found) == 1 else found
        emit(dumps(document, indent=2), output)
    elif form == "markdown":
        head = ""
        if remark:
            from hlofuse.format import markdown as words

            head = f"> **{words.markdown(remark)}**\n\n"
        if differences:
            from hlofuse.reports.difference.markdown import difference_markdown

            head += "\n".join(difference_markdown(d, limit=limit) for d in differences) + "\n"
        emit(head + markdown(), output)
    else:

        def draw(console: Console) -> None:
            if remark:
                console.print(f"{remark}\n", style="yellow")
            if differences:
                from hlofuse.reports.difference.text import print_difference

                for d in differences:
                    print_difference(d, console, limit=limit)
            text(console)

        emit(rendered(draw, color, output), output)
