"""The fast path stays fast: what is unusual costs the grammar that piece and no more."""

from __future__ import annotations

import re

import pytest

from hlofuse.ir import HloParseError, parse_module
from hlofuse.ir.text.build import parse_by_grammar
from hlofuse.ir.text.computation_reader import GrammarFallback
from hlofuse.ir.text.patterns import FastPathMiss
from hlofuse.ir.text.reader import STRETCH, read_fast
from .same import differences


def long_module(odd: str, lines: int = 20_000, at: int | None = None) -> str:
    """A chain of additions with one line (or several) in the middle."""
    body = [
        f'  %add.{n} = f32[4]{{0}} add(%add.{n - 1}, %p), metadata={{op_name="a/{n}"}}'
        for n in range(1, lines)
    ]
    body.insert(lines // 2 if at is None else at, odd)
    return "\n".join([
        "HloModule long", "", "%same (x: f32[4]) -> f32[4] {", "  ROOT %x = f32[4]{0} parameter(0)", "}", "",
        "%sum (a: f32[], b: f32[]) -> f32[] {", "  %a = f32[] parameter(0)",
        "  %b = f32[] parameter(1)", "  ROOT %s = f32[] add(%a, %b)", "}", "",
        "ENTRY %main (p: f32[4]) -> f32[4] {", "  %p = f32[4]{0} parameter(0)",
        "  %add.0 = f32[4]{0} copy(%p)", *body, "}", "",
    ])  # fmt: skip


ODD = {
    "comment": "  %odd = f32[4]{0} /* why not */ negate(%p)",
    "trailing comment": "  %odd = f32[4]{0} negate(%p) // why not",
    "two on a line": "  %odd = f32[4]{0} negate(%p)   %odder = f32[4]{0} negate(%odd)",
    "over several lines": "  %odd = f32[4]{0} constant({\n    1, 2,\n    3, 4})",
    "unusual attribute": "  %odd = f32[4]{0} negate(%p), statistics={visualizing_index=0,utilization=5}",
    "other order": '  %odd = f32[4]{0} negate(%p), backend_config={"a":1}, metadata={op_name="x"}',
    "spaces": "  %odd  =  f32[4]{0}  negate( %p )",
    "no percent": "  odd = f32[4]{0} negate(p)",
    "dynamic shape": "  %odd = f32[<=4]{0} negate(%p)",
    "inferred shape": "  %odd = negate(%p)",
    "control": "  %odd = f32[4]{0} negate(%p), control-predecessors={%p}",
    "matrix": "  %odd = s32[2,2]{1,0} constant({ { 1, 2 }, { 3, 4 } })",
    "conditional on pred": "  %w = pred[] constant(true)\n  %odd = f32[4]{0} conditional(%w, %p, %p),"
    " true_computation=%same, false_computation=%same",
    "tab": "\t%odd = f32[4]{0} negate(%p)",
}


@pytest.mark.parametrize("name", ODD)
def test_one_odd_instruction(name: str) -> None:
    odd = ODD[name]
    text = long_module(odd)
    parts = GrammarFallback()
    module = read_fast(text, parts)
    assert parts.characters < len(odd) + 200
    assert len(module.entry) >= 20_001


@pytest.mark.parametrize("name", ODD)
def test_odd_instructions_read_as_by_the_grammar(name: str) -> None:
    text = long_module(ODD[name], lines=6)
    assert list(differences(parse_module(text), parse_by_grammar(text))) == []


def test_an_odd_heading() -> None:
    text = long_module("  %odd = f32[4]{0} negate(%p)").replace(
        "ENTRY %main (p: f32[4])", "ENTRY /* here */ %main (p: f32[4])"
    )
    parts = GrammarFallback()
    assert len(read_fast(text, parts).entry) == 20_002
    assert parts.characters < 200


def assert_needs_no_grammar(text: str) -> None:
    parts = GrammarFallback()
    module = read_fast(text, parts)
    assert parts.characters == 0
    assert list(differences(module, parse_by_grammar(text))) == []


@pytest.mark.parametrize("before", ["// by hand\n", "\n\n", "/* a\nb */ ", "  // RUN: opt %s\n\n"])
def test_comments_before_the_module(before: str) -> None:
    text = before + long_module("  %odd = f32[4]{0} negate(%p)", lines=6)
    assert_needs_no_grammar(text)


@pytest.mark.parametrize("odd", ["  // CHECK: add(", "", "\t// a\n\n  // b"])
def test_comments_between_instructions(odd: str) -> None:
    text = long_module(odd, lines=6)
    assert_needs_no_grammar(text)


@pytest.mark.parametrize(
    "line",
    [
        "  %odd = f32[4]{0} all-reduce(%p), replica_groups=[8,2]<=[2,8]T(1,0), to_apply=%sum",
        "  %odd = bf16[0]{0} constant({})",
        "  %odd = f32[] constant(-2.38197633e+38)",
    ],
)
def test_forms_of_published_dumps_need_no_grammar(line: str) -> None:
    layout = "entry_computation_layout={(f32[4]{0},f32[])->f32[4]{0}}"
    text = long_module(line, lines=6).replace("HloModule long", f"HloModule long, {layout}")
    assert_needs_no_grammar(text)


def test_a_sharding_is_checked_once_for_all_metadata() -> None:
    rows = "".join(
        f'  %o.{n} = f32[4]{{0}} negate(%p), sharding={{devices=[2]<=[2]}}, metadata={{op_name="{n}"}}\n'
        for n in range(50)
    )
    parts = GrammarFallback()
    read_fast(long_module(rows.rstrip("\n"), lines=6), parts)
    assert parts.characters == len(", sharding={devices=[2]<=[2]}")


PAIR = "(f32[4,8]{1,0:T(8,128)}, (s32[], bf16[2]{0}), /*index=2*/token[])"
OPERANDS_WITH_SHAPES = f"""HloModule old

%sum (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(f32[] %a, f32[] %b)
}}

ENTRY %main (p: {PAIR}, z: f32[]) -> f32[4] {{
  %p = {PAIR} parameter(0)
  %x = f32[4,8]{{1,0:T(8,128)}} get-tuple-element({PAIR} %p), index=0
  %t = (s32[], bf16[2]{{0}}) get-tuple-element({PAIR} %p), index=1
  %i = s32[] get-tuple-element((s32[], bf16[2]{{0}}) %t), index=0
  %z = f32[] parameter(1)
  %m = f32[4,8]{{1,0}} add(f32[4,8]{{1,0}} %x, f32[4,8]{{1,0:T(8,128)}} %x)
  %r = f32[4]{{0}} reduce(f32[4,8]{{1,0}} %m, f32[] %z), dimensions={{1}}, to_apply=%sum
  %u = (s32[], s32[], s32[], s32[], s32[], f32[]) tuple({"s32[] %i, " * 5}/*index=5*/f32[] %z)
  ROOT %n = f32[4]{{0}} negate(f32[4]{{0}} %r)
}}
"""  # fmt: skip


def test_operands_with_shapes() -> None:
    parts = GrammarFallback()
    module = read_fast(OPERANDS_WITH_SHAPES, parts)
    assert parts.characters == 0
    assert module.print_options.operand_shapes
    assert list(differences(module, parse_by_grammar(OPERANDS_WITH_SHAPES))) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("negate(f32[4]{0} %r)", "negate(f32[5]{0} %r)", "r is f32[4], not f32[5]"),
        ("add(f32[] %a, f32[] %b)", "add(f32[] %a, s32[] %b)", "b is f32[], not s32[]"),
        ("add(f32[] %a, f32[] %b)", "add(f32[] %a, f32[] %c)", "c is not defined"),
        ("(s32[], bf16[2]{0}) %t", "(s32[], bf16[3]{0}) %t", "t is (s32[], bf16[2]), not (s32[], bf16[3])"),
    ],
)
def test_operands_with_wrong_shapes(old: str, new: str, message: str) -> None:
    with pytest.raises(HloParseError, match=re.escape(message)):
        parse_module(OPERANDS_WITH_SHAPES.replace(old, new))


