"""The catalogue: one entry for each reason XLA can give. Entries live in one module per pass next to this
one; the TOML file next to a module has the texts of their pages. `hlofuse rule` prints them and `make site`
builds their pages. Codes are stable: a code is never reused for another rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from hlofuse.ir.record import Record
from hlofuse.ir.texts import texts
from hlofuse.releases import ANY, Release, Span

P = ParamSpec("P")
T = TypeVar("T")
_FOLDER = Path(__file__).parent
_KNOBS = _FOLDER / "knobs.toml"


class Knob(Record):
    """A number a rule reads; `--set NAME=VALUE` overrides it in what-if runs."""

    name: str
    default: float | int | bool
    by_release: tuple[tuple[Span, float | int | bool], ...] = ()
    """The values of the releases in which it is not the default."""

    def __post_init__(self) -> None:
        if self.by_release:
            _VARYING[self.name] = self

    @property
    def unit(self) -> str:
        """The unit of its value; empty for a plain number."""
        return texts(_KNOBS)[self.name].get("unit", "")

    @property
    def summary(self) -> str:
        return texts(_KNOBS)[self.name]["summary"]

    def value_in(self, release: Release) -> float | int | bool:
        return next((v for span, v in self.by_release if release.has(span, self.name)), self.default)


_VARYING: dict[str, Knob] = {}


def knob_values(release: Release) -> dict[str, float]:
    values = {name: float(knob.value_in(release)) for name, knob in _VARYING.items()}
    return {name: value for name, value in values.items() if value != _VARYING[name].default}


def family_of(code: str) -> str:
    return code.rstrip("0123456789")


@cache
def page_file(code: str) -> Path:
    """The file next to the module that registers XLA's rule of this code; it has the texts of its page."""
    files = sorted(_FOLDER.rglob("*.toml"))
    return next(file for file in files if f"[{code}]\n" in file.read_text(encoding="utf-8"))


class _PageText:
    """A text of a rule's page, read on first use; empty where the page has none."""

    def __set_name__(self, owner: "type[Rule]", name: str) -> None:
        self._name = name

    def __get__(self, rule: "Rule", owner: "type[Rule]") -> str:
        page = rule.page
        if page is None:
            page = texts(page_file(rule.code))[rule.code]
        return page.get(self._name, "")


@dataclass(frozen=True)
class Rule:
    """A reason for which XLA fuses or rewrites, or does not."""

    code: str
    title: str
    message: str = ""  # XLA's own words, as in its logs; empty where XLA logs nothing
    allows: bool = False  # True for a rule that settles a pair by allowing it
    knobs: tuple[Knob, ...] = ()
    span: Span = ANY
    essential: bool = False
    """Without it the program would be wrong or could not be compiled: a what-if run cannot disable it."""
    lasting: bool = False  # A fusion it refuses a producer is refused that producer however it grows
    estimated: bool = False
    """XLA's cost model says that fusing takes longer: without the rule the program only gets slower."""
    outcome: bool = False  # It names the result of a pass and has no own condition: nothing to disable
    runs: str = ""  # The implementation of a kernel, as `hlofuse kernels` prints it; empty for other rules
    pass_name: str = ""  # For a pass outside fusion: XLA's name of it
    flag: str = ""  # The flag that makes XLA leave that pass out
    page: Mapping[str, str] | None = field(default=None, compare=False)
    """The texts of its page; None for a rule of XLA's, whose texts are in `page_file`."""

    condition = _PageText()
    why = _PageText()  # The reason for XLA's condition
    mirrors = _PageText()  # XLA file and function
    advice = _PageText()  # A user's remedy; empty where there is none
    history = _PageText()  # Other differences between releases

    @property
    def fixed(self) -> str:
        """The reason why a what-if run cannot disable it; empty where it can."""
        if self.runs:
            return "it names the implementation of a kernel, not a fusion decision"
        if self.essential:
            return "without it the program would be wrong or could not be compiled"
        if self.estimated:
            return "it is the verdict of XLA's cost model; without it the program only gets slower"
        return "it records an outcome and has no condition of its own" if self.outcome else ""


_CATALOGUE: dict[str, Rule] = {}


def given_fields_of(rule: Callable[P, Rule]) -> Callable[[Callable[[Rule], T]], Callable[P, T]]:
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
    _load()
    return dict(sorted(_CATALOGUE.items()))


@cache
def _load() -> None:
    # Importing a pass's file of rules enters them.
    import importlib
    import pkgutil

    import hlofuse.rules as package

    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(info.name)
