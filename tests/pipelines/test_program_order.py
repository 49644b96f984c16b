"""The order of the program, as the ids in XLA's first dump have it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.program_order import in_program_order


def order(*lines: str) -> list[str]:
    *first, last = lines
    body = "\n".join([*(f"  {line}" for line in first), f"  ROOT {last}"])
    module = parse_module(f"HloModule m\n\nENTRY %main {{\n  %p = f32[8]{{0}} parameter(0)\n{body}\n}}\n")
    operations = [x for x in module.entry.post_order() if x.opcode not in ("parameter", "tuple")]
    return [x.name for x in in_program_order(operations)]


def test_one_root_goes_by_its_numbers() -> None:
    lines = [f"%mul.{k}.0 = f32[8]{{0}} multiply(%p, %p)" for k in (7, 6)]
    root = "%tuple.1.0 = (f32[8]{0}, f32[8]{0}) tuple(%mul.7.0, %mul.6.0)"
    assert order(*lines, root) == ["mul.6.0", "mul.7.0"]


def test_what_is_needed_once_stands_before_its_user() -> None:
    """The slice of the second step comes behind the first step, though nothing but its number says so."""
    lines = [
        "%slice.3.0 = f32[4]{0} slice(%p), slice={[0:4]}",
        "%slice.4.0 = f32[4]{0} slice(%p), slice={[4:8]}",
        "%exp.1.0 = f32[4]{0} exponential(%slice.3.0)",
        "%add.1.0 = f32[4]{0} add(%exp.1.0, %slice.4.0)",
    ]
    assert order(*lines) == ["slice.3.0", "exp.1.0", "slice.4.0", "add.1.0"]


def test_what_a_needed_one_waits_for_by_its_number_stands_beside_it() -> None:
    """The cosine is written between the products, but the sum needs both of them."""
    lines = [
        "%neg.1.0 = f32[8]{0} negate(%p)",
        "%mul.2.0 = f32[8]{0} multiply(%neg.1.0, %p)",
        "%cos.1.0 = f32[8]{0} cosine(%p)",
        "%mul.1.0 = f32[8]{0} multiply(%p, %p)",
        "%exp.1.0 = f32[8]{0} exponential(%mul.1.0)",
        "%add.1.0 = f32[8]{0} add(%mul.2.0, %exp.1.0)",
    ]
    root = "%tuple.1.0 = (f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(%mul.2.0, %cos.1.0, %add.1.0)"
    expected = ["cos.1.0", "mul.1.0", "neg.1.0", "mul.2.0", "exp.1.0", "add.1.0"]
    assert order(*lines, root) == expected


def test_what_another_one_was_found_equal_to_may_come_behind_its_reader() -> None:
    """The program had a product of its own for the first sum: CSE kept the later one, which it met first."""
    lines = [
        "%mul.4.0 = f32[8]{0} multiply(%p, %p)",
        "%mul.2.0 = f32[8]{0} multiply(%mul.4.0, %p)",
        "%exp.1.0 = f32[8]{0} exponential(%mul.2.0)",
        "%mul.3.0 = f32[8]{0} multiply(%exp.1.0, %p)",
        "%add.1.0 = f32[8]{0} add(%mul.4.0, %mul.3.0)",
    ]
    assert order(*lines) == ["mul.2.0", "exp.1.0", "mul.3.0", "mul.4.0", "add.1.0"]


def test_what_reads_no_operation_stands_right_before_its_reader() -> None:
    """The second convert waits for its number: it is met where the first one is needed."""
    lines = [
        "%convert_element_type.2.0 = f32[8]{0} convert(%p)",
        "%mul.1.0 = f32[8]{0} multiply(%p, %p)",
        "%convert_element_type.1.0 = f32[8]{0} convert(%mul.1.0)",
        "%exp.1.0 = f32[8]{0} exponential(%convert_element_type.1.0)",
        "%sub.1.0 = f32[8]{0} subtract(%convert_element_type.2.0, %exp.1.0)",
    ]
    expected = ["mul.1.0", "convert_element_type.1.0", "exp.1.0", "convert_element_type.2.0", "sub.1.0"]
    assert order(*lines) == expected


def test_constants_are_in_front_by_their_numbers() -> None:
    lines = [
        "%exp.1.0 = f32[8]{0} exponential(%p)",
        "%constant.2.0 = f32[] constant(2)",
        "%constant.3.0 = f32[] constant(3)",
        "%mul.1.0 = f32[8]{0} broadcast(%constant.3.0), dimensions={}",
        "%add.1.0 = f32[8]{0} broadcast(%constant.2.0), dimensions={}",
        "%mul.2.0 = f32[8]{0} multiply(%exp.1.0, %mul.1.0)",
        "%add.2.0 = f32[8]{0} add(%mul.2.0, %add.1.0)",
    ]
    placed = [name for name in order(*lines) if not name.startswith("constant")]
    assert placed == ["add.1.0", "mul.1.0", "exp.1.0", "mul.2.0", "add.2.0"]


def test_numbers_prevail_over_data_that_a_pass_turned_around() -> None:
    lines = ["%mul.9.0 = f32[8]{0} multiply(%p, %p)", "%mul.8.0 = f32[8]{0} multiply(%mul.9.0, %p)"]
    assert order(*lines) == ["mul.8.0", "mul.9.0"]


REDUCER = """HloModule m

