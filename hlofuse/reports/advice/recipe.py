"""A recipe: a change to a program that makes XLA fuse more, with its page in docs/recipes."""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hlofuse.reports.advice.situation import Situation

_GAIN = 0.95
"""A measured change that takes a larger part of the time before gains nothing that noise does not."""


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

    @property
    def gains_on_gpu(self) -> bool:
        """False where the program of its page, measured on a GPU, became hardly faster."""
        measured = measured_recipes().get(self.name)
        return measured is None or measured.after_us < _GAIN * measured.before_us


@dataclass(frozen=True, slots=True)
class MeasuredRecipe:
    """The time on a device of the program of a recipe's page, in microseconds."""

    device: str
    jaxlib: str
    before_us: float
    after_us: float


@cache
def measured_recipes() -> dict[str, MeasuredRecipe]:
    """By the name of the recipe, from `measured.csv`: the kernels of one run, the mean of twelve."""
    with open(Path(__file__).with_name("measured.csv"), encoding="utf-8", newline="") as file:
        return {
            r["recipe"]: MeasuredRecipe(r["device"], r["jaxlib"], float(r["before_us"]), float(r["after_us"]))
            for r in csv.DictReader(file)
        }
