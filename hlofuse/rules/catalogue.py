"""The catalogue: one entry for each reason XLA can give.

Entries live in one file per pass next to this one; `hlofuse rule` prints them and `make site` builds
their pages. Codes are stable: a code is never reused for another rule.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import ParamSpec, TypeVar

from hlofuse.releases import ANY, Release, Span

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Knob:
    """A number a rule reads; `--set NAME=VALUE` overrides it in what-if runs."""

    name: str
    default: float | int | bool
    unit: str = ""
    summary: str = ""
    by_release: tuple[tuple[Span, float | int | bool], ...] = ()
    """The values of the releases in which it is not the default."""

    def __post_init__(self) -> None:
        if self.by_release:
            _VARYING[self.name] = self

    def value_in(self, release: Release) -> float | int | bool:
        """XLA's value in that release."""
        return next((v for span, v in self.by_release if release.has(span, self.name)), self.default)


_VARYING: dict[str, Knob] = {}


def knob_values(release: Release) -> dict[str, float]:
    """By name, the values of that release that are not the knob's default."""
    values = {name: float(knob.value_in(release)) for name, knob in _VARYING.items()}
    return {name: value for name, value in values.items() if value != _VARYING[name].default}


@dataclass(frozen=True, slots=True)
class Rule:
    """Why XLA fuses, or does not."""

    code: str
    title: str
    condition: str
    """What the rule asks of producer and consumer."""
    why: str
    """Why XLA asks it."""
    mirrors: str
    """XLA file and function."""
    advice: str = ""
    """What a user can do about it; empty where that is nothing."""
    message: str = ""
    """XLA's own words, as in its logs; empty where XLA logs nothing."""
    allows: bool = False
    """True for a rule that settles a pair by allowing it."""
    knobs: tuple[Knob, ...] = field(default=())
    span: Span = ANY
    """The releases that have it."""
    history: str = ""
    """What else differed between releases."""
    essential: bool = False
    """Without it the program would be wrong, or have no code: a what-if run cannot switch it off."""
    lasting: bool = False
    """A fusion it refuses a producer is refused that producer however it grows."""
    estimated: bool = False
    """XLA's cost model says that fusing takes longer: without the rule the program only gets slower."""
    outcome: bool = False
    """It names what came out of a pass and asks nothing of its own: there is nothing to switch off."""
    runs: str = ""
    """For a rule that settles who runs a kernel: who does, as `hlofuse kernels` says it."""
    pass_name: str = ""
    """For a pass outside fusion: XLA's name of it."""
    flag: str = ""
    """The flag that makes XLA leave that pass out."""
    package: str = ""
    """The package it comes from; empty for XLA's own."""

    @property
    def fixed(self) -> str:
        """Why a what-if run cannot switch it off; empty where it can."""
        if self.runs:
            return "it tells who runs a kernel; there is no fusion without it to try"
        if self.essential:
            return "without it the program would be wrong, or have no code"
        if self.estimated:
            return "it is the verdict of XLA's cost model: without it the program only gets slower"
        return "it names what came out and asks nothing of its own" if self.outcome else ""


_CATALOGUE: dict[str, Rule] = {}


def given_fields_of(rule: Callable[P, Rule]) -> Callable[[Callable[[Rule], T]], Callable[P, T]]:
    """Have a function of a rule take the rule's fields."""

    def change(use: Callable[[Rule], T]) -> Callable[P, T]:
        @wraps(use)
        def call(*fields: P.args, **named: P.kwargs) -> T:
            return use(rule(*fields, **named))

        return call

    return change


@given_fields_of(Rule)
def register(rule: Rule) -> Rule:
    """Enter a rule; a code may be taken once."""
    if rule.code in _CATALOGUE:
        raise ValueError(f"rule {rule.code} is already in the catalogue")
    _CATALOGUE[rule.code] = rule
    return rule


essential = partial(register, essential=True)
outcome = partial(register, outcome=True)


def catalogue() -> dict[str, Rule]:
    """Every rule by code, in order of codes."""
    _load()
    return dict(sorted(_CATALOGUE.items()))


def _load() -> None:
    # Importing a pass's file of rules enters them.
    import importlib
    import pkgutil

    import hlofuse.rules as package

    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(info.name)
