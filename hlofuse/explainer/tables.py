"""Tables without lines, for the terminal."""

from __future__ import annotations

from rich.table import Table


def plain_table(*columns: tuple[str, str]) -> Table:
    """A table of (heading, `left` or `right`) columns; figures stay on one line, words may fold."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for heading, justify in columns:
        table.add_column(
            heading,
            justify="right" if justify == "right" else "left",
            overflow="fold",
            no_wrap=justify == "right",
            vertical="top",
        )
    return table
