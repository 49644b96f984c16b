"""`hlofuse rule`: the rule catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hlofuse.cli.options import report_options

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.rules.catalogue import Rule


@click.command("rule")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@report_options
def command(codes: tuple[str, ...], form: str, color: str, output: Path | None) -> int:
    """What a rule asks, why XLA asks it, and what to do about it; without CODE, all rules in a list.

    CODE is a rule's code (CPU012) or its letters (CPU) for a family.
    """
    from hlofuse.cli.output import emit, rendered
    from hlofuse.rules.catalogue import catalogue
    from hlofuse.rules.pages import index_markdown, rule_markdown, rules_json

    known = catalogue()
    wanted = _wanted(codes, known) if codes else list(known.values())
    # A page each for codes that were named, a list for families and for everything.
    pages = bool(codes) and all(c.upper() in known for c in codes)
    if form == "json":
        import json

        emit(json.dumps(rules_json(wanted), indent=2, ensure_ascii=False), output)
    elif form == "markdown":
        emit("\n".join(map(rule_markdown, wanted)) if pages else index_markdown(wanted, "#{code}"), output)
    else:
        show = _print_pages if pages else _print_list
        emit(rendered(lambda console: show(wanted, console), color, output), output)
    return 0


def _wanted(codes: tuple[str, ...], known: dict[str, Rule]) -> list[Rule]:
    from hlofuse.inputs.suggest import did_you_mean
    from hlofuse.ir.errors import HlofuseError
    from hlofuse.present.escape import printable
    from hlofuse.rules.pages import family_of

    families: dict[str, list[Rule]] = {}
    for code, rule in known.items():
        families.setdefault(family_of(code), []).append(rule)
    found: list[Rule] = []
    for word in codes:
        code = word.upper()
        if code in known:
            found.append(known[code])
        elif code in families:
            found += families[code]
        else:
            raise HlofuseError(f"there is no rule {printable(word)}{did_you_mean(code, [*known, *families])}")
    return found


def _print_list(rules: list[Rule], console: Console) -> None:
    from rich.table import Table

    from hlofuse.rules.pages import FAMILIES, by_family

    for letters, found in by_family(rules).items():
        console.print(f"{letters}  {FAMILIES.get(letters, '')}", style="bold")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="cyan")
        table.add_column(no_wrap=True)
        table.add_column()
        for rule in found:
            table.add_row(f"  {rule.code}", rule.runs or ("allows" if rule.allows else ""), rule.title)
        console.print(table)
        console.print()
    console.print("hlofuse rule CODE shows a rule's page.")


def _print_pages(rules: list[Rule], console: Console) -> None:
    from rich.padding import Padding

    from hlofuse.rules.pages import sections

    for number, rule in enumerate(rules):
        if number:
            console.print()
        console.print(f"{rule.code}  {rule.title}", style="bold")
        for heading, text in sections(rule):
            console.print()
            console.print(heading, style="cyan")
            console.print(Padding(text, (0, 0, 0, 2)))
