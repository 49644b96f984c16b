"""How ReshapeMover and AlgebraicSimplifier take turns, as XLA's dumps of each pass have it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.simplification_rounds import in_rounds


def rounds(*lines: str, kept: str = "") -> list[list[str]]:
    """Names by turns, of all but parameters and what is `kept`, names of any number."""
    body = "\n".join(f"  {line}" for line in lines)
    text = "HloModule m\n\nENTRY %main {\n  %p = f32[8]{0} parameter(0)\n"
    text += f"  %q = f32[8]{{0}} parameter(1)\n{body}\n}}\n"
    entry = parse_module(text).entry
    made = [x for x in entry if x.opcode != "parameter" and x.name not in kept.split()]
    return [[x.name for x in turn] for turn in in_rounds(made) if turn]


def test_one_operation_of_a_chain_a_turn() -> None:
    """Two variances of a batch normalization: first both sums, then both roots, then what reads those."""
    assert rounds(
        "%add.0 = f32[8]{0} add(%p, %p)",
        "%rsqrt.0 = f32[8]{0} rsqrt(%add.0)",
        "%mul.0 = f32[2,8]{1,0} broadcast(%rsqrt.0), dimensions={1}",
        "%add.1 = f32[8]{0} add(%q, %q)",
        "%rsqrt.1 = f32[8]{0} rsqrt(%add.1)",
        "%mul.1 = f32[2,8]{1,0} broadcast(%rsqrt.1), dimensions={1}",
        "ROOT %sub.0 = f32[2,8]{1,0} subtract(%mul.0, %mul.1)",
        kept="sub.0",
    ) == [["add.0", "add.1"], ["rsqrt.0", "rsqrt.1"], ["mul.0", "mul.1"]]


def test_what_reads_the_same_is_moved_as_places_in_the_source_are_numbered() -> None:
    """Two variances of a batch normalization, of which averages are kept before each is used."""
    average, used = 'metadata={op_name="mul" stack_frame_id=3}', 'metadata={op_name="add" stack_frame_id=4}'
    assert rounds(
        "%sub.0 = f32[8]{0} subtract(%p, %p)",
        f"%add.0 = f32[8]{{0}} add(%sub.0, %sub.0), {used}",
        "%sub.1 = f32[8]{0} subtract(%q, %q)",
        f"%add.1 = f32[8]{{0}} add(%sub.1, %sub.1), {used}",
        f"%mul.0 = f32[8]{{0}} multiply(%sub.0, %sub.0), {average}",
        f"ROOT %mul.1 = f32[8]{{0}} multiply(%sub.1, %sub.1), {average}",
    ) == [["sub.0", "sub.1"], ["mul.0", "add.0", "mul.1", "add.1"]]


def test_a_reshape_that_a_broadcast_reads_stays_until_that_has_taken_it() -> None:
    """The square of a sum of exponentials in the gradient of a softmax."""
    assert rounds(
        "%div.0 = f32[2,8]{1,0} broadcast(%p), dimensions={1}",
        "%mul.0 = f32[8]{0} multiply(%p, %p)",
        "%neg.0 = f32[8]{0} negate(%q)",
        "%neg.1 = f32[2,8]{1,0} broadcast(%neg.0), dimensions={1}",
        "ROOT %mul.1 = f32[2,8]{1,0} broadcast(%mul.0), dimensions={1}",
    ) == [["neg.0"], ["div.0", "neg.1"], ["mul.0"], ["mul.1"]]


def test_a_number_is_spread_once_more_behind_what_was_moved() -> None:
    """The mean of squares and a small number beside it."""
    assert rounds(
        "%c = f32[] constant(1)",
        "%broadcast.1 = f32[8]{0} broadcast(%c), dimensions={}",
        "%add.0 = f32[8]{0} add(%p, %broadcast.1)",
        "ROOT %rsqrt.0 = f32[8]{0} rsqrt(%add.0)",
        kept="c",
    ) == [["add.0"], ["broadcast.1"], ["rsqrt.0"]]


def test_what_reads_a_remainder_of_a_folded_number_is_of_the_same_turn() -> None:
    """AlgebraicSimplifier makes both: of what it made itself no reshape is in the way."""
    metadata = 'metadata={op_name="jit(f)/jit(remainder)/rem"}'
    assert rounds(
        "%i = s32[8]{0} convert(%p)",
        f"%and.2.0 = s32[8]{{0}} and(%i, %i), {metadata}",
        "%eq.4.0 = s32[8,4]{1,0} broadcast(%and.2.0), dimensions={0}",
        "%iota.8.0 = s32[8,4]{1,0} iota(), iota_dimension=1",
        "ROOT %eq.8.0 = pred[8,4]{1,0} compare(%eq.4.0, %iota.8.0), direction=EQ",
        kept="eq.8.0",
    )[-1] == ["and.2.0", "eq.4.0", "iota.8.0"]


def test_a_sum_in_a_loop_that_only_looks_folded_was_moved() -> None:
    """One more than a row: the dimension that the loop goes over had been dropped from that."""
    path = 'metadata={op_name="jit(f)/while/body/eval_jaxpr/'
    for source, expected in (
        ("dynamic_slice", [["add.4.0"], ["broadcast.2.0"]]),
        ("other", [["broadcast.2.0", "add.4.0"]]),
    ):
        text = f"""HloModule m

