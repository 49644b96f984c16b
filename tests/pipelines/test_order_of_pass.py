"""The order in which one pass made instructions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hlofuse.ir import parse_module
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.order_of_pass import in_order_of_pass
from hlofuse.pipelines.names import name_before_renaming

MADE = st.lists(
    st.tuples(st.sampled_from(["multiply", "negate", "broadcast"]), st.integers(0, 30)),
    min_size=1,
    unique=True,
)


def made(names: list[tuple[str, int]]) -> list[Instruction]:
    body = "\n".join(f"  %{root}.{number}.0 = f32[8]{{0}} copy(%p)" for root, number in names)
    root = "  ROOT %p = f32[8]{0} parameter(0)\n"
    text = f"HloModule m\n\nENTRY %main {{\n{root}{body}\n}}\n"
    return [x for x in parse_module(text).entry if x.opcode == "copy"]


def names(order: list[Instruction]) -> list[str]:
    return [x.name.removesuffix(".0") for x in order]


def test_the_text_tells_where_numbers_do_not() -> None:
    order = in_order_of_pass(made([("negate", 1), ("multiply", 1), ("negate", 2)]), [], frozenset())
    assert names(order) == ["negate.1", "multiply.1", "negate.2"]


def test_one_out_of_place_is_moved_and_not_the_many() -> None:
    text = [("negate", 1), ("multiply", 2), ("negate", 2), ("multiply", 3), ("multiply", 4), ("multiply", 1)]
    order = in_order_of_pass(made(text), [], frozenset())
    assert names(order) == ["negate.1", "multiply.1", "multiply.2", "negate.2", "multiply.3", "multiply.4"]


NEEDED = """HloModule m

ENTRY %main {
  %p = f32[8]{0} parameter(0)
  %tanh.2.0 = f32[8]{0} tanh(%p)
  %multiply.5.0 = f32[8]{0} multiply(%tanh.2.0, %p)
  ROOT %tanh.1.0 = f32[8]{0} tanh(%multiply.5.0)
}
"""


def test_of_two_that_may_be_out_of_place_none_is_put_ahead_of_what_it_reads() -> None:
    text = [x for x in parse_module(NEEDED).entry if x.opcode != "parameter"]
    assert names(in_order_of_pass(text, [], frozenset())) == ["multiply.5", "tanh.1", "tanh.2"]


def test_numbers_of_the_front_end_tell_nothing() -> None:
    both = made([("multiply", 2), ("multiply", 1)])
    assert names(in_order_of_pass(both, [], frozenset(both))) == ["multiply.2", "multiply.1"]
    assert names(in_order_of_pass(both, both[::-1], frozenset(both))) == ["multiply.1", "multiply.2"]


@given(MADE)
def test_all_are_there_and_numbers_grow(names: list[tuple[str, int]]) -> None:
    text = made(names)
    order = in_order_of_pass(text, [], frozenset())
    assert sorted(order, key=text.index) == text
    for root in {root for root, _ in names}:
        numbers = [n.number for n in map(name_before_renaming, order) if n.root == root]
        assert numbers == sorted(numbers)


EXPANDED = """HloModule m

ENTRY %main {
  %p = s64[] parameter(0)
  %q = s64[] parameter(1)
  %compare.9.0 = pred[] compare(%p, %q), direction=LT, metadata={op_name="rem"}
  %negate.1.0 = s64[] negate(%p), metadata={op_name="rem"}
  %select.1.0 = s64[] select(%compare.9.0, %negate.1.0, %p), metadata={op_name="rem"}
  %compare.7.0 = pred[] compare(%select.1.0, %p), direction=LT
  %compare.8.0 = pred[] compare(%select.1.0, %q), direction=LT
  ROOT %select.2.0 = s64[] select(%compare.8.0, %p, %select.1.0)
}
"""


def test_what_an_operation_was_expanded_into_is_moved_as_a_whole() -> None:
    expanded = [x for x in parse_module(EXPANDED).entry if x.opcode != "parameter"]
    apart = in_order_of_pass(expanded, [], frozenset())
    assert names(apart) == ["negate.1", "select.1", "compare.7", "compare.8", "compare.9", "select.2"]
    whole = in_order_of_pass(expanded, [], frozenset(), expanded=True)
    assert names(whole) == ["compare.7", "compare.8", "compare.9", "negate.1", "select.1", "select.2"]
