"""Which bitcasts are as young as a turn of AlgebraicSimplifier, whatever their numbers, and which turn."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.bitcasts import in_order_of_making
from hlofuse.pipelines.likely_ids.merged_bitcasts import in_order_of_old_text
from hlofuse.pipelines.likely_ids.reduced_bitcasts import gives_back_ones_of, had_ones_dropped_since
from hlofuse.pipelines.likely_ids.windows_of_bitcasts import windows_of
from hlofuse.pipelines.names import number_in_name

_SUM = """%sum {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add.0 = f32[] add(%a, %b)
}"""
_NAMED = ', metadata={op_name="jit(f)/x"}'
_GEMM = 'custom_call_target="__cublas$gemm"'


def in_order(body: str, normalized: Collection[str] = ()) -> list[str]:
    """The numbers of the bitcasts of an entry, in the order of their ages."""
    module = parse_module(f"HloModule m\n\n{_SUM}\n\nENTRY %main {{\n{body}\n}}\n")
    bitcasts = [x for x in module.entry if x.opcode == "bitcast"]
    made = in_order_of_making(bitcasts, frozenset(x for x in module.entry if x.name in normalized))
    return [x.name.removeprefix("bitcast.").removesuffix(".0") for turn in made.values() for x in turn]


def reduce(name: str, shape: str, operand: str, dimension: str) -> str:
    return f"  %{name} = f32[{shape}] reduce(%{operand}, %zero), dimensions={{{dimension}}}, to_apply=%sum\n"


def test_an_operand_of_which_more_than_batches_changes_is_merged_in_the_next_round() -> None:
    """AlgebraicSimplifier goes through the computation again; what reads the product it had met."""
    body = f"""  %p = f32[4,32,16] parameter(0)
  %q = f32[4,2,16,16] parameter(1)
  %bitcast.1.0 = f32[64,32] bitcast(%p){_NAMED}
  %bitcast.90.0 = f32[8,16,16] bitcast(%p){_NAMED}
  %bitcast.91.0 = f32[8,16,16] bitcast(%q){_NAMED}
  %custom-call.1 = (f32[8,16,16], s8[64]) custom-call(%bitcast.90.0, %bitcast.91.0), {_GEMM}
  %get-tuple-element.1 = f32[8,16,16] get-tuple-element(%custom-call.1), index=0
  %bitcast.2.0 = f32[4,512] bitcast(%get-tuple-element.1){_NAMED}
  ROOT %tuple.1.0 = (f32[64,32], f32[4,512]) tuple(%bitcast.1.0, %bitcast.2.0)"""
    assert in_order(body) == ["1", "91", "2", "90"]


@pytest.mark.parametrize(
    ("given", "normalized", "order"),
    [
        ("f32[1,8,2]", ["negate.1.0"], ["3", "2"]),
        ("f32[1,8,2]", [], ["2", "3"]),
        ("f32[2,8]", ["negate.1.0"], ["2", "3"]),
        ("f32[8,2,1]", ["negate.1.0"], ["2", "3"]),
        ("f32[1,1,16]", ["negate.1.0"], ["2", "3"]),
    ],
    ids=["laid out otherwise", "as it lies", "without ones", "as reductions keep them", "of one dimension"],
)
def test_what_reads_an_operation_in_another_layout_with_dimensions_of_size_one_was_two(
    given: str, normalized: list[str], order: list[str]
) -> None:
    without_ones = given.replace("1,1,", "").replace("[1,", "[").replace(",1]", "]")
    body = f"""  %p = {given} parameter(0)
  %negate.1.0 = {given} negate(%p)
  %bitcast.2.0 = {without_ones} bitcast(%negate.1.0){_NAMED}
  %bitcast.3.0 = f32[16,1] bitcast(%p){_NAMED}
  ROOT %tuple.1.0 = ({given}) tuple(%negate.1.0)"""
    assert in_order(body, normalized) == order


def test_what_convolutions_give_is_read_through_another_order_of_dimensions() -> None:
    body = f"""  %p = f32[4,8,1,1] parameter(0)
  %conv = (f32[4,8,1,1], u8[0]) custom-call(%p), custom_call_target="__cudnn$convForward"
  %get-tuple-element.1 = f32[4,8,1,1] get-tuple-element(%conv), index=0
  %bitcast.1.0 = f32[4,8] bitcast(%get-tuple-element.1){_NAMED}
  %bitcast.2.0 = f32[32] bitcast(%p){_NAMED}
  ROOT %tuple.1.0 = (f32[4,8], f32[32]) tuple(%bitcast.1.0, %bitcast.2.0)"""
    assert in_order(body) == ["2", "1"]


def test_what_layout_normalization_left_as_it_was_is_older_than_what_was_merged() -> None:
    """Of the merged ones that comes first which a broadcast read that reads its source today."""
    body = f"""  %p = f32[8,4]{{0,1}} parameter(0)
  %q = f32[4,8] parameter(1)
  %bitcast.1.0 = f32[32] bitcast(%q){_NAMED}
  %negate.1.0 = f32[4,8] negate(%q)
  %broadcast.1.0 = f32[4,8,2] broadcast(%negate.1.0), dimensions={{0,1}}
  %bitcast.40.0 = f32[2,2,8] bitcast(%q)
  %bitcast.60.0 = f32[4,8,1] bitcast(%negate.1.0)
  %bitcast.80.0 = f32[4,8] bitcast(%p)
  ROOT %tuple.1.0 = (f32[32], f32[4,8,2], f32[2,2,8], f32[4,8,1], f32[4,8]) \
