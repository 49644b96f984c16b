"""`--rules`: rules and fusions of other packages, for one replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from hlofuse.rules.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def rules_option(command: F) -> F:
    """`--rules NAME`, any number of times."""
    return click.option(
        "--rules",
        multiple=True,
        metavar="NAME|all",
        help="Let the rules of an installed package take part (hlofuse rule lists them): no longer XLA's.",
    )(command)


def settings_of(overrides: Iterable[str], disabled: Iterable[str], rules: Sequence[str]) -> Settings:
    """What `--set`, `--disable` and `--rules` say; HlofuseError for what is not known or cannot be used."""
    from dataclasses import replace

    from hlofuse.rules.parse_settings import parse_settings

    if not rules:
        return parse_settings(overrides, disabled)
    from hlofuse.extending import load_rules

    active = load_rules(rules)
    return replace(parse_settings(overrides, disabled, active.rules), outside=active)


def banner(names: Sequence[str]) -> str:
    """What a report says first when packages took part; empty without."""
    if not names:
        return ""
    from hlofuse.extending import load_rules
    from hlofuse.present.not_xla import not_xla

    return not_xla(load_rules(names).names)
