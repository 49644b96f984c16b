"""Recipes on modules with one edit: at how many places each applies is as recorded, and what it writes.

A guard that admits one module more or one less is seen, and has to be meant. The values are judged elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from random import Random

import pytest

from hlofuse.ir import parse_module, print_module
from hlofuse.ir.copy import copy_module
from hlofuse.ir.errors import HloParseError
from hlofuse.ir.graph import Module
from hlofuse.ir.shape_check import first_misfit
from hlofuse.passes.common import make
from hlofuse.passes.dce import HloDCE
from hlofuse.reports.advice.written import prepared
from hlofuse.trace import OnlySkipped
from ..running import Golden, find
from .test_written import CASES, edits_of, module, rewritten

NUMBERS = re.compile(r"(?<=[={,:_(x\[])-?\d+(?=[},:_) x\]]|$)|EQ|NE|LT|LE|GT|GE")
DIRECTIONS = {"EQ": "LE", "NE": "EQ", "LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}
EACH = 8
"""Edits of a kind that are tried of each case."""
Edit = tuple[str, Callable[[], Module | None]]


def other_numbers(original: Module) -> Iterator[Edit]:
    """A constant, dimension, bound or comparison of one instruction; None where shapes do not fit."""
    text = print_module(original)

    def edited(at: int, end: int, new: str) -> Module | None:
        with suppress(HloParseError):
            found = parse_module(text[:at] + new + text[end:])
            return found if first_misfit(found) is None else None
        return None

    for line in re.finditer(r"^ .*?%([\w.-]+) = \S+ [\w-]+(\(.*)$", text, re.M):
        for f in NUMBERS.finditer(text, *line.span(2)):
            before = re.split("[ (]", text[line.start(2) : f.start()])[-1]
            for new in [DIRECTIONS[f[0]]] if f[0] in DIRECTIONS else [str(int(f[0]) + d) for d in (1, -1)]:
                yield f"{line[1]} {before}{new}", partial(edited, *f.span(), new)


def other_types_and_sizes(original: Module) -> Iterator[Edit]:
    """Another type for float32, or another size for all dimensions of one; None where shapes do not fit."""
    text = print_module(original)

    def edited(pattern: str, new: str) -> Module | None:
        with suppress(HloParseError):
            found = parse_module(re.sub(pattern, new, text))
            return found if first_misfit(found) is None else None
        return None

    for new in ("f64", "bf16", "s32", "c64"):
        yield f"all {new}", partial(edited, r"\bf32(?=\[)", new)
    sizes = {n for x in original.instructions() if x.is_array for n in x.sizes}
    for size in sorted(sizes - {1}):
        for new in sorted({"1", "2", "300", "5000"} - {str(size)}):
            yield (
                f"{size} is {new}",
                partial(edited, rf"(?<=[\[,:]){size}(?=[\],:])|(?<=sizes=\{{){size}\b", new),
            )


def other_results(original: Module) -> Iterator[Edit]:
    """A value that the program returns as well, so that it has one more user."""

    def edited(name: str) -> Module:
        module = copy_module(original)
        module.entry.root = make.tuple_of(module.entry.root, [module.entry.root, find(module, name)])
        return module

    for x in original.entry.post_order():
        if x.operands and not x.is_root and x.shape.is_array:
            yield f"{x.name} returned", partial(edited, x.name)


def sums_of_more(original: Module) -> Iterator[Edit]:
    """A reduction over one dimension more, as the only result of the program."""

    def edited(name: str, dimension: int) -> Module:
        x = find(module := copy_module(original), name)
        along = [*x.dimensions, dimension]
        module.entry.root = make.reduce(x, x.operand, x.operands[1], along, x.to_apply)
        HloDCE().run(module, OnlySkipped())
        return module

    for x in original.entry.post_order():
        for d in range(x.operand.rank) if x.opcode == "reduce" and x.is_array else ():
            if d not in x.dimensions:
                yield f"{x.name} over {d} too", partial(edited, x.name, d)


@pytest.mark.usefixtures("small_parts")
def test_edited_modules_are_changed_at_as_many_places_as_before(golden: Golden) -> None:
    lines = []
    for name in CASES:
        original = prepared(module(CASES[name][0]))
        found = defaultdict[int | str, list[str]](list)
        listed = other_numbers, edits_of, other_results, sums_of_more, other_types_and_sizes
        kinds = (kind(original) for kind in listed)
        for edits in map(list, kinds):
            Random(name).shuffle(edits)
            tried = ((edit, edited) for edit, apply in edits if (edited := apply()) is not None)
            for edit, edited in islice(tried, EACH):
                count: int | str = "invalid"  # XLA would refuse a dimension or a window of that number
                with suppress(LookupError, ValueError, HloParseError):
                    changed = rewritten(name, edited)
                    count = changed if first_misfit(edited) is None else count
                found[count].append(edit)
        places = rewritten(name, original)
        assert first_misfit(original) is None
        opcodes = Counter(x.opcode for x in original.instructions())
        written = " ".join(f"{opcodes[opcode]} {opcode}" for opcode in sorted(opcodes))
        lines.append(f"{name}: {places} places, then {written}\n")
        lines += [f"  {count}: {', '.join(found[count])}\n" for count in sorted(found, key=str)]
    golden("recipes/edited.txt", "".join(lines))
