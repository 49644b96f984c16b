"""`hlofuse rule` and `recipe`: the rule catalogue, and changes to a program with code and figures."""

import json
import re
from typing import Any

import click
from msgspec import to_builtins
from rich.console import Console

from hlofuse.format import printable
from hlofuse.format.terminal import plain_table, print_sections
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir import HlofuseError, Strings, grouped
from hlofuse.reports.common.recipe_page import RecipePage, recipe_names, recipe_page, recipe_text
from hlofuse.rules.catalogue import Rule, catalogue, family_of
from hlofuse.rules.pages import by_family, family_title, index_markdown, rule_markdown, rules_json, sections
from .common.options import report_options
from .common.output import Output


@click.command("rule")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@report_options
def rule_command(codes: Strings, out: Output) -> int:
    """Show a rule: its condition, why XLA has it, what to do about it. Without CODE, list all rules.

    CODE is a rule's code (CPU012) or a family's letters (CPU)."""
    rules_by_code = catalogue()
    wanted = _requested_rules(codes, rules_by_code) if codes else list(rules_by_code.values())
    # A page each for codes that were named, a list for families and for everything.
    pages = bool(codes) and all(c.upper() in rules_by_code for c in codes)
    if out.form == "json":
        out.write(json.dumps(rules_json(wanted), indent=2, ensure_ascii=False))
    elif out.form == "markdown":
        out.write("\n".join(map(rule_markdown, wanted)) if pages else index_markdown(wanted, "#{code}"))
    else:
        show = _print_pages if pages else _print_list
        out.draw(lambda console: show(wanted, console))
    return 0


def _requested_rules(codes: Strings, rules_by_code: dict[str, Rule]) -> list[Rule]:
    families = grouped((family_of(code), rule) for code, rule in rules_by_code.items())
    found = []
    for word in codes:
        code = word.upper()
        if code in rules_by_code:
            found.append(rules_by_code[code])
        elif code in families:
            found += families[code]
        else:
            raise HlofuseError(f"no rule {printable(word)}{did_you_mean(code, [*rules_by_code, *families])}")
    return found


def _print_list(rules: list[Rule], console: Console) -> None:
    for letters, found in by_family(rules).items():
        console.print(f"{letters}  {printable(family_title(found[0]))}", style="bold")
        table = plain_table(("", "name"), ("", "name"), ("", "left"))
        for rule in found:
            outcome = rule.runs or ("allows" if rule.allows else "")
            table.add_row(f"  {rule.code}", outcome, printable(rule.title))
        console.print(table)
        console.print()
    console.print("hlofuse rule CODE shows one rule in full.")


def _print_pages(rules: list[Rule], console: Console) -> None:
    for number, rule in enumerate(rules):
        if number:
            console.print()
        console.print(f"{rule.code}  {printable(rule.title)}", style="bold")
        print_sections(console, sections(rule))


_ROW = r"\| (.+) \| (.+) \| (.+) \| (.+) \| (.+) \| (.+) \|"
_FIGURES = r"\1, XLA \2: \3 kernels, \4 launches, \5 moved, \6"


@click.command("recipe")
@click.argument("name", required=False, metavar="[NAME]")
@report_options
def recipe_command(name: str | None, out: Output) -> int:
    """Show a recipe: the symptom, the reason, code before and after, figures. Without NAME, list all.

    Suggestions of explain and what-if name recipes."""
    if name and out.form == "markdown":
        out.write(recipe_text(name))
        return 0
    pages = [recipe_page(n) for n in ([name] if name else recipe_names())]
    draw = _print_recipe if name else _print_recipes
    out.report(
        text=lambda console: draw(console, *pages),
        json=lambda: {"schema": "hlofuse.recipes/3", "recipes": [to_builtins(page) for page in pages]},
    )
    return 0


def _print_recipes(console: Any, *pages: RecipePage) -> None:
    table = plain_table(("recipe", "left"), ("symptom", "left"))
    table.columns[0].no_wrap = True
    for page in pages:
        table.add_row(page.name, page.symptom)
    console.print(table)
    console.print()
    console.print("hlofuse recipe NAME shows one recipe in full.")


def _print_recipe(console: Any, page: RecipePage) -> None:
    console.print(page.title, style="bold")
    parts = {"Symptom": page.symptom, "Before": page.before, "After": page.after, "Why": page.why}
    table = page.figures.partition("---|\n")[2]
    figures = re.sub(_ROW, _FIGURES, table.replace("× |", "× as fast, measured |"))
    parts |= {"Program": page.code, "Figures": re.sub(", –( moved)?", "", figures).strip()}
    print_sections(console, parts.items(), code=("Before", "After", "Program"))
