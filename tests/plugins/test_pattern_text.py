"""The text of a pattern: what it may say, and what is said about a wrong one."""

from __future__ import annotations

import pytest

from hlofuse.ir.errors import HloParseError
from hlofuse.plugins.pattern import parse_pattern
from hlofuse.plugins.pattern.nodes import Alias, Hole, Operation, ShapePattern


def test_a_text_is_read() -> None:
    graph = parse_pattern(
        """
        // queries
        %q = T[...,S,64] parameter(0)
        k = f32[?,8]{1,0} parameter(1), metadata={op_name="x"}
        ROOT s = (T[S], s8[?]) custom-call(%q, k), custom_call_target="a,b)", dims={ 0, -1 }
        s = q2
        q2 = negate(q)
        """
    ).graph
    assert graph.root == "s"
    assert graph.holes == {"q": 0, "k": 1}
    assert graph.definitions["q"] == (Hole(0, ShapePattern("T", (), ("S", 64))),)
    assert graph.definitions["k"] == (Hole(1, ShapePattern("f32", (None, 8), None, (1, 0))),)
    call, other = graph.definitions["s"]
    assert isinstance(call, Operation)
    assert call.attributes == {"custom_call_target": '"a,b)"', "dims": "{0,-1}"}
    assert call.shape is not None
    assert call.shape.parts == (ShapePattern("T", ("S",)), ShapePattern("s8", (None,)))
    assert other == Alias("q2")


def test_the_last_computation_or_the_entry_is_the_pattern() -> None:
    add = "add.1 (a: f32[], b: f32[]) -> f32[] {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
    add += " ROOT c = f32[] add(a, b)\n}\n"
    main = "main {\n x = parameter(0)\n z = constant(0)\n ROOT r = reduce(x, z), to_apply=add.1\n}\n"
    for text in (add + main, "ENTRY " + main + add, "HloModule m\n\n" + add + "ENTRY " + main):
        pattern = parse_pattern(text)
        assert pattern.graph.root == "r"
        assert list(pattern.called) == ["add.1"]


WRONG = {
    "x = parameter(0)\ny = f32[8] multipl(x, x)": (2, 12, "no operation multipl; did you mean multiply?"),
    "x = parameter(0)\ny = negate(z)": (2, 12, "there is no z here"),
    "x = parameter(0)\ny = f99[8] negate(x)": (2, 5, "there is no element type f99"),
    "x = parameter(0)\ny = f32[a] negate(x)": (2, 9, "expected a size"),
    "x = parameter(0)\ny = f32[...,...] negate(x)": (2, 13, "may stand once"),
    "x = parameter(0)\ny = negate(x": (2, 13, "expected ')' to end the operands"),
    "x = parameter(0)\ny = negate(x) dimensions={0}": (2, 15, "expected ', name=value'"),
    "x = parameter(0)\ny = transpose(x), dimensions={0": (2, 30, "expected '}' to close"),
    "x = parameter(0)\ny = negate(x), a=1, a=2": (2, 21, "a is said already"),
    "x = parameter(one)\ny = negate(x)": (1, 15, "expected the parameter's number"),
    "x = parameter(1)\ny = negate(x)": (1, 1, "numbered from 0 without gaps"),
    "x = parameter(0)\nw = parameter(0)\ny = add(x, w)": (2, 1, "parameter(0) is x already"),
    "x = parameter(0)\nx = negate(x)": (2, 1, "x is a parameter already"),
    "x = negate(y)\ny = negate(x)": (2, 1, "y depends on itself"),
    "x = parameter(0)\nw = negate(x)\ny = negate(x)": (2, 1, "nothing uses w"),
    "x = parameter(0)": (1, 1, "the root is a parameter"),
    "x = parameter(0)\nROOT y = negate(x)\nROOT w = negate(y)": (3, 6, "y is the root already"),
    "main {\nx = parameter(0)\ny = negate(x)\n": (3, 14, "expected '}' to end the computation"),
    "x0 = parameter(0)\n" + "".join(f"x{k + 1} = tanh(x{k})\n" for k in range(210)): (
        11,
        1,
        "at most 200 operations deep",
    ),
    "": (1, 1, "at least one instruction"),
    "// nothing\n": (1, 1, "at least one instruction"),
    "main {\nx = negate(\n": (2, 12, "expected ')'"),
    "x = f32[8]{a} parameter(0)\ny = negate(x)": (1, 11, "expected a layout"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_with_its_place(text: str) -> None:
    line, column, message = WRONG[text]
    with pytest.raises(HloParseError) as caught:
        parse_pattern(text, "<pattern 1 of X001>")
    error = caught.value
    assert message in error.message
    assert (error.line, error.column) == (line, column)
    assert str(error).startswith(f"<pattern 1 of X001>:{line}:{column}: error: ")