tuple(%bitcast.1.0, %broadcast.1.0, %bitcast.40.0, %bitcast.60.0, %bitcast.80.0)"""
    assert in_order(body) == ["1", "80", "60", "40"]


def test_transpositions_of_ones_become_bitcasts_a_round_later() -> None:
    body = f"""  %p = f32[1,1,8,4] parameter(0)
  %bitcast.1.0 = f32[32] bitcast(%p){_NAMED}
  %bitcast.90.0 = f32[8,4,1,1] bitcast(%p)
  %bitcast.40.0 = f32[2,16] bitcast(%p)
  ROOT %tuple.1.0 = (f32[32], f32[8,4,1,1], f32[2,16]) tuple(%bitcast.1.0, %bitcast.90.0, %bitcast.40.0)"""
    assert in_order(body) == ["1", "40", "90"]


def test_in_its_last_turn_the_simplifier_merges_in_the_order_of_the_text() -> None:
    """What it does not merge had been there: an operand laid out otherwise, dimensions as they lie."""
    body = (
        """  %p = f32[4,8,16] parameter(0)
  %q = f32[16,64] parameter(1)
  %zero = f32[] constant(0)
  %bitcast.1.0 = f32[512] bitcast(%p)
"""
        + reduce("reduce.1.0", "", "bitcast.1.0", "0")
        + "  %bitcast.9.0 = f32[16,32]{0,1} bitcast(%p)\n"
        + "  %bitcast.3.0 = f32[2,16,16] bitcast(%p)\n"
        + reduce("reduce.2.0", "2,16", "bitcast.3.0", "1")
        + reduce("reduce.3.0", "16", "reduce.2.0", "0")
        + """  %bitcast.8.0 = f32[64,16]{0,1} bitcast(%q)
  %call = f32[16,32] custom-call(%bitcast.9.0, %bitcast.8.0), custom_call_target="x"
  ROOT %tuple.1.0 = (f32[], f32[16], f32[16,32]) tuple(%reduce.1.0, %reduce.3.0, %call)"""
    )
    assert in_order(body) == ["1", "8", "9", "3"]


@pytest.mark.parametrize(
    ("target", "order"),
    [("__cublas$gemm", ["1", "8", "3"]), ("x", ["1", "3", "8"])],
    ids=["cublas", "triton"],
)
def test_where_triton_may_be_used_what_was_put_around_reductions_is_merged_before_more_is(
    target: str, order: list[str]
) -> None:
    """[4,2] was [4,1,2] as the program has it, ReductionDegenerateDimRemover put a bitcast behind it."""
    body = (
        f"""  %p = f32[4,1,8,2] parameter(0)
  %q = f32[4,16] parameter(1)
  %zero = f32[] constant(0)
  %bitcast.1.0 = f32[64] bitcast(%p){_NAMED}
  %bitcast.7.0 = f32[4,8,2] bitcast(%p)
