"""Which is the last id of the program, where the root is its own and where a pass made that anew."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.ages_of_program import is_made_by_pass, last_of_program

from ..running import find
from .users.lists import named

_PROGRAM = f"""HloModule m

ENTRY %main {{
  %p = f32[8]{{0}} parameter(0)
  %sin.1 = f32[8]{{0}} sine(%p){named("sin")}
  %exp.1 = f32[8]{{0}} exponential(%sin.1){named("jit(g)/exp")}
  %log.1 = f32[8]{{0}} log(%exp.1){named("jit(g)/log")}
  %cos.1 = f32[8]{{0}} cosine(%log.1){named("cos")}
  %mul.1 = f32[8]{{0}} multiply(%cos.1, %sin.1){named("mul")}
  ROOT %tuple.2.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.1, %cos.1)
}}
"""


@pytest.mark.parametrize(
    ("ids", "last", "made"),
    [
        ("p sin.1 cos.1 tuple.2.0 exp.1 log.1 mul.1", "tuple.2.0", "mul.1"),  # the program's own
        ("p sin.1 cos.1 exp.1 log.1 mul.1 tuple.2.0", "cos.1", "mul.1"),  # made for copied results
        ("p sin.1 exp.1 log.1 cos.1 mul.1 tuple.2.0", "tuple.2.0", ""),  # ids were given anew, operands first
    ],
)
def test_a_root_behind_what_calls_brought_in_was_made_by_a_pass(ids: str, last: str, made: str) -> None:
    """A call brings in what it has in one run, and what reads its result is older."""
    module = parse_module(_PROGRAM)
    for x in module.entry:
        x.id = ids.split().index(x.name)
    root = find(module, "tuple.2.0")
    assert last_of_program(root) == ids.split().index(last)
    assert [x.name for x in module.entry if is_made_by_pass(x)] == made.split()


def test_an_operation_with_the_name_of_a_pass_may_be_of_the_program() -> None:
    """It is the sum that was left of `(x + y) + 0`, to which the pass had named the outer one."""
    text = _PROGRAM.replace("%mul.1 = f32[8]{0} multiply", "%add.9 = f32[8]{0} add").replace("mul.1", "add.9")
    module = parse_module(text.replace('/mul"', '/add_any"'))
    ids = "p sin.1 add.9 cos.1 exp.1 log.1 tuple.2.0".split()
    for x in module.entry:
        x.id = ids.index(x.name)
    assert last_of_program(find(module, "tuple.2.0")) == ids.index("cos.1")
