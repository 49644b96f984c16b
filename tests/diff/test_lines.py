"""Source lines that an edit has moved: the same line by function and structure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hlofuse.diff import diff
from hlofuse.diff.compare import moved_lines
from hlofuse.diff.model import as_compared
from hlofuse.ir import Module, parse_module
from hlofuse.ir.attributes.metadata import SourceLocation
from hlofuse.matching.graph import Graph
from hlofuse.matching.key import Keys, Strictness
from hlofuse.matching.pairs import match_region
from hlofuse.matching.similarity import LineShifts
from hlofuse.matching.structure import Matching
from hlofuse.reports.diff.model import by_source
from hlofuse.reports.diff.phrases import line_shown, moved_lines_note
from ..running import Run

Step = tuple[str, int, str]
"""An opcode, its line and its function."""


def text(steps: Sequence[Step], file: str = "/home/me/net/model.py", size: int = 8) -> str:
    """A chain of operations on one parameter."""
    functions = list(dict.fromkeys(f for *_, f in steps))
    shape = f"f32[{size}]"
    body = [f"  %v0 = {shape}{{0}} parameter(0)"]
    for n, (opcode, *_) in enumerate(steps, 1):
        last = "ROOT " if n == len(steps) else ""
        body.append(
            f'  {last}%v{n} = {shape}{{0}} {opcode}(%v{n - 1}), metadata={{op_name="jit(f)/{opcode}"'
            f" stack_frame_id={n}}}"
        )
    tables = [
        "FileNames",
        f'1 "{file}"',
        "",
        "FunctionNames",
        *(f'{n} "{f}"' for n, f in enumerate(functions, 1)),
        "",
        "FileLocations",
        *(
            f"{n} {{file_name_id=1 function_name_id={functions.index(f) + 1} line={line} end_line={line}"
            " column=1 end_column=9}"
            for n, (_, line, f) in enumerate(steps, 1)
        ),
        "",
        "StackFrames",
        *(f"{n} {{file_location_id={n} parent_frame_id={n}}}" for n in range(1, len(steps) + 1)),
    ]
    head = f"HloModule jit_f, entry_computation_layout={{({shape}{{0}})->{shape}{{0}}}}"
    entry = f"ENTRY %main (v0: {shape}) -> {shape} {{"
    return "\n".join([head, "", *tables, "", "", entry, *body, "}", ""])


def module(*steps: Step, file: str = "/home/me/net/model.py", size: int = 8) -> Module:
    return parse_module(text(steps, file, size))


BEFORE = (("sine", 35, "act"), ("tanh", 36, "act"), ("cosine", 50, "step"))


def test_lines_below_an_edit() -> None:
    """Two lines were put above `act`; `step` begins where it did."""
    found = diff(module(*BEFORE), module(("sine", 37, "act"), ("tanh", 38, "act"), ("cosine", 50, "step")))
    assert moved_lines(found) == {"model.py:35": "model.py:37", "model.py:36": "model.py:38"}
    assert moved_lines_note(moved_lines(found)) == (
        "2 source lines moved, matched by function and structure: model.py:35 → 37, model.py:36 → 38"
    )


def test_lines_that_change_numbers_among_each_other() -> None:
    """36 was 35; what was 36 is 37: one line each, though numbers are the same."""
    after = module(("sine", 36, "act"), ("tanh", 37, "act"), ("cosine", 50, "step"))
    assert moved_lines(diff(module(*BEFORE), after)) == {
        "model.py:35": "model.py:36",
        "model.py:36": "model.py:37",
    }


def test_another_function_is_another_line() -> None:
    after = module(("sine", 37, "other"), ("tanh", 36, "act"), ("cosine", 50, "step"))
    assert moved_lines(diff(module(*BEFORE), after)) == {}


def test_another_folder_is_the_same_file() -> None:
    after = module(("sine", 37, "act"), *BEFORE[1:], file="/tmp/branch/model.py")
    assert moved_lines(diff(module(*BEFORE), after)) == {"model.py:35": "model.py:37"}


def test_a_file_that_was_renamed() -> None:
    after = module(*BEFORE, file="/home/me/net/layers.py")
    assert moved_lines(diff(module(*BEFORE), after))["model.py:35"] == "layers.py:35"


def test_kernels_of_a_moved_line_are_compared() -> None:
    """The size doubles; each row is of one line, under its number in AFTER."""
    after = module(("sine", 37, "act"), ("tanh", 38, "act"), ("cosine", 50, "step"), size=16)
    found = diff(module(*BEFORE), after)
    rows = list(by_source(as_compared(found), moved_lines(found)))
    assert [line_shown(r) for r in rows] == ["model.py:37 (was 35)", "model.py:38 (was 36)", "model.py:50"]
    assert {(r.kernels_before, r.kernels_after) for r in rows} == {(1, 1)}
    assert {(r.bytes_before, r.bytes_after) for r in rows} == {(64, 128)}


def test_a_number_that_is_another_lines_now() -> None:
    """`sine` of 35 is gone, and 35 is where `tanh` of 36 stands."""
    found = diff(module(*BEFORE), module(("tanh", 35, "act"), ("cosine", 50, "step")))
    rows = by_source(as_compared(found), moved_lines(found))
    assert [(line_shown(r), r.kernels_before, r.kernels_after) for r in rows] == [
        ("model.py:35 in BEFORE", 1, 0)
    ]


def test_the_report(tmp_path: Path, hlofuse: Run) -> None:
    files = [tmp_path / "before.hlo", tmp_path / "after.hlo"]
    files[0].write_text(text(BEFORE))
    files[1].write_text(text((("sine", 37, "act"), ("tanh", 36, "act"), ("cosine", 50, "step")), size=16))
    assert "model.py:37 (was 35)" in hlofuse("diff", *files).out
    assert "1 source line moved" in hlofuse("diff", *files, "--format", "markdown").out
    document = json.loads(hlofuse("diff", *files, "--format", "json").out)
    assert document["moved_lines"] == [["model.py:35", "model.py:37"]]
    line = next(x for x in document["lines"] if x["source"] == "model.py:37")
    assert (line["source_before"], line["kernels"]) == ("model.py:35", [1, 1])


def test_a_line_is_as_far_from_its_neighbours_as_before() -> None:
    """What guides the matching of operations that structure does not tell apart."""
    keys = Keys(Strictness.WRITTEN)
    after = module(("sine", 37, "act"), ("tanh", 38, "act"), ("cosine", 50, "step"))
    graphs = [Graph(m, keys) for m in (module(*BEFORE), after)]
    m = Matching(graphs[0], graphs[1])
    match_region(m, graphs[0].entry, graphs[1].entry)
    shifts = LineShifts(m, graphs[0].entry)
    file = "/home/me/net/model.py"
    cases = {("act", 35): 37, ("act", 40): 42, ("act", 30): 32, ("step", 51): 51, ("unseen", 7): 7}
    for (function, line), expected in cases.items():
        assert shifts.line_after(SourceLocation(file, line, function)) == f"model.py:{expected}"


def test_dumps_without_functions() -> None:
    """Releases before stack frames write the file and the line alone."""
    steps = (("sine", 35), ("tanh", 36))

    def old(shift: int) -> Module:
        body = "\n".join(
            f"  {'ROOT ' if n == 2 else ''}%v{n} = f32[8]{{0}} {opcode}(%v{n - 1}),"
            f' metadata={{op_name="{opcode}" source_file="model.py" source_line={line + shift}}}'
            for n, (opcode, line) in enumerate(steps, 1)
        )
        return parse_module(
            "HloModule m\n\nENTRY %main (v0: f32[8]) -> f32[8] {\n"
            f"  %v0 = f32[8]{{0}} parameter(0)\n{body}\n}}\n"
        )

    expected = {"model.py:35": "model.py:37", "model.py:36": "model.py:38"}
    assert moved_lines(diff(old(0), old(2))) == expected
    assert moved_lines(diff(old(0), module(("sine", 37, "act"), ("tanh", 38, "act")))) == expected