"""
        + reduce("reduce.1.0", "4,2", "bitcast.7.0", "1")
        + f"  %bitcast.3.0 = f32[2,4] bitcast(%reduce.1.0){_NAMED}\n"
        + "  %bitcast.8.0 = f32[64] bitcast(%q)\n"
        + reduce("reduce.2.0", "", "bitcast.8.0", "0")
        + f"""  %call = f32[64] custom-call(%q), custom_call_target="{target}"
  ROOT %tuple.1.0 = (f32[64], f32[2,4], f32[], f32[64]) \
tuple(%bitcast.1.0, %bitcast.3.0, %reduce.2.0, %call)"""
    )
    found = in_order(body)
    assert [n for n in found if n != "7"] == order


def test_operands_of_products_are_in_the_order_of_numbers_where_the_text_has_another() -> None:
    """Reshapes become bitcasts in the first round, which is when they are numbered."""
    body = f"""  %p = f32[4,2,32,16] parameter(0)
  %bitcast.1.0 = f32[64,64] bitcast(%p){_NAMED}
  %bitcast.91.0 = f32[8,32,16] bitcast(%p){_NAMED}
  %bitcast.90.0 = f32[8,32,16] bitcast(%p){_NAMED}
  %custom-call.1 = (f32[8,32,32], s8[64]) custom-call(%bitcast.91.0, %bitcast.90.0), {_GEMM}
  %get-tuple-element.1 = f32[8,32,32] get-tuple-element(%custom-call.1), index=0
  ROOT %tuple.1.0 = (f32[64,64], f32[8,32,32]) tuple(%bitcast.1.0, %get-tuple-element.1)"""
    assert in_order(body) == ["1", "90", "91"]


@pytest.mark.parametrize(
    ("layout", "order"), [("{1,0,2}", ["2", "1"]), ("{2,1,0}", ["1", "2"])], ids=["otherwise", "default"]
)
def test_what_reads_a_gather_in_another_layout_was_two(layout: str, order: list[str]) -> None:
    body = f"""  %p = f32[8,4,2] parameter(0)
  %i = s32[8,1] parameter(1)
  %gather.1.0 = f32[8,4,2]{layout} gather(%p, %i), offset_dims={{1,2}}, collapsed_slice_dims={{0}}, \
start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,4,2}}
  %bitcast.1.0 = f32[2,32] bitcast(%gather.1.0){_NAMED}
  %bitcast.2.0 = f32[64] bitcast(%p){_NAMED}
  ROOT %tuple.1.0 = (f32[2,32], f32[64]) tuple(%bitcast.1.0, %bitcast.2.0)"""
    assert in_order(body) == order


def test_what_nothing_reads_any_more_was_met_with_what_reads_the_same() -> None:
    body = """  %p = f32[8,4] parameter(0)
  %bitcast.1.0 = f32[4,8] bitcast(%p)
  %bitcast.2.0 = f32[32] bitcast(%p)
  %negate.1.0 = f32[4,8] negate(%bitcast.1.0)
  %bitcast.3.0 = f32[2,16] bitcast(%p)
  ROOT %tuple.1.0 = (f32[32], f32[4,8], f32[2,16]) tuple(%bitcast.2.0, %negate.1.0, %bitcast.3.0)
  %bitcast.4.0 = f32[4,8] bitcast(%p)
  %bitcast.5.0 = f32[16,2] bitcast(%p)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    found = in_order_of_old_text([x for x in entry if x.opcode == "bitcast"])
    assert [x.name[8] for x in found] == ["1", "2", "4", "3", "5"]


