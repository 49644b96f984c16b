"""The pages of docs/recipes: a change to a program, with the figures of XLA's compilation of both sides."""

import re
from functools import cache
from pathlib import Path

from hlofuse.format.escape import printable
from hlofuse.inputs.suggest import did_you_mean, names_meant
from hlofuse.ir import HlofuseError, Record

FORM = re.compile(
    r"# (?P<title>[^\n]+)\n\n"
    r"Symptom: (?P<symptom>[^\n]+(?:\n(?!Rules:)[^\n]+)*)\n"
    r"Rules: *(?P<rules>[^\n]+)\n"
    r"Devices: *(?P<devices>[^\n]+)\n"
    r"Before: `(?P<before>[^\n]+)`\n"
    r"After: `(?P<after>[^\n]+)`\n\n"
    r"(?P<why>.+?)\n\n```python\n(?P<code>.+?)\n```\n(?P<rest>.*)",
    re.DOTALL,
)


class RecipePage(Record):
    name: str
    title: str
    symptom: str
    rules: str
    devices: str
    before: str  # The operation to change, in a line
    after: str  # The form to write in its place
    why: str
    code: str  # A program that defines `before` and `after`
    figures: str  # XLA's figures for each device as a table of Markdown, and measured times


def _folder() -> Path:
    package = Path(__file__).parents[2]
    packaged = package / "recipes"
    return packaged if packaged.is_dir() else package.parent / "docs" / "recipes"


def recipe_text(name: str) -> str:
    return (_folder() / f"{name}.md").read_text(encoding="utf-8")


def recipe_names() -> list[str]:
    return sorted(p.stem for p in _folder().glob("*.md") if p.stem.islower())


@cache
def recipe_page(name: str) -> RecipePage:
    """The page of a recipe. HlofuseError for an unknown name."""
    names = recipe_names()
    if name not in names:
        mentions = [n for n in names if name.lower() in recipe_text(n).lower()]
        meant = did_you_mean(name, names) or names_meant(mentions[:5]) or "; hlofuse recipe lists all"
        raise HlofuseError(f"no recipe {printable(name)}{meant}")
    found = FORM.fullmatch(recipe_text(name))
    assert found is not None, name
    fields = found.groupdict()
    for key in ("symptom", "why"):
        fields[key] = re.sub(r"(?<!\n)\n(?!\n)", " ", fields[key])
    fields["figures"] = fields.pop("rest").strip()
    return RecipePage(name, **fields)


def is_faster_on_a_tpu(name: str) -> bool | None:
    """True if a recipe's page shows less time for a v5e, False if it shows none; None where it does not say.
    Two lower bounds show it by the part of the time that is known."""
    row = re.search(r"\| v5e \|.*\| (.+) → (.+) µs", recipe_page(name).figures)
    if row is None:
        return None
    before, after = row.groups()
    ratio = _number(after) / _number(before)
    if ratio < 0.98:
        return None if _BOUND in after else True
    is_open = _BOUND in before and (_BOUND not in after or ratio == 1)
    return None if is_open else False


_BOUND = "≥ "  # Before a time that leaves out kernels


def _number(time: str) -> float:
    return float(time.removeprefix(_BOUND).replace(",", ""))
