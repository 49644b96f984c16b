"""What was inlined tells the call's origin as well as its own, as in XLA's dumps."""

from __future__ import annotations

import pytest

from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.control_flow.call_graph import CallInliner
from hlofuse.trace import Recorder

TABLES = """FileNames
1 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=2}
2 {file_name_id=1 function_name_id=1 line=2 end_line=2 column=1 end_column=2}
3 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}
3 {file_location_id=3 parent_frame_id=2}
"""


def _module(of_call: str, of_inner: str) -> Module:
    return parse_module(f"""HloModule jit_f

{TABLES}

body {{
  q = f32[8]{{0}} parameter(0), metadata={{op_name="q"}}
  ROOT inner = f32[8]{{0}} tanh(q){of_inner}
}}

turn {{
  t = f32[8]{{0}} parameter(0)
  ROOT turned = f32[8]{{0}} call(t), to_apply=body, metadata={{op_name="turn" stack_frame_id=2}}
}}

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  ROOT c = f32[8]{{0}} call(p), to_apply=turn{of_call}
}}
""")


def _inlined(module: Module) -> Instruction:
    CallInliner().run(module, Recorder())
    assert module.entry.root.opcode == "tanh"
    return module.entry.root


@pytest.mark.parametrize(
    ("outer", "inner", "name"),
    [
        ("jit(f)/jit(g)", "tanh", "jit(f)/jit(g)/turn/tanh"),
        ("jit(f)/", "/tanh/", "jit(f)/turn/tanh"),
        ("jit(f)/jit(g)", "", "jit(f)/jit(g)/turn"),
        ("", "turn/tanh", "turn/tanh"),
        ("x" * 1018, "tanh", "turn/tanh"),
    ],
)
def test_the_name_goes_behind_those_of_the_calls_unless_it_has_them_or_gets_too_long(
    outer: str, inner: str, name: str
) -> None:
    """XLA's limit is 1,024 characters; a name that begins with that of the call stays as it is."""
    module = _module(
        f', metadata={{op_name="{outer}"}}', f', metadata={{op_name="{inner}"}}' if inner else ""
    )
    assert _inlined(module).op_name == name


@pytest.mark.parametrize(
    ("of_call", "of_inner", "lines"),
    [(1, 1, [1, 2, 1]), (3, 1, [1, 2, 3, 1]), (1, 0, [2, 1]), (0, 3, [3, 1, 2]), (0, 2, [2])],
)
def test_frames_are_called_out_of_the_frames_of_calls(of_call: int, of_inner: int, lines: list[int]) -> None:
    frames = (f', metadata={{op_name="f" stack_frame_id={n}}}' if n else "" for n in (of_call, of_inner))
    module = _module(*frames)
    before = print_module(module)
    simplified = copy_module(module)
    root = _inlined(simplified)
    traced = simplified.stack_frames.trace(root.attributes["metadata"].stack_frame_id)
    assert [place.line for place in traced] == lines
    assert print_module(module) == before
    repeated_call = parse_module(print_module(simplified))
    assert repeated_call.stack_frames == simplified.stack_frames
    assert repeated_call.entry.root.attributes["metadata"] == root.attributes["metadata"]
    frozen = parse_module(print_module(simplified).replace("model.py", "<frozen runpy>"))
    assert frozen.source_of(frozen.entry.root) is None  # a line of Python's own
