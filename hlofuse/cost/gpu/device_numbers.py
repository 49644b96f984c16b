"""Numbers of a device in files and command lines, converted to the models' types."""

import math
import re
from collections.abc import Mapping
from typing import Any

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.record import Json
from .ticks import fp32

_TOKEN = re.compile(
    r"""
    \s+ | \#[^\n]*
    | (?P<name>[A-Za-z_]\w*)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<number>[-+\d.][\w.+-]*)
    | (?P<mark>[{}:<>])
    """,
    re.VERBOSE,
)


class TextProtoError(ValueError):
    """The text is not a text proto."""


def parse_text_proto(text: str) -> Json:
    """Fields by name; a repeated field becomes a list, a message a dict. Raises `TextProtoError`."""
    root = Json()
    stack = [root]
    name: str | None = None
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            line = text.count("\n", 0, position) + 1
            raise TextProtoError(f"line {line}: unexpected {text[position]!r}")
        position = token.end()
        mark = token["mark"]
        if mark in ("{", "<"):
            if name is None:
                raise TextProtoError("a message has no name")
            inner = Json()
            _add_field(stack[-1], name, inner)
            stack.append(inner)
            name = None
        elif mark in ("}", ">"):
            if len(stack) == 1:
                raise TextProtoError("extra closing brace")
            stack.pop()
        elif token["name"] is not None and name is None:
            name = token["name"]
        elif name is not None and (value := token["name"] or token["text"] or token["number"]):
            _add_field(stack[-1], name, _scalar(value))
            name = None
        elif token["text"] or token["number"]:
            raise TextProtoError(f"a value has no name: {token[0]}")
    if len(stack) > 1 or name is not None:
        raise TextProtoError("the text ends inside a message")
    return root


def _add_field(message: Json, name: str, value: Any) -> None:
    if name not in message:
        message[name] = value
    elif isinstance(message[name], list):
        message[name].append(value)
    else:
        message[name] = [message[name], value]


def _scalar(text: str) -> Any:
    if text[0] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)


_TEXT_FIELDS = ("name", "platform", "gcn_arch_name", "origin")
_VERSIONS = {"compute_capability": 2, "toolkit_version": 3}
_SPEEDUPS = ("l2_cache_speedup", "l1_cache_speedup")
_FRACTIONS = ("clock_rate_ghz", "launch_overhead_us", "memory_compute_parallelism", *_SPEEDUPS)
_DIVISORS = (
    *("core_count", "fpus_per_core", "clock_rate_ghz", "memory_bandwidth"),
    *("threads_per_warp", "block_dim_limit_x", "block_dim_limit_y", *_SPEEDUPS),
)
_MAY_BE_UNKNOWN = ("registers_per_block_limit", "registers_per_core_limit")
"""Limits for which XLA has -1 on Intel's devices."""


def typed_numbers(values: Mapping[str, Any]) -> Json:
    """Values in the types of `DeviceDescription`'s fields; raises `HlofuseError` for impossible ones."""
    return {key: _convert(key, value) for key, value in values.items()}


def _convert(key: str, value: Any) -> Any:
    if key in _TEXT_FIELDS:
        return value
    try:
        if key in _VERSIONS:
            parts = value.split(".") if isinstance(value, str) else value
            length = _VERSIONS[key]
            return tuple(([int(x) for x in parts] + [0] * length)[:length])
        if key == "matrix_units":
            return tuple(
                (name, fp32(float(clock)), int(units), int(operations))
                for name, (clock, units, operations) in value.items()
            )
        return _possible(key, value)
    except (ValueError, AttributeError, TypeError):
        raise HlofuseError(f"{key}: {value!r} is not a number") from None


def _possible(key: str, value: Any) -> int | float:
    number = float(value)
    if number == -1 and key in _MAY_BE_UNKNOWN:
        return -1
    if not math.isfinite(number) or number < 0 or (number == 0 and key in _DIVISORS):
        least = "more than 0" if key in _DIVISORS else "0 or more"
        raise HlofuseError(f"{key}: expected a number of {least}, found {value}")
    if key == "memory_compute_parallelism" and number > 1:
        raise HlofuseError(f"{key}: expected a fraction from 0 to 1, found {value}")
    if key in _FRACTIONS:
        return fp32(number) if key == "clock_rate_ghz" else number
    if not number.is_integer():
        raise HlofuseError(f"{key}: expected an integer, found {value}")
    return int(value) if isinstance(value, int) or value.isdigit() else int(number)
