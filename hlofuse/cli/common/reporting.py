"""Printing a report in the form asked for, headed by what it rests on and what a what-if run changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from hlofuse.cli.common.output import emit, rendered

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.ir.graph import OrderSource
    from hlofuse.replay import ReplayConfig, ReplayInput
    from hlofuse.reports.common.final_names import FinalNames, LaunchedNames
    from hlofuse.reports.common.head import Head
    from hlofuse.reports.common.xla_result import XlaResult
    from hlofuse.reports.difference.model import Difference


class ReportedModule(Protocol):
    """A replay, or a module that has been read."""

    @property
    def input(self) -> ReplayInput:
        """The module, and what it was taken for."""

    @property
    def config(self) -> ReplayConfig | None:
        """How it is replayed; None for a module that is not."""

    @property
    def order_source(self) -> OrderSource:
        """Where ids and use-lists come from."""

    @property
    def follows_log(self) -> bool:
        """True if ties are broken as in XLA's fusion log."""


def head_of(
    reported: ReportedModule,
    *,
    replayed: bool = True,
    result: XlaResult | None = None,
    names: FinalNames | LaunchedNames | None = None,
) -> Head | None:
    """The head of a module that is `replayed`, or taken as it is; None where a library call gave it."""
    from hlofuse.pipelines import TARGETS
    from hlofuse.reports.common.head import Head

    identity, config = reported.input.identity, reported.config
    if identity is None:
        return None
    if config is None or not replayed:
        return Head(identity)
    order = reported.order_source if TARGETS[config.target].depends_on_order else None
    source = names.source if names is not None else None
    return Head(identity, order, reported.follows_log, config.build, result, source)


def head_of_dump(path: Path) -> Head | None:
    """The head of a dump that is taken as it is; None for one that cannot be read."""
    from hlofuse.inputs import load
    from hlofuse.inputs.identity import identify_file
    from hlofuse.ir.errors import HlofuseError
    from hlofuse.reports.common.head import Head

    try:
        return Head(identify_file(load(path)))
    except HlofuseError:
        return None


def announce(reported: ReportedModule, *, replayed: bool = True) -> None:
    """Print the first line on standard error, for results that have no place for it."""
    from hlofuse.reports.common.head import head_lines

    head = head_of(reported, replayed=replayed)
    for line in head_lines([head]) + list(head.identity.notes) if head is not None else ():
        click.echo(line, err=True)


@dataclass(frozen=True, slots=True)
class Output:
    """In which form a report comes out, and where: the options of `options.report_options`."""

    form: str
    """Empty where the command chooses by the name of the file."""
    color: str
    file: Path | None

    def write(self, text: str) -> None:
        """Print the text, or write it to the file."""
        emit(text, self.file)

    def draw(self, draw: Callable[[Console], None]) -> None:
        """Write what `draw` prints on a console made for the place."""
        emit(rendered(draw, self.color, self.file), self.file)

    def report(
        self,
        *,
        text: Callable[[Console], None],
        json: Callable[[], dict[str, Any]],
        markdown: Callable[[], str] | None = None,
        heads: Sequence[Head | None] = (),
        note: str = "",
        differences: Sequence[Difference] = (),
        limit: int = 10,
        shows_heads: bool = True,
    ) -> None:
        """Write one of the three forms, `heads` first. Markdown is what `text` prints, or `markdown` gives.

        Without `shows_heads` `text` prints them, the note and the differences itself.

        In JSON those are the fields of `Head.to_json` (of several modules a list, `inputs`) and `notes`; then
        `approximate` for the note, the report's own fields, and `difference`.
        """
        from hlofuse.reports.common.head import head_lines, with_heads

        given = [h for h in heads if h is not None]
        lines = head_lines(given)
        notes = list(dict.fromkeys(n for h in given for n in h.identity.notes))
        if self.form == "json":
            from json import dumps

            document = with_heads(json(), given)
            if note:
                document = {"approximate": note, **document}
            if differences:
                from hlofuse.reports.difference.json import difference_json

                found = [difference_json(d) for d in differences]
                document["difference"] = found[0] if len(found) == 1 else found
            self.write(dumps(document, indent=2))
            return

        def draw(console: Console) -> None:
            if shows_heads:
                for line in lines:
                    console.print(line, style="dim")
                for line in notes:
                    console.print(f"Note: {line}.", style="yellow")
                if note:
                    console.print(f"{note}\n", style="bold yellow")
            if differences and shows_heads:
                from hlofuse.reports.difference.text import print_difference

                for d in differences:
                    print_difference(d, console, limit=limit)
            if self.form == "text" or markdown is None:
                text(console)

        if self.form == "text":
            self.draw(draw)
        else:
            from hlofuse.format.page import as_markdown

            written = as_markdown(draw)
            if markdown is not None:
                written = "\n".join(filter(None, (written, markdown())))
            self.write(written)
