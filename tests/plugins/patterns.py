"""Small modules for tests of patterns, and asking where a pattern stands in them."""

from __future__ import annotations

from collections.abc import Collection

from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.plugins.pattern import Match, Matcher, find_matches, parse_pattern


def module_of(body: str, called: str = "") -> Module:
    """A module whose entry computation has these lines."""
    return parse_module(f"HloModule m\n\n{called}\nENTRY main {{\n{body.strip()}\n}}\n")


def matches(
    pattern: str, module: Module, through: Collection[str] = ("bitcast", "convert", "copy", "reshape")
) -> list[Match]:
    """All places in the entry computation where the pattern may be replaced."""
    return list(find_matches(Matcher(parse_pattern(pattern), through), module.entry))
