"""`--rules`: rules and fusions of other packages, for one replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def with_rules(settings: Settings, names: Sequence[str]) -> Settings:
    """The settings with these packages taking part; HlofuseError for one that cannot be used."""
    if not names:
        return settings
    from dataclasses import replace

    from hlofuse.extending import load_rules

    return replace(settings, outside=load_rules(names))


def banner(names: Sequence[str]) -> str:
    """What a report says first when packages took part; empty without."""
    if not names:
        return ""
    from hlofuse.extending import load_rules
    from hlofuse.present.not_xla import not_xla

    return not_xla(load_rules(names).names)
