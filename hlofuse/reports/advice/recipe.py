"""A recipe: a change to a program that makes XLA fuse more, with its page in docs/recipes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hlofuse.reports.advice.situation import Situation


@dataclass(frozen=True, slots=True)
class Finding:
    """A place in a module where a recipe applies."""

    at: str
    """The instruction at the input of fusion that the change begins with: its line is the one to edit."""
    rule: str = ""
    """The code of the rule that the change avoids; empty where it is about no refusal."""
    parts: tuple[str, ...] = ()
    """Further instructions that the rewrite needs."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A change to a program."""

    name: str
    """Of its page: docs/recipes/NAME.md."""
    text: str
    """What to do: an imperative sentence of at most 70 characters, without a full stop."""
    find: Callable[[Situation], Iterable[Finding]]
    """The places where it applies, each once."""
    rewrite: Callable[..., bool] | None = None
    """Given the instruction of a finding and its parts, in a copy of the module at the input of fusion: makes
    the change there. False where it cannot be made.

    Without it the gain is that of a replay without `Finding.rule`.
    """
    flag: str = ""
    """The XLA flag that is the change; empty where the program is edited."""
