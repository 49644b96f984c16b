"""Settings from what a user wrote (`--set NAME=VALUE`, `--disable CODE`)."""

import difflib
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from hlofuse.ir.errors import HlofuseError, any_of
from hlofuse.rules.catalogue import Knob, Rule, catalogue
from hlofuse.rules.settings import AS_XLA, Settings


def parse_settings(
    overrides: Iterable[str],
    disabled: Iterable[str],
    *,
    extra_names: Iterable[str] = (),
    added: Mapping[str, Rule] = MappingProxyType({}),
) -> Settings:
    """Known names and codes only; anything else is an error that suggests what was meant.

    `extra_names` are names beside the knobs that `--set` takes: the device's numbers. `added` are rules
    besides XLA's, by code.
    """
    overrides, disabled = tuple(overrides), tuple(disabled)
    if not overrides and not disabled:
        return AS_XLA
    rules = {**catalogue(), **added}
    knobs = all_knobs()
    values: dict[str, float] = {}
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise HlofuseError(f"--set {text}: expected NAME=VALUE")
        if name not in knobs:
            names = [*knobs, *extra_names]
            meant = _meant(name, names) or "; hlofuse what-if --knobs lists them"
            raise HlofuseError(f"no knob {name!r}{meant}")
        try:
            values[name] = float(value)
        except ValueError:
            raise HlofuseError(f"--set {text}: {value!r} is not a number") from None
        if math.isnan(values[name]):
            raise HlofuseError(f"--set {text}: {value!r} is not a number")
    codes = [c.upper() for c in disabled]
    for code in codes:
        if code not in rules:
            meant = _meant(code, rules) or " (hlofuse rule lists them)"
            raise HlofuseError(f"no rule {code!r}{meant}")
        if rules[code].fixed:
            raise HlofuseError(f"rule {code} cannot be disabled: {rules[code].fixed}")
    return Settings(values, frozenset(codes))


def all_knobs() -> dict[str, Knob]:
    """Every knob of the catalogue by name."""
    return {k.name: k for r in catalogue().values() for k in r.knobs}


def _meant(word: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(names), n=3, cutoff=0.5)
    return f"; did you mean {any_of(close)}?" if close else ""