@pytest.mark.parametrize("given", ["f32[2,4,1]", "f32[2,4]"], ids=["with ones", "without"])
def test_a_reduction_gives_back_the_ones_that_a_merged_bitcast_dropped(given: str) -> None:
    body = (
        f"""  %p = {given} parameter(0)
  %zero = f32[] constant(0)
  %bitcast.1.0 = f32[2,4] bitcast(%p)
"""
        + reduce("reduce.1.0", "4", "bitcast.1.0", "0")
        + "  ROOT %bitcast.2.0 = f32[1,4] bitcast(%reduce.1.0)"
    )
    entry = parse_module(f"HloModule m\n\n{_SUM}\n\nENTRY %main {{\n{body}\n}}\n").entry
    dropping = next(x for x in entry if x.name == "bitcast.1.0")
    assert gives_back_ones_of(entry.root, {dropping}) == (given == "f32[2,4,1]")
    assert not gives_back_ones_of(entry.root, set())


def test_a_reduction_that_keeps_its_dimension_gives_back_no_other() -> None:
    body = (
        """  %p = f32[2,4,1] parameter(0)
  %zero = f32[] constant(0)
  %bitcast.3.0 = f32[2,4] bitcast(%p)
"""
        + reduce("reduce.1.0", "2", "bitcast.3.0", "1")
        + "  ROOT %bitcast.2.0 = f32[2,1] bitcast(%reduce.1.0)"
    )
    entry = parse_module(f"HloModule m\n\n{_SUM}\n\nENTRY %main {{\n{body}\n}}\n").entry
    assert not had_ones_dropped_since(entry.root)


@pytest.mark.parametrize(
    ("reduction", "read", "is_late"),
    [("reduce.1.0", "3", True), ("reduce_sum.1.0", "3", False), ("reduce.1.0", "1", False)],
    ids=["made anew", "of the program", "behind a reshape of the program"],
)
def test_a_reduction_without_its_ones_was_made_anew(reduction: str, read: str, is_late: bool) -> None:
    """The program's bears its name, and what the program drops is there before what is behind it."""
    body = (
        f"""  %p = f32[4,1,1] parameter(0)
  %zero = f32[] constant(0)
  %bitcast.{read}.0 = f32[4] bitcast(%p)
"""
        + reduce(reduction, "", f"bitcast.{read}.0", "0")
        + f"  ROOT %bitcast.2.0 = f32[1] bitcast(%{reduction})"
    )
    entry = parse_module(f"HloModule m\n\n{_SUM}\n\nENTRY %main {{\n{body}\n}}\n").entry
    assert had_ones_dropped_since(entry.root) == is_late


@pytest.mark.parametrize(("number", "order"), [("90", ["1", "40", "90"]), ("30", ["1", "30", "40"])])
def test_what_had_been_a_transposition_of_a_reshape_is_merged_in_the_last_round(
    number: str, order: list[str]
) -> None:
    """Numbered behind LayoutNormalization, it has the metadata of the transposition."""
    body = f"""  %p = f32[4,8] parameter(0)
  %bitcast.1.0 = f32[32] bitcast(%p){_NAMED}
  %bitcast.{number}.0 = f32[4,8,1,1] bitcast(%p){_NAMED}
  %bitcast.20.0 = f32[16,2] bitcast(%p)
  %bitcast.40.0 = f32[2,16] bitcast(%p)
  ROOT %tuple.1.0 = (f32[32], f32[4,8,1,1], f32[16,2], f32[2,16]) \
tuple(%bitcast.1.0, %bitcast.{number}.0, %bitcast.20.0, %bitcast.40.0)"""
    assert [n for n in in_order(body) if n != "20"] == order


