"""Attributes as JSON values."""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any


def fields(thing: object, spec: str, form: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """The attributes named by `spec`, tuples as lists: `"kind runs=count rule=rule.code"`. `source?` is None
    where the attribute is empty; `us_saved~` is in microseconds, rounded. `form` makes a JSON value of each
    attribute, or of each element of a tuple; None stays None."""
    found = {key: convert(read(thing)) for key, read, convert in _parse_spec(spec)}
    return found if form is None else {key: _apply_form(value, form) for key, value in found.items()}


def _apply_form(value: Any, form: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [form(v) for v in value]
    return None if value is None else form(value)


@cache
def _parse_spec(spec: str) -> list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]:
    rows: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = []
    for entry in spec.split():
        key, _, path = entry.rstrip("?~").partition("=")
        rows.append((key, attrgetter(path or key), _CONVERSIONS.get(entry[-1], _list_value)))
    return rows


def us_json(value: float | None) -> float | None:
    """Microseconds rounded to a quarter of a nanosecond."""
    return None if value is None else round(value, 5)


def _list_value(value: object) -> object:
    return list(value) if type(value) is tuple else value


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"?": lambda value: _list_value(value or None), "~": us_json}
