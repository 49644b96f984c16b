"""`hlofuse recipe`: changes to a program, with code and figures."""

import re
from typing import Any

import click
from msgspec import to_builtins

from hlofuse.format.terminal import plain_table, print_sections
from hlofuse.reports.common.recipe_page import RecipePage, recipe_names, recipe_page, recipe_text
from .common.options import report_options
from .common.output import Output

_ROW = r"\| (.+) \| (.+) \| (.+) \| (.+) \| (.+) \| (.+) \|"
_FIGURES = r"\1, XLA \2: \3 kernels, \4 launches, \5 moved, \6"


@click.command("recipe")
@click.argument("name", required=False, metavar="[NAME]")
@report_options
def command(name: str | None, out: Output) -> int:
    """Show a recipe: the symptom, the reason, code before and after, figures. Without NAME, list all.

    Suggestions of explain and what-if name recipes."""
    if name and out.form == "markdown":
        out.write(recipe_text(name))
        return 0
    pages = [recipe_page(n) for n in ([name] if name else recipe_names())]
    draw = _print_page if name else _print_list
    out.report(
        text=lambda console: draw(console, *pages),
        json=lambda: {"schema": "hlofuse.recipes/3", "recipes": [to_builtins(page) for page in pages]},
    )
    return 0


def _print_list(console: Any, *pages: RecipePage) -> None:
    table = plain_table(("recipe", "left"), ("symptom", "left"))
    table.columns[0].no_wrap = True
    for page in pages:
        table.add_row(page.name, page.symptom)
    console.print(table)
    console.print()
    console.print("hlofuse recipe NAME shows one recipe in full.")


def _print_page(console: Any, page: RecipePage) -> None:
    console.print(page.title, style="bold")
    parts = {"Symptom": page.symptom, "Before": page.before, "After": page.after, "Why": page.why}
    table = page.figures.partition("---|\n")[2]
    figures = re.sub(_ROW, _FIGURES, table.replace("× |", "× as fast, measured |"))
    parts |= {"Program": page.code, "Figures": re.sub(", –( moved)?", "", figures).strip()}
    print_sections(console, parts.items())
