"""Damaged, endless and deep texts: a module or an `HloParseError`, soon, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlofuse.ir import HloParseError, Module, parse_module
from hlofuse.ir.text.build import parse_by_grammar
from .cases import cases

TEXTS = [c.text for c in cases() if c.hlofuse == "accept"]
PARTS = st.one_of(
    st.sampled_from(list("{}()[]<>=,:;#*%\"'/\\\n\t \0-+.?~")),
    st.sampled_from(
        ["/*", "*/", "//", "->", "<=", "...", "ROOT ", "ENTRY ", "f32[2]{0}", "%x", "x=", "1e5", "0_0"]
    ),
    st.text(max_size=3),
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A good text with a few cuts, insertions, repetitions and pieces of other texts."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 20)))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            text = text[:start] + text[stop:]
        elif kind == 1:
            text = text[:start] + draw(PARTS) + text[start:]
        elif kind == 2:
            text = text[:stop] + text[start:stop] * draw(st.integers(1, 3)) + text[stop:]
        else:
            other: str = draw(st.sampled_from(TEXTS))
            at = draw(st.integers(0, len(other)))
            text = text[:start] + other[at : at + 40] + text[stop:]
    return text


def outcome(text: str, by_grammar: bool) -> str:
    """accept or reject; anything but `HloParseError` goes up and fails the test."""
    rejected: HloParseError | None = None
    try:
        module = (parse_by_grammar if by_grammar else parse_module)(text)
    except HloParseError as error:
        rejected = error
    if rejected is not None:
        assert rejected.message
        assert rejected.line >= 1
        assert rejected.column >= 1
        return "reject"
    assert isinstance(module, Module)
    for instruction in module.instructions():
        str(instruction.shape)
    return "accept"


@settings(max_examples=300, deadline=None)
@given(damaged())
def test_damaged_texts(text: str) -> None:
    outcome(text, by_grammar=True)
    outcome(text, by_grammar=False)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    outcome(text, by_grammar=True)
    outcome("HloModule m\n\nENTRY e {\n  ROOT x = " + text + "\n}\n", by_grammar=True)


HEAD = "HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT x = "
N = 5_000
DEEP = {
    "tuples": HEAD + "(" * N + "f32[]" + ")" * N + " parameter(1)\n}\n",
    "open tuples": HEAD + "(" * N,
    "instructions": HEAD + "f32[] " + "negate(" * N + "p" + ")" * N + "\n}\n",
    "open instructions": HEAD + "f32[] " + "negate(" * N,
    "computations": HEAD + "f32[] call(p), to_apply=" + "{ ROOT y = f32[] call(p), to_apply=" * N,
    "computations, closed": HEAD
    + "f32[] call(p), to_apply="
    + "{ q = f32[] parameter(0) ROOT y = f32[] call(q), to_apply=" * N
    + "e"
    + "}" * N,
    "literal": HEAD + "f32[1] constant(" + "{" * N + "1" + "}" * N + ")\n}\n",
    "tuple literal": HEAD + "f32[1] constant(" + "(" * N + "1" + ")" * N + ")\n}\n",
    "shardings": HEAD + "f32[] parameter(1), sharding=" + "{" * N + "replicated" + "}" * N + "\n}\n",
    "json": HEAD + "f32[] parameter(1), backend_config=" + "{" * N + "}" * N + "\n}\n",
    "open json": HEAD + "f32[] parameter(1), backend_config=" + "{" * N,
    "origins": HEAD + "f32[] parameter(1), origin={" + "(" * N + '{"a"}' + ")" * N + "}\n}\n",
    "layouts": HEAD + "f32[]" + "{:P(f32[]" * N,
    "buffers": HEAD + "b(" * N + "f32[]" + ")" * N + " parameter(1)\n}\n",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_texts(name: str) -> None:
    outcome(DEEP[name], by_grammar=True)
    outcome(DEEP[name], by_grammar=False)


def test_nesting_as_deep_as_xla_allows() -> None:
    text = HEAD + "f32[] " + "negate(" * 4000 + "p" + ")" * 4000 + "\n}\n"
    module = parse_by_grammar(text)
    assert len(module.entry) == 4001


LONG = {
    "name": HEAD + "f32[] negate(" + "p" * 500_000 + ")\n}\n",
    "digits": HEAD + "f32[" + "1" * 500_000 + "] parameter(1)\n}\n",
    "fraction": HEAD + "f32[] constant(0." + "1" * 500_000 + ")\n}\n",
    "exponent": HEAD + "f32[] constant(1e" + "1" * 500_000 + ")\n}\n",
    "string": HEAD + 'f32[] parameter(1), metadata={op_name="' + "a\\n" * 200_000 + '"}\n}\n',
    "open string": HEAD + 'f32[] parameter(1), metadata={op_name="' + "a" * 500_000 + "\n}\n",
    "comment": HEAD + "/*" + "*" * 500_000 + "/ f32[] parameter(1)\n}\n",
    "open comment": HEAD + "/*" + "* /" * 200_000,
    "comments": HEAD + "/* */" * 50_000 + "f32[] parameter(1)\n}\n",
    "openings of comments": HEAD + "/*" * 200_000,
    "spaces": HEAD + " " * 500_000 + "f32[] parameter(1)\n}\n",
    "layout lookahead": HEAD + ("f32[]" + "{" + " " * 50) * 2_000,
    "dimensions": HEAD + "f32[" + ",".join(["1"] * 20_000) + "] parameter(1)\n}\n",
    "labels": HEAD + "f32[] convolution(p, p), dim_labels=" + "0b" * 100_000 + "\n}\n",
    "padding": HEAD + "f32[] pad(p, p), padding=" + "x".join(["0_0"] * 50_000) + "\n}\n",
    "list": HEAD + "f32[] transpose(p), dimensions={" + ",".join(["0"] * 20_000) + "}\n}\n",
    "elements": HEAD + "f32[] negate(p" + "#0" * 20_000 + ")\n}\n",
    "braces": "HloModule m " + "e { " * 20_000,
    "keys": HEAD
    + "f32[] parameter(1), frontend_attributes={"
    + ",".join(f'a{i}="b"' for i in range(20_000))
    + "}\n}\n",
}


@pytest.mark.parametrize("name", LONG)
def test_long_texts_are_read_alike_both_ways(name: str) -> None:
    """Anything quadratic would not come back for minutes; `benchmarks/fuzz.py` has the times."""
    assert outcome(LONG[name], by_grammar=True) == outcome(LONG[name], by_grammar=False)


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hlofuse.ir.text import grammar

    blocked = tmp_path / "file"
    blocked.write_text("")
    for computation in (blocked / "below", tmp_path / "damaged"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(computation))
        if computation.name == "damaged":
            (computation / "hlofuse").mkdir(parents=True)
            version = f"{sys.version_info[0]}.{sys.version_info[1]}"
            (computation / "hlofuse" / f"hlo-grammar-py{version}.lark-cache").write_bytes(b"not a pickle")
        grammar.parser.cache_clear()
        assert str(grammar.parse_shape("f32[2]{0}")) == "f32[2]{0}"
    grammar.parser.cache_clear()