def test_comments_between_computations() -> None:
    text = long_module("  %odd = f32[4]{0} negate(%p)").replace(
        "\n\nENTRY", " // sum\n/* the\nentry */\nENTRY"
    )
    parts = GrammarFallback()
    assert len(read_fast(text, parts).entry) == 20_002
    assert parts.characters == 0


@pytest.mark.parametrize("at", [0, 1, 700, 19_998, 19_999])
def test_an_odd_line_at_the_edge_of_a_stretch(at: int) -> None:
    text = long_module("  %odd = f32[4]{0} negate( %p )", at=at)
    assert len(text) > 4 * STRETCH
    module = read_fast(text, GrammarFallback())
    names = [i.name for i in module.entry]
    assert names.index("odd") == at + 2
    assert [i.id for i in module.entry] == list(range(len(names)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("  %odd = f32[4]{0} negate(%nobody)", "nobody"),
        ("  %add.7 = f32[4]{0} negate(%p)", "add.7"),
        ("  %odd = f32[4]{0} negate(%p, %p)", "negate"),
        ("  %odd = f32[4]{0} negate(%p), dimensions={0}", "dimensions"),
        ("  %odd = f32[4]{0} broadcast(%p)", "dimensions"),
        ('  %odd = f32[4]{0} negate(%p), metadata={op_name="x"', ""),
        ("  %odd = f32[4]{0} nonsense(%p)", "nonsense"),
        ("  %odd = f99[4]{0} negate(%p)", ""),
        ("  %odd = f32[4]{0} reduce(%p, %p), dimensions={0}, to_apply=%later", "later"),
        ("  %p2 = f32[4]{0} parameter(3)", "parameter"),
    ],
)
def test_what_is_wrong_is_the_grammars_to_say(line: str, message: str) -> None:
    text = long_module(line, lines=40)
    with pytest.raises(FastPathMiss):
        read_fast(text, GrammarFallback())
    with pytest.raises(HloParseError) as hlofuse:
        parse_module(text)
    with pytest.raises(HloParseError) as grammars:
        parse_by_grammar(text)
    assert str(hlofuse.value) == str(grammars.value)
    assert message in str(hlofuse.value)