def test_products_too_small_for_a_library_are_as_those_that_are_computed_by_one() -> None:
    body = f"""  %p = f32[4,2,3,3] parameter(0)
  %q = f32[8,3,3] parameter(1)
  %bitcast.2.0 = f32[24,3] bitcast(%p){_NAMED}
  %bitcast.90.0 = f32[8,3,3] bitcast(%p){_NAMED}
  %dot.1 = f32[8,3,3] dot(%bitcast.90.0, %q), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, \
lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
  %bitcast.1.0 = f32[4,18] bitcast(%dot.1){_NAMED}
  ROOT %tuple.1.0 = (f32[24,3], f32[4,18]) tuple(%bitcast.2.0, %bitcast.1.0)"""
    assert in_order(body) == ["2", "90", "1"]


def test_what_reads_a_transposed_reduction_is_merged_behind_calls_and_before_more_is_put_around_others() -> (
    None
):
    body = (
        f"""  %p = f32[4,8,2] parameter(0)
  %q = f32[8,2] parameter(1)
  %zero = f32[] constant(0)
  %bitcast.1.0 = f32[64] bitcast(%p){_NAMED}
"""
        + reduce("reduce.1.0", "4,8", "p", "2")
        + f"""  %transpose.1.0 = f32[8,4] transpose(%reduce.1.0), dimensions={{1,0}}
  %bitcast.30.0 = f32[2,4,4] bitcast(%transpose.1.0)
  %bitcast.70.0 = f32[32,2] bitcast(%p){_NAMED}
  %call = f32[32,8] custom-call(%bitcast.70.0, %q), {_GEMM}
  %bitcast.80.0 = f32[1,4,8] bitcast(%reduce.1.0){_NAMED}
  ROOT %tuple.1.0 = (f32[64], f32[2,4,4], f32[32,8], f32[1,4,8]) \
tuple(%bitcast.1.0, %bitcast.30.0, %call, %bitcast.80.0)"""
    )
    assert in_order(body) == ["1", "70", "30", "80"]


def test_between_a_product_and_what_groups_it_for_a_reduction_there_was_a_bitcast_of_the_program() -> None:
    body = (
        f"""  %p = f32[16,16] parameter(0)
  %q = f32[4,64] parameter(1)
  %zero = f32[] constant(0)
  %call = (f32[16,16], s8[64]) custom-call(%p, %p), {_GEMM}
  %get-tuple-element.1 = f32[16,16] get-tuple-element(%call), index=0
  %bitcast.5.0 = f32[256] bitcast(%get-tuple-element.1){_NAMED}
"""
        + reduce("reduce.1.0", "", "bitcast.5.0", "0")
        + f"  %bitcast.6.0 = f32[256] bitcast(%q){_NAMED}\n"
        + reduce("reduce.2.0", "", "bitcast.6.0", "0")
        + "  ROOT %tuple.1.0 = (f32[], f32[]) tuple(%reduce.1.0, %reduce.2.0)"
    )
    assert in_order(body) == ["6", "5"]


@pytest.mark.parametrize(
    ("made", "order"), [("4,32", ["3", "2"]), ("32,4", ["2", "3"])], ids=["kept", "reduced"]
)
def test_what_is_reduced_was_two_bitcasts_if_dimensions_that_are_kept_were_joined(
    made: str, order: list[str]
) -> None:
    """ReductionDimensionGrouper joins those that are reduced."""
    body = (
        "  %p = f32[4,8,4] parameter(0)\n"
        "  %q = f32[8,2,3] parameter(1)\n"
        "  %zero = f32[] constant(0)\n"
        f"  %bitcast.2.0 = f32[{made}] bitcast(%p)\n"
        + reduce("reduce.2.0", made.split(",")[1], "bitcast.2.0", "0")
        + "  %bitcast.3.0 = f32[8,6] bitcast(%q)\n"
        + reduce("reduce.3.0", "8", "bitcast.3.0", "1")
        + f"  ROOT %tuple.1.0 = (f32[{made.split(',')[1]}], f32[8]) tuple(%reduce.2.0, %reduce.3.0)"
    )
    assert in_order(body) == order


