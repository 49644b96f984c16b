"""`hlofuse rule`: the rule catalogue."""

import json
from typing import TYPE_CHECKING

import click

from hlofuse.format.escape import printable
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir import HlofuseError, grouped
from hlofuse.rules.catalogue import Rule, catalogue, family_of
from hlofuse.rules.pages import by_family, family_title, index_markdown, rule_markdown, rules_json, sections
from .common.options import report_options
from .common.output import Output

if TYPE_CHECKING:
    from rich.console import Console


@click.command("rule")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@report_options
def command(codes: tuple[str, ...], out: Output) -> int:
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


def _requested_rules(codes: tuple[str, ...], rules_by_code: dict[str, Rule]) -> list[Rule]:
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


def _print_list(rules: list[Rule], console: "Console") -> None:
    from rich.table import Table

    for letters, found in by_family(rules).items():
        console.print(f"{letters}  {printable(family_title(found[0]))}", style="bold")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="cyan")
        table.add_column(no_wrap=True)
        table.add_column()
        for rule in found:
            outcome = rule.runs or ("allows" if rule.allows else "")
            table.add_row(f"  {rule.code}", outcome, printable(rule.title))
        console.print(table)
        console.print()
    console.print("hlofuse rule CODE shows one rule in full.")


def _print_pages(rules: list[Rule], console: "Console") -> None:
    from hlofuse.format.terminal import print_sections

    for number, rule in enumerate(rules):
        if number:
            console.print()
        console.print(f"{rule.code}  {printable(rule.title)}", style="bold")
        print_sections(console, sections(rule))
