"""A part of a module in words and as JSON: what there is of it, and no figure of what would run."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.format import plural, printable
from hlofuse.format.terminal import Page, print_rows

if TYPE_CHECKING:
    from hlofuse.inputs.part import Fragment, Part

_LISTED = 4


def part_json(part: "Part", schema: str) -> dict[str, Any]:
    """The report on a part, under the schema of the question; the totals of a part are null."""
    backend, stage = part.backend, part.stage
    return {
        "schema": schema,
        "module": part.module.name or None,
        "stage": stage.value if stage is not None else None,
        "xla": {
            "release": None,
            "source": "default",
            "written_by": None,
            "backend": backend.value if backend is not None else None,
            "device": None,
            "flags": {},
        },
        "order": None,
        "not_repeated": [],
        "notes": [part.problem],
        "totals": None,
        "contents": part.contents,
        "computations": [
            {
                "name": p.computation.name or None,
                "entry": p.is_entry,
                "whole": p.is_whole,
                "line": p.first + 1,
                "instructions": _operations(p).total(),
                "opcodes": dict(_operations(p)),
            }
            for p in part.fragments
        ],
    }


def print_part(part: "Part", console: Page) -> None:
    """What the text has, why that is not all, and the evidence of the backend."""
    name = f"{printable(part.module.name)}: " if part.module.name else ""
    console.print(f"{name}{part.contents}", style="bold")
    console.print(f"{part.problem[0].upper()}{part.problem[1:]}.")
    console.print("Kernels, time and bytes are known of a whole module only.")
    backend = part.backend
    if backend is not None:
        console.print(f"Backend {backend.value}: {backend.evidence}.", style="dim")
    if part.cut is not None and (call := custom_call_target(part.cut)):
        console.print(f"The instruction that is cut, {printable(part.cut.name)}, calls {printable(call)}.")
    shown = console.first(part.fragments)
    if shown:
        console.print()
        rows = [(_title(p), f"{_operations(p).total():,}", _listed(_operations(p))) for p in shown]
        columns = [("computation", "name"), ("instructions", "right"), ("operations", "left")]
        print_rows(console, columns, rows)
    console.print_rest(part.fragments, 0)


def _title(fragment: "Fragment") -> str:
    name = printable(fragment.computation.name)
    marks = [word for word, holds in (("entry", fragment.is_entry), ("cut", not fragment.is_whole)) if holds]
    return f"{name} ({', '.join(marks)})" if name and marks else name or "in no computation"


def _operations(fragment: "Fragment") -> Counter[str]:
    return Counter(i.opcode for i in fragment.computation)


def _listed(operations: Counter[str]) -> str:
    """`fusion 3, copy 1, … 2 more`."""
    found = [f"{printable(opcode)} {count}" for opcode, count in operations.most_common(_LISTED)]
    if len(operations) > _LISTED:
        found.append(f"… {plural(len(operations) - _LISTED, 'more opcode')}")
    return ", ".join(found)
