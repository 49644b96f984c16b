"""Tables without lines and commands to copy, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlofuse.format.escape import command_line
from hlofuse.format.units import more

GAP = 2


def plain_table(*columns: tuple[str, str]) -> Table:
    """A table of (heading, `left` or `right`) columns; figures stay on one line, words may fold.

    No heading is printed where all are empty. A figure without room ends in `…`: with digits cut off it
    would be another figure.
    """
    table = Table(box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)
    table.show_header = any(heading for heading, _ in columns)
    for heading, justify in columns:
        table.add_column(
            heading,
            justify="right" if justify == "right" else "left",
            overflow="ellipsis" if justify == "right" else "fold",
            no_wrap=justify == "right",
            vertical="top",
        )
    return table


def print_rows(
    console: Console, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str | Text]]
) -> None:
    """A plain table that breaks no word: where it has no room, each row's figures stand below its words."""
    cells = [[str(cell) for cell in column] for column in zip(*rows, strict=True)]
    phrase = [n for n, (_, justify) in enumerate(columns) if justify == "left"]
    figures = [n for n in range(len(columns)) if n not in phrase]
    whole = [max(map(len, (heading, *column))) for (heading, _), column in zip(columns, cells, strict=True)]
    folding = phrase[-1]
    longest = max(len(word) for text in (columns[folding][0], *cells[folding]) for word in text.split(" "))
    if sum(whole) - whole[folding] + longest + GAP * (len(columns) - 1) <= console.width:
        table = plain_table(*columns)
        for n in phrase[:-1]:
            table.columns[n].no_wrap = True
        for row in rows:
            table.add_row(*row)
        console.print(table)
        return

    def below(texts: Sequence[str]) -> str:
        return "".join(f"{' ' * GAP}{texts[n]:>{whole[n]}}" for n in figures)

    headings = [heading for heading, _ in columns]
    console.print(Text("  ".join(filter(None, (headings[n] for n in phrase))), style="dim"))
    console.print(Text(below(headings), style="dim"))
    for number, row in enumerate(rows):
        line = Text("  ").join([cell for n in phrase if (cell := Text.assemble(row[n]))])
        console.print(line)
        console.print(Text(below([column[number] for column in cells])))


def indented(console: Console, shown: str | Text | Table, by: int = 2, style: str = "") -> None:
    """Print a line or a table `by` columns from the edge."""
    console.print(Padding(Text(shown, style=style) if isinstance(shown, str) else shown, (0, 0, 0, by)))


def print_command(console: Console, indent: int, *text: str | None) -> None:
    """On a line of its own however narrow the terminal is: one that is broken cannot be copied."""
    console.print(Text(" " * indent + command_line(*text), style="green"), soft_wrap=True)


def print_more(console: Console, left: int, *, indent: int = 2) -> None:
    """`… 25 more (--limit 0 shows all)` below a truncated list; nothing where none is left."""
    if left > 0:
        indented(console, more(left), indent, "dim")
