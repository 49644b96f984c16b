"""The pages of docs/recipes: a change to a program, with the figures of XLA's compilation of both sides."""

import re
from functools import cache
from pathlib import Path

from hlofuse.format import printable
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
    """The text of a page of the folder."""
    return (_folder() / f"{name}.md").read_text(encoding="utf-8")


def recipe_names() -> list[str]:
    """The names of all recipes, in the order of the alphabet."""
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


_LEAST_GAIN = 0.15  # of the time replaced: a page's program is one, and others gained where it lost 4%


def gain_on_a_tpu(name: str) -> float:
    """The part of its time that a recipe's page shows as saved on a v5e, at least `_LEAST_GAIN`; 1 without a
    row. None is saved where the row shows the same time, or 5% more. A lower bound before shows nothing. Two
    lower bounds are compared."""
    row = re.search(r"\| v5e \|.*\| (≥ )?(\S+) → (≥ )?(\S+) µs", recipe_page(name).figures)
    if row is None:
        return 1.0
    has_bound, remains_bound = row[1], row[3]
    before, after = (float(row[k].replace(",", "")) for k in (2, 4))
    is_slower = after > 1.05 * before and (not has_bound or bool(remains_bound))
    if is_slower or (after == before and not has_bound):
        return 0.0
    return max(1 - after / (before or 1.0), _LEAST_GAIN)
