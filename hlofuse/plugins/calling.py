"""Calling a package's own functions: what goes wrong in them is said as the package's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hlofuse.ir.errors import HlofuseError

R = TypeVar("R")


def call_outside(code: str, what: str, function: Callable[..., R], *arguments: Any) -> R:
    """`function(*arguments)`; HlofuseError that names the rule and the function for any exception."""
    try:
        return function(*arguments)
    except HlofuseError:
        raise
    except Exception as error:
        raise HlofuseError(
            f"{what} of rule {code}, which is not XLA's, failed: {type(error).__name__}: {error}"
        ) from error