%region {
  %a = f32[] parameter(0)
  %i = s32[] parameter(1)
  %b = f32[] parameter(2)
  %j = s32[] parameter(3)
  %gt.1.0 = pred[] compare(%a, %b), direction=GT
  %select_n.1.0 = f32[] select(%gt.1.0, %a, %b)
  %lt.1.0 = pred[] compare(%i, %j), direction=LT
  %or.1.0 = pred[] or(%gt.1.0, %lt.1.0)
  %select_n.2.0 = s32[] select(%or.1.0, %i, %j)
  ROOT %tuple.1.0 = (f32[], s32[]) tuple(%select_n.1.0, %select_n.2.0)
}

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %q = s32[8]{0} parameter(1)
  %x = f32[] parameter(2)
  %k = s32[] parameter(3)
  ROOT %reduce = (f32[], s32[]) reduce(%p, %q, %x, %k), dimensions={0}, to_apply=%region
}
"""


def in_region(text: str) -> list[str]:
    region = parse_module(text).entry.root.called_computations[0]
    return [x.name for x in in_program_order([x for x in region if x.opcode != "parameter"])]


def test_what_is_largest_and_where_are_chosen_last() -> None:
    choices = ["select_n.1.0", "select_n.2.0", "tuple.1.0"]
    assert in_region(REDUCER) == ["gt.1.0", "lt.1.0", "or.1.0", *choices]


def test_elsewhere_what_is_chosen_first_stands_behind_what_it_needs() -> None:
    text = REDUCER.replace("ROOT %reduce = (f32[], s32[]) reduce(%p, %q, %x, %k), dimensions={0}", "CALL")
    call = "ROOT %call = (f32[], s32[]) call(%x, %k, %x, %k)"
    assert in_region(text.replace("CALL", call))[:2] == ["gt.1.0", "select_n.1.0"]


def test_places_in_the_source_tell_which_operand_came_first() -> None:
    """A quotient that a choice may drop is worked out before what the choice is made by, for each of two."""

    def at(number: int) -> str:
        return f'metadata={{op_name="jit(f)/op" stack_frame_id={number}}}'

    lines = [
        line
        for k in (1, 2)
        for line in (
            f"%eq.{k}.0 = pred[8]{{0}} compare(%p, %p), direction=EQ, {at(8)}",
            f"%div.{k}.0 = f32[8]{{0}} divide(%p, %p), {at(7)}",
            f"%sel.{k}.0 = f32[8]{{0}} select(%eq.{k}.0, %p, %div.{k}.0), {at(9)}",
        )
    ]
    root = "%tuple.1.0 = (f32[8]{0}, f32[8]{0}) tuple(%sel.1.0, %sel.2.0)"
    assert order(*lines, root) == ["div.1.0", "eq.1.0", "sel.1.0", "div.2.0", "eq.2.0", "sel.2.0"]


def test_what_is_needed_once_stands_beside_what_else_is_needed_there() -> None:
    """The text has all of the first sum in front, as that is read first; numbers have it in the end."""
    lines = [
        "%lt.1.0 = f32[8]{0} floor(%p)",
        "%sqrt.1.0 = f32[8]{0} sqrt(%p)",
        "%add.3.0 = f32[8]{0} add(%lt.1.0, %sqrt.1.0)",
        "%neg.1.0 = f32[8]{0} negate(%p)",
        "%add.1.0 = f32[8]{0} add(%neg.1.0, %p)",
        "%exp.1.0 = f32[8]{0} exponential(%p)",
        "%add.2.0 = f32[8]{0} add(%exp.1.0, %p)",
    ]
    root = "%tuple.1.0 = (f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(%add.3.0, %add.1.0, %add.2.0)"
    expected = ["neg.1.0", "add.1.0", "exp.1.0", "add.2.0", "lt.1.0", "sqrt.1.0", "add.3.0"]
    assert order(*lines, root) == expected


def test_what_is_needed_by_lower_numbers_of_its_root_came_behind_them() -> None:
    """The program converts the matrix again in the end: CSE met that one first."""
    lines = [
        "%convert_element_type.5.0 = f32[8]{0} convert(%p)",
        "%exp.1.0 = f32[8]{0} exponential(%convert_element_type.5.0)",
        "%convert_element_type.1.0 = f32[8]{0} convert(%exp.1.0)",
        "%sin.1.0 = f32[8]{0} sine(%convert_element_type.1.0)",
        "%convert_element_type.2.0 = f32[8]{0} convert(%sin.1.0)",
        "%sub.1.0 = f32[8]{0} subtract(%convert_element_type.5.0, %convert_element_type.2.0)",
    ]
    assert order(*lines) == [
        "exp.1.0",
        "convert_element_type.1.0",
        "sin.1.0",
        "convert_element_type.2.0",
        "convert_element_type.5.0",
        "sub.1.0",
    ]


def test_a_number_is_used_where_what_a_pass_made_of_its_user_is_needed() -> None:
    """The first product became a choice: its number is still in front of those that are used sooner."""
    lines = [
        "%constant.1.0 = f32[] constant(2)",
        "%constant.2.0 = f32[] constant(1)",
        "%sub.2.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}",
        "%neg.1.0 = f32[8]{0} subtract(%sub.2.0, %p)",
        "%mul.1.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}",
        "%select.1 = f32[8]{0} maximum(%mul.1.0, %neg.1.0)",
        "%exp.1.0 = f32[8]{0} exponential(%select.1)",
        "%add.2.0 = f32[8]{0} broadcast(%constant.2.0), dimensions={}",
        "%sum.1.0 = f32[8]{0} add(%exp.1.0, %add.2.0)",
    ]
    *first, last = lines
    body = "\n".join([*(f"  {line}" for line in first), f"  ROOT {last}"])
    module = parse_module(f"HloModule m\n\nENTRY %main {{\n  %p = f32[8]{{0}} parameter(0)\n{body}\n}}\n")
    operations = [x for x in module.entry.post_order() if x.name not in ("p", "select.1")]
    names = [x.name for x in in_program_order(operations)]
    assert names.index("mul.1.0") < names.index("sub.2.0")
