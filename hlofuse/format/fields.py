"""Attributes as JSON values."""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

_Convert: TypeAlias = Callable[[Any], Any]


def fields(thing: object, spec: str, form: _Convert | None = None) -> dict[str, Any]:
    """The attributes named by `spec`, tuples as lists: `"kind runs=count rule=rule.code"`. `source?` is None
    where the attribute is empty; `us_saved~` is in microseconds, rounded. `form` makes a JSON value of each
    attribute, or of each element of a tuple; None stays None."""
    found = {key: convert(read(thing)) for key, read, convert in _parse_spec(spec)}
    return found if form is None else {key: _apply_form(value, form) for key, value in found.items()}


def _apply_form(value: Any, form: _Convert) -> Any:
    if isinstance(value, list):
        return [form(v) for v in value]
    return None if value is None else form(value)


@cache
def _parse_spec(spec: str) -> list[tuple[str, _Convert, _Convert]]:
    parts = [(entry[-1], entry.rstrip("?~").partition("=")) for entry in spec.split()]
    return [(key, attrgetter(at or key), _CONVERSIONS.get(end, _list_value)) for end, (key, _, at) in parts]


def us_json(value: float | None) -> float | None:
    """Microseconds rounded to a quarter of a nanosecond."""
    return None if value is None else round(value, 5)


def _list_value(value: object) -> object:
    return list(value) if type(value) is tuple else value


_CONVERSIONS: dict[str, _Convert] = {"?": lambda value: _list_value(value or None), "~": us_json}