@pytest.mark.parametrize(("others", "order"), [("", ["2", "1", "9"]), (", f32[4,32]", ["1", "2", "9"])])
def test_what_else_reads_the_bitcast_tells_that_it_was_there_before_the_reduction_was_normalized(
    others: str, order: list[str]
) -> None:
    read = ", %negate.1.0" if others else ""
    body = f"""  %p = f32[4,8,4] parameter(0)
  %q = f32[8,2,3] parameter(1)
  %zero = f32[] constant(0)
  %bitcast.1.0 = f32[4,32] bitcast(%p)
  %negate.1.0 = f32[4,32] negate(%bitcast.1.0)
  %reduce.1.0 = f32[32] reduce(%bitcast.1.0, %zero), dimensions={{0}}, to_apply=%sum
  %bitcast.2.0 = f32[8,6] bitcast(%q)
  %sine.2.0 = f32[8,6] sine(%bitcast.2.0)
  %bitcast.9.0 = f32[48] bitcast(%sine.2.0)
  %reduce.9.0 = f32[] reduce(%bitcast.9.0, %zero), dimensions={{0}}, to_apply=%sum
  ROOT %tuple.1.0 = (f32[32], f32[]{others}) tuple(%reduce.1.0, %reduce.9.0{read})"""
    body = body if others else body.replace("  %negate.1.0 = f32[4,32] negate(%bitcast.1.0)\n", "")
    assert in_order(body) == order


def test_what_scatter_simplifier_reshapes_tells_nothing_of_the_rounds_before_it() -> None:
    body = f"""  %p = f32[1,1,8,4] parameter(0)
  %i = s32[1,1] parameter(1)
  %negate.1.0 = f32[1,1,8,4] negate(%p)
  %bitcast.1.0 = f32[32] bitcast(%p){_NAMED}
  %bitcast.90.0 = f32[8,4,1,1] bitcast(%p)
  %bitcast.95.0 = f32[1,32] bitcast(%p)
  %scatter.1 = f32[32] scatter(%bitcast.1.0, %i, %bitcast.95.0), to_apply=%sum, \
update_window_dims={{1}}, inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1
  %bitcast.2.0 = f32[1,8,4] bitcast(%negate.1.0){_NAMED}
  ROOT %tuple.1.0 = (f32[32], f32[8,4,1,1], f32[1,8,4]) tuple(%scatter.1, %bitcast.90.0, %bitcast.2.0)"""
    assert in_order(body, ["negate.1.0"]) == ["1", "2", "90", "95"]


@pytest.mark.parametrize(
    ("target", "order"),
    [("x", ["21", "22", "20"]), ('x", backend_config="__triton_gemm', ["21", "20", "22"])],
    ids=["not used", "triton"],
)
def test_where_triton_may_be_used_what_drops_dimensions_of_size_one_is_merged_before_others_are_joined(
    target: str, order: list[str]
) -> None:
    """LayoutNormalization had put a bitcast behind the negation."""
    body = (
        """  %p = f32[4,1,8] parameter(0)
  %q = f32[4,8] parameter(1)
  %zero = f32[] constant(0)
  %negate.1.0 = f32[4,1,8] negate(%p)
  %bitcast.20.0 = f32[4,8] bitcast(%negate.1.0)
"""
        + reduce("reduce.1.0", "4", "bitcast.20.0", "1")
        + "  %bitcast.21.0 = f32[4,8] bitcast(%p)\n"
        + reduce("reduce.2.0", "4", "bitcast.21.0", "1")
        + "  %bitcast.22.0 = f32[32] bitcast(%q)\n"
        + reduce("reduce.3.0", "", "bitcast.22.0", "0")
        + f'  %call = f32[4,8] custom-call(%q, %q), custom_call_target="{target}"\n'
        + "  ROOT %tuple.1.0 = (f32[4], f32[4], f32[], f32[4,8]) "
        "tuple(%reduce.1.0, %reduce.2.0, %reduce.3.0, %call)"
    )
    assert in_order(body, ["negate.1.0"]) == order