def test_names_shared_by_computations_are_made_unique_as_by_the_grammar() -> None:
    text = long_module("  %a = f32[4]{0} negate(%p)", lines=6)
    assert list(differences(parse_module(text), parse_by_grammar(text))) == []


def test_element_operands_are_one_instruction_for_each_path() -> None:
    text = """HloModule m

ENTRY %main (p: (f32[], (s32[], f32[]))) -> f32[] {
  %p = (f32[], (s32[], f32[])) parameter(0)
  %a = f32[] add(%p#0, %p#1#1)
  ROOT %b = f32[] subtract(%p#1#1, %a)
}
"""
    module = read_fast(text, GrammarFallback())
    assert [(i.name, i.opcode) for i in module.entry] == [
        ("p", "parameter"),
        ("p_0", "get-tuple-element"),
        ("p_1", "get-tuple-element"),
        ("p_1_1", "get-tuple-element"),
        ("a", "add"),
        ("b", "subtract"),
    ]
    assert list(differences(module, parse_by_grammar(text))) == []


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m\n\nENTRY %e (p: f32[4]) -> f32[4]// {\n  ROOT %p = f32[4]{0} parameter(0)\n}\n",
        "HloModule m\n\nENTRY %e {\n  ROOT %p = f32[4]{0}// parameter(0)\n}\n",
        "HloModule m, entry_computation_layout={()->}\n\nENTRY %e {\n  ROOT %p = f32[4]{0} parameter(0)\n}\n",
        "HloModule m\n\nENTRY %e {\n  ROOT %p = f32[4]{0} parameter([0)\n}\n",
    ],
)
def test_found_by_fuzzing(text: str) -> None:
    with pytest.raises(HloParseError):
        parse_by_grammar(text)
    with pytest.raises(HloParseError):
        parse_module(text)


def test_a_name_with_number_0_and_one_without_are_the_same_number() -> None:
    text = "HloModule m\n\nENTRY %e {\n  %p.0 = f32[] parameter(0)\n  ROOT %p = f32[] negate(%p.0)\n}\n"
    assert list(differences(parse_module(text), parse_by_grammar(text))) == []
    assert [i.name for i in parse_module(text).entry] == ["p.0", "p.1"]


def test_numbers_of_numbered_names_are_their_own() -> None:
    text = "HloModule m\n\nENTRY %e {\n  %p.1.0 = f32[] parameter(0)\n  ROOT %p.1 = f32[] negate(%p.1.0)\n}\n"
    assert [i.name for i in read_fast(text, GrammarFallback()).entry] == ["p.1.0", "p.1"]
    assert list(differences(parse_module(text), parse_by_grammar(text))) == []


@pytest.mark.parametrize("name", ["__x", "f32", "x.01", "true"])
def test_names_xla_would_not_keep_are_left_to_the_grammar(name: str) -> None:
    text = f"HloModule m\n\nENTRY %e {{\n  ROOT %{name} = f32[] parameter(0)\n}}\n"
    with pytest.raises(FastPathMiss):
        read_fast(text, GrammarFallback())
    with pytest.raises(FastPathMiss):
        read_fast(text.replace("HloModule m", "HloModule f32").replace(name, "p"), GrammarFallback())
