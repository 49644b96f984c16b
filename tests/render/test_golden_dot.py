"""DOT of small modules: `pytest --update-golden tests/render` writes it anew, to be reviewed."""

from __future__ import annotations

import pytest

from hlofuse.compilation import compile
from hlofuse.ir import parse_module
from hlofuse.render import Drawing, render
from ..running import Golden
from .modules import FUSED, LOOP, UNFUSED, chain


def draw(case: str) -> Drawing:
    if case == "fused":
        return render(parse_module(FUSED))
    if case == "unfused_both":
        return render(compile(parse_module(UNFUSED)), "both")
    if case == "loop":
        return render(parse_module(LOOP), legend=False)
    if case == "focus":
        return render(parse_module(FUSED), focus="safe", radius=1, legend=False)
    return render(parse_module(chain(60, scopes=3)), max_nodes=20, open=("part2",), legend=False)


@pytest.mark.parametrize("case", ["fused", "unfused_both", "loop", "focus", "collapsed"])
def test_dot_is_as_reviewed(case: str, golden: Golden) -> None:
    dot = draw(case).dot
    golden(f"render/{case}.dot", dot)
    assert dot == draw(case).dot, "drawn twice, it differs"
