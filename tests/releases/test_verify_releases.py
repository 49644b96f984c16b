"""verify names the release that a dump agrees with, where nothing says which wrote it."""

from __future__ import annotations

import json
from pathlib import Path

from ..running import Run

TABLES = """HloModule jit_f, entry_computation_layout={(f32[8,4]{1,0})->f32[8,4]{0,1}}

FileNames
1 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

"""
PLAIN = """ENTRY %main (p: f32[8,4]) -> f32[4,8] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %t = f32[4,8]{1,0} transpose(%p), dimensions={1,0}, metadata={op_name="t" stack_frame_id=1}
}
"""
WRAPPED = """%wrapped_transpose_computation (param_0: f32[8,4]) -> f32[4,8] {
  %param_0 = f32[8,4]{1,0} parameter(0)
  ROOT %t = f32[4,8]{1,0} transpose(%param_0), dimensions={1,0}, metadata={op_name="t" stack_frame_id=1}
}

ENTRY %main (p: f32[8,4]) -> f32[4,8] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %wrapped_transpose = f32[4,8]{1,0} fusion(%p), kind=kLoop, calls=%wrapped_transpose_computation
}
"""
BARE = """ENTRY %main (p: f32[8,4]) -> f32[8,4] {
  ROOT %p = f32[8,4]{1,0} parameter(0), metadata={op_name="p" stack_frame_id=1}
}
"""


def corpus(folder: Path, after: str) -> Path:
    """Two programs: a transpose, which releases from 0.11 on wrap, and one that none changes."""
    for name, before, end in (("f", PLAIN, after), ("same", BARE, BARE)):
        case = folder / name
        case.mkdir()
        (case / "before.hlo").write_text(TABLES + before)
        (case / "after.hlo").write_text(TABLES + end)
    return folder


def test_the_release_that_agrees_is_named(tmp_path: Path, hlofuse: Run) -> None:
    corpus(tmp_path, PLAIN)
    found = hlofuse("verify", tmp_path)
    assert found.status == 0
    assert "agrees as XLA 0.10.2 (2 of 2); as 0.11.1: 1 of 2" in found.out
    document = json.loads(hlofuse("verify", tmp_path, "--format", "json").out)
    assert document["tried"][0] == {"releases": ["0.10.2"], "exact": 2, "compared": 2, "complete": True}
    assert {i["xla"]["release"] for i in document["inputs"]} == {"0.10.2"}
    assert "agrees as XLA 0.10.2" in hlofuse("verify", tmp_path, "--format", "markdown").out


def test_a_release_that_is_given_is_not_doubted(tmp_path: Path, hlofuse: Run) -> None:
    corpus(tmp_path, PLAIN)
    given = hlofuse("verify", tmp_path, "--xla", "0.11.1")
    assert (given.status, "agrees" in given.out) == (1, False)
    for case in ("f", "same"):
        (tmp_path / case / "hlofuse.json").write_text('{"schema": "hlofuse.stamp/1", "jaxlib": "0.11.1"}')
    stamped = hlofuse("verify", tmp_path)
    assert (stamped.status, "agrees" in stamped.out) == (1, False)


def test_others_are_tried_only_where_something_differs(tmp_path: Path, hlofuse: Run) -> None:
    document = json.loads(hlofuse("verify", corpus(tmp_path, WRAPPED), "--format", "json").out)
    assert (document["agrees"], document["tried"]) == (True, [])