def test_where_many_numbers_are_missing_layout_normalization_has_begun() -> None:
    """Between those of ReshapeDecomposer few are; those that were merged keep the metadata of reshapes."""
    numbers = {1: _NAMED, 2: _NAMED, 61: "", 64: _NAMED, 66: _NAMED, 70: ""}
    lines = "\n".join(f"  %bitcast.{n}.0 = f32[4,{n}] bitcast(%p.{n}){told}" for n, told in numbers.items())
    given = "\n".join(f"  %p.{n} = f32[{4 * n}] parameter({k})" for k, n in enumerate(numbers))
    module = parse_module(f"HloModule m\n\nENTRY %main {{\n{given}\n{lines}\n  ROOT %t = () tuple()\n}}\n")
    bitcasts = [x for x in module.entry if x.opcode == "bitcast"]
    assert windows_of(bitcasts, {x: number_in_name(x) for x in bitcasts}).normalization == 61


def test_what_splits_a_dimension_and_is_reduced_was_merged_whatever_else_reads_it() -> None:
    body = """  %p = f32[4,32] parameter(0)
  %q = f32[8,2,3] parameter(1)
  %zero = f32[] constant(0)
  %bitcast.1.0 = f32[4,8,4] bitcast(%p)
  %negate.1.0 = f32[4,8,4] negate(%bitcast.1.0)
  %reduce.1.0 = f32[8,4] reduce(%bitcast.1.0, %zero), dimensions={0}, to_apply=%sum
  %bitcast.2.0 = f32[8,6] bitcast(%q)
  %sine.2.0 = f32[8,6] sine(%bitcast.2.0)
  %bitcast.9.0 = f32[48] bitcast(%sine.2.0)
  %reduce.9.0 = f32[] reduce(%bitcast.9.0, %zero), dimensions={0}, to_apply=%sum
  ROOT %tuple.1.0 = (f32[8,4], f32[], f32[4,8,4]) tuple(%reduce.1.0, %reduce.9.0, %negate.1.0)"""
    assert in_order(body) == ["2", "1", "9"]


@pytest.mark.parametrize(
    ("made", "order"), [("f32[8,2]", ["3", "2"]), ("f32[16]", ["2", "3"])], ids=["drops ones", "joins"]
)
def test_what_is_joined_is_copied_into_the_default_layout(made: str, order: list[str]) -> None:
    """So there is no bitcast behind the copy, a transposition today, that could be merged."""
    body = f"""  %p = f32[1,2,8] parameter(0)
  %transpose.1.0 = f32[1,8,2] transpose(%p), dimensions={{0,2,1}}
  %bitcast.2.0 = {made} bitcast(%transpose.1.0){_NAMED}
  %bitcast.3.0 = f32[16,1] bitcast(%p){_NAMED}
  ROOT %tuple.1.0 = (f32[16,1]) tuple(%bitcast.3.0)"""
    assert in_order(body, ["transpose.1.0"]) == order


@pytest.mark.parametrize(
    ("shape", "order"), [("f32[64]", ["3", "9"]), ("f32[8,8]", ["9", "3"])], ids=["vector", "matrix"]
)
def test_nothing_is_behind_a_product_that_gives_a_vector(shape: str, order: list[str]) -> None:
    """What TreeReductionRewriter splits it with is not merged."""
    body = (
        f"""  %p = f32[8,64] parameter(0)
  %q = f32[16,16] parameter(1)
  %zero = f32[] constant(0)
  %custom-call.1 = ({shape}, s8[64]) custom-call(%p, %p), {_GEMM}
  %get-tuple-element.1 = {shape} get-tuple-element(%custom-call.1), index=0
  %bitcast.3.0 = f32[64] bitcast(%get-tuple-element.1)
"""
        + reduce("reduce.1.0", "", "bitcast.3.0", "0")
        + "  %bitcast.9.0 = f32[256] bitcast(%q)\n"
        + reduce("reduce.2.0", "", "bitcast.9.0", "0")
        + "  ROOT %tuple.1.0 = (f32[], f32[]) tuple(%reduce.1.0, %reduce.2.0)"
    )
    assert in_order(body) == order