ENTRY %main {{
  %s = f32[3,8]{{1,0}} parameter(0)
  %i = s32[] constant(0)
  %row = f32[1,8]{{1,0}} dynamic-slice(%s, %i, %i), dynamic_slice_sizes={{1,8}}, {path}{source}"}}
  %one = f32[] constant(1)
  %broadcast.2.0 = f32[1,8]{{1,0}} broadcast(%one), dimensions={{}}, {path}add"}}
  ROOT %add.4.0 = f32[1,8]{{1,0}} add(%row, %broadcast.2.0), {path}add"}}
}}
"""
        made = [x for x in parse_module(text).entry if x.name in ("broadcast.2.0", "add.4.0")]
        assert [[x.name for x in turn] for turn in in_rounds(made) if turn] == expected


def test_the_quotient_of_a_variance_is_a_product_when_what_it_is_divided_by_is_a_number() -> None:
    """And its number, which the mean is multiplied by as well, does not keep the mean from being moved."""
    text = """HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main {
  %p = f32[4,8]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %square.0.0 = f32[4,8]{1,0} multiply(%p, %p), metadata={op_name="jit(f)/jit(_var)/NAME"}
  %first = f32[4]{0} reduce(%p, %zero), dimensions={1}, to_apply=%sum
  %second = f32[4]{0} reduce(%square.0.0, %zero), dimensions={1}, to_apply=%sum
  %c = f32[] constant(0.125)
  %broadcast.7.0 = f32[4]{0} broadcast(%c), dimensions={}
  %multiply.1.0 = f32[4]{0} multiply(%first, %broadcast.7.0), metadata={op_name="jit(f)/div"}
  %multiply.2.0 = f32[4]{0} multiply(%second, %broadcast.7.0), metadata={op_name="jit(f)/jit(_var)/div"}
  ROOT %add.0.0 = f32[4]{0} add(%multiply.1.0, %multiply.2.0)
}
"""
    for name, expected in (
        ("square", [["multiply.1.0"], ["broadcast.7.0", "multiply.2.0"]]),
        ("other", [["multiply.1.0", "multiply.2.0"], ["broadcast.7.0"]]),
    ):
        entry = parse_module(text.replace("NAME", name)).entry
        made = [x for x in entry if x.name in ("broadcast.7.0", "multiply.1.0", "multiply.2.0")]
        assert [[x.name for x in turn] for turn in in_rounds(made) if turn] == expected


def test_a_number_is_spread_as_soon_as_its_first_reader_was_moved() -> None:
    """A mean in front, and one of a later turn that reads the same number since."""
    assert rounds(
        "%c = f32[] constant(1)",
        "%broadcast.1 = f32[8]{0} broadcast(%c), dimensions={}",
        "%add.0 = f32[8]{0} add(%p, %broadcast.1)",
        "%rsqrt.0 = f32[8]{0} rsqrt(%add.0)",
        "ROOT %add.1 = f32[8]{0} add(%rsqrt.0, %broadcast.1)",
        kept="c",
    ) == [["add.0"], ["broadcast.1"], ["rsqrt.0"], ["add.1"]]


def test_what_the_program_has_is_moved_ahead_of_what_was_simplified() -> None:
    assert rounds(
        '%multiply.1 = f32[8]{0} multiply(%p, %p), metadata={op_name="jit(f)/div"}',
        'ROOT %neg.1 = f32[8]{0} negate(%q), metadata={op_name="jit(f)/neg"}',
    ) == [["neg.1", "multiply.1"]]


def test_a_sum_with_a_number_that_was_subtracted_first_comes_behind_what_was_moved() -> None:
    """ReshapeMover runs in between; where an index is checked and counted from the end."""
    assert rounds(
        "%one = s32[] constant(-1)",
        "%other = s32[] constant(4)",
        "%i = s32[] constant(3)",
        '%add.1 = s32[] add(%i, %one), metadata={op_name="jit(f)/sub"}',
        '%add.2 = s32[] add(%i, %other), metadata={op_name="jit(f)/add"}',
        '%lt.1 = pred[8]{0} compare(%p, %q), direction=LT, metadata={op_name="jit(f)/lt"}',
        "ROOT %t = (s32[], s32[], pred[8]{0}) tuple(%add.1, %add.2, %lt.1)",
        kept="one other i add.1 t",
    ) == [["lt.1"], ["add.2"]]


def test_what_is_spread_beside_what_is_moved_is_rearranged_behind_it() -> None:
    """A row less its maximum, where the row had dimensions of size one."""
    assert rounds(
        "%row = f32[2,1,8]{2,1,0} parameter(2)",
        "%sub.1 = f32[2,1,8]{2,1,0} broadcast(%p), dimensions={2}",
        "ROOT %sub.0 = f32[2,1,8]{2,1,0} subtract(%row, %sub.1)",
    ) == [["sub.0"], ["sub.1"]]


def test_what_spreads_a_matrix_is_rearranged_first() -> None:
    assert rounds(
        "%row = f32[2,1,8]{2,1,0} parameter(2)",
        "%m = f32[2,8]{1,0} parameter(3)",
        "%sub.1 = f32[2,1,8]{2,1,0} broadcast(%m), dimensions={0,2}",
        "ROOT %sub.0 = f32[2,1,8]{2,1,0} subtract(%row, %sub.1)",
    ) == [["sub.1"], ["sub.0"]]


def test_what_has_a_higher_number_than_something_later_is_as_late() -> None:
    """A number that is spread for what nothing has to be there for, but behind another one."""
    lines = (
        "%one = f32[] constant(1)",
        "%two = f32[] constant(2)",
        "%broadcast.4.0 = f32[8]{0} broadcast(%two), dimensions={}",
        "%add.0 = f32[8]{0} add(%p, %p)",
        "%sub.0 = f32[8]{0} subtract(%add.0, %q)",
        "%broadcast.3.0 = f32[8]{0} broadcast(%one), dimensions={}",
        "%mul.0 = f32[8]{0} multiply(%sub.0, %broadcast.3.0)",
        "%mul.1 = f32[8]{0} multiply(%q, %broadcast.4.0)",
        "ROOT %div.0 = f32[8]{0} divide(%mul.0, %mul.1)",
    )
    first, *_ = rounds(*lines, kept="one two div.0 broadcast.4.0 mul.1")
    assert first == ["add.0"]
    turns = rounds(*lines, kept="one two div.0")
    assert [turn for turn in turns if "broadcast.3.0" in turn or "broadcast.4.0" in turn] == [
        ["broadcast.4.0", "broadcast.3.0"]
    ]
