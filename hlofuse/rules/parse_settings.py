"""Settings from what a user wrote (`--set NAME=VALUE`, `--disable CODE`)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from hlofuse.ir.errors import HlofuseError
from hlofuse.rules.catalogue import catalogue
from hlofuse.rules.settings import AS_XLA, Settings


def parse_settings(overrides: Iterable[str], disabled: Iterable[str]) -> Settings:
    """Known names and codes only; anything else is an error that suggests what was meant."""
    overrides, disabled = tuple(overrides), tuple(disabled)
    if not overrides and not disabled:
        return AS_XLA
    rules = catalogue()
    knobs = {k.name: k for r in rules.values() for k in r.knobs}
    values: dict[str, float] = {}
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise HlofuseError(f"--set {text}: expected NAME=VALUE")
        if name not in knobs:
            meant = _meant(name, knobs) or f"; known: {', '.join(sorted(knobs))}"
            raise HlofuseError(f"there is no knob {name!r}{meant}")
        try:
            values[name] = float(value)
        except ValueError:
            raise HlofuseError(f"--set {text}: {value!r} is not a number") from None
    codes = [c.upper() for c in disabled]
    for code in codes:
        if code not in rules:
            raise HlofuseError(f"there is no rule {code!r}{_meant(code, rules)}")
        if rules[code].runs:
            raise HlofuseError(f"rule {code} tells who runs a kernel; there is no fusion without it to try")
        if rules[code].essential:
            raise HlofuseError(f"rule {code} cannot be disabled: without it the program would be wrong")
    return Settings(values, frozenset(codes))


def _meant(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=3, cutoff=0.5)
    return f"; did you mean {', '.join(close)}?" if close else ""
