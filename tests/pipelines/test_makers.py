"""Who made an instruction last: one case each, as the ids in XLA's dumps around that pass tell."""

from __future__ import annotations

import re

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.front_end_names import named_by_front_end
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_in_turn import laid_in_calls, makers_in_turn

PARAMETERS = """  %p = f32[8]{0} parameter(0)
  %q = f32[8,4]{1,0} parameter(1)
  %zero = f32[] constant(0)"""


def maker(name: str, *lines: str, computation: str = "main", matrices: bool = False) -> Maker:
    """Who made it; with `matrices` in the place of what has one dimension."""
    *first, last = lines
    body = "\n".join([*(f"  {line}" for line in first), f"  ROOT {last}"])
    text = f"""HloModule m

%region {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

ENTRY %{computation} {{
{PARAMETERS}
{body}
}}
"""
    if matrices:
        text = re.sub(r"\[(\d)\]\{0\}", r"[\1,6]{1,0}", text).replace("={[0:4]}", "={[0:4], [0:6]}")
    module = parse_module(text)
    makers = makers_in_turn(module.entry, named_by_front_end(module))
    return next(found for x, found in makers.items() if x.name == name)


def op(path: str) -> str:
    return f'metadata={{op_name="jit(f)/{path}"}}'


MUL = f"%mul.5.0 = f32[8]{{0}} multiply(%p, %p), {op('mul')}"


def test_what_bears_the_programs_name_is_the_programs() -> None:
    assert maker("mul.5.0", MUL) == Maker.FRONT_END


@pytest.mark.parametrize("path", ["jit(silu)/mul", "jvp(jit(silu))/mul", "while/body/eval_jaxpr/mul"])
def test_what_was_called_was_inlined(path: str) -> None:
    assert (
        maker("mul.2.0", MUL, f"%mul.2.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op(path)}") == Maker.INLINER
    )


@pytest.mark.parametrize(("number", "expected"), [(6, Maker.FRONT_END), (0, Maker.INLINER)])
def test_a_number_in_a_branch_is_the_programs_if_the_framework_inlined_that(
    number: int, expected: Maker
) -> None:
    name = f"mul.{number}.0"
    spread = f"%{name} = f32[8]{{0}} broadcast(%zero), dimensions={{}}, {op('cond/branch_0_fun/mul')}"
    product = f"%mul.7.0 = f32[8]{{0}} multiply(%mul.5.0, %{name}), {op('mul')}"
    assert maker(name, MUL, spread, product) == expected


def test_an_entry_of_which_next_to_all_was_made_anew_is_no_clone() -> None:
    """ReshapeMover does so with the normalizations of a network that only infers."""
    lines = [
        f"%neg.0.0 = f32[8]{{0}} negate(%p), {op('neg')}",
        f"%sub.0.0 = f32[8]{{0}} subtract(%neg.0.0, %p), {op('sub')}",
        f"%sum.1.0 = f32[] reduce(%sub.0.0, %zero), dimensions={{0}}, to_apply=%region, {op('sum')}",
    ]
    assert maker("neg.0.0", *lines) == Maker.SIMPLIFIER_AGAIN
    assert maker("sum.1.0", *lines) == Maker.FRONT_END


def test_a_loop_in_a_function_is_not_what_the_function_is() -> None:
    loop = f"""HloModule m

%body {{
  %p = f32[8]{{0}} parameter(0)
  ROOT %mul.6.0 = f32[8]{{0}} multiply(%p, %p), {op("jit(g)/while/body/mul")}
}}

ENTRY %main {{
  %q = f32[8]{{0}} parameter(0)
  ROOT %call = f32[8]{{0}} call(%q), to_apply=%body
}}
"""
    module = parse_module(loop)
    body = next(c for c in module.computations if c is not module.entry)
    assert makers_in_turn(body, named_by_front_end(module))[body.root] == Maker.FRONT_END


def test_what_the_entry_has_of_a_branch_was_inlined() -> None:
    inside = f"%mul.2.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op('cond/branch_1_fun/mul')}"
    assert maker("mul.2.0", MUL, inside) == Maker.INLINER


def test_another_operation_in_the_place_of_the_programs() -> None:
    """x / 8 became x * 0.125."""
    assert (
        maker("multiply.1.0", f"%multiply.1.0 = f32[8]{{0}} multiply(%p, %p), {op('div')}")
        == Maker.SIMPLIFIER
    )


def test_the_same_operation_under_another_name_was_turned_into_another_layout() -> None:
    anew = f"%multiply.1.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op('mul')}"
    assert maker("multiply.1.0", MUL, anew, matrices=True) == Maker.LAYOUT_NORMALIZATION


SLICE = f"%slice.5.0 = f32[4]{{0}} slice(%mul.5.0), slice={{[0:4]}}, {op('slice')}"


def test_a_slice_beside_what_is_in_another_layout_was_turned_as_well() -> None:
    turned = f"%multiply.1 = f32[4]{{0}} multiply(%slice.5.0, %slice.5.0), {op('mul')}"
    assert maker("slice.5.0", MUL, SLICE, turned, matrices=True) == Maker.LAYOUT_NORMALIZATION


def test_a_slice_beside_what_simplification_made_is_the_programs() -> None:
    made = "%negate.1 = f32[4]{0} negate(%slice.5.0)"
    assert maker("slice.5.0", MUL, SLICE, made) == Maker.FRONT_END


def test_a_slice_of_what_had_been_reshaped_is_as_young_as_that() -> None:
    bitcast = "%bitcast.1 = f32[8,1]{1,0} bitcast(%p)"
    moved = f"%mul.1.0 = f32[8,1]{{1,0}} multiply(%bitcast.1, %bitcast.1), {op('mul')}"
    slice_ = f"%slice.1 = f32[4,1]{{1,0}} slice(%mul.1.0), slice={{[0:4], [0:1]}}, {op('dynamic_slice')}"
    known = f"%dynamic_slice.5.0 = f32[4]{{0}} slice(%mul.5.0), slice={{[0:4]}}, {op('dynamic_slice')}"
    assert maker("slice.1", MUL, known, bitcast, moved, slice_) == Maker.SIMPLIFIER_AGAIN


def test_a_quotient_that_was_divided_once_more() -> None:
    """a / b / c became a / (b * c)."""
    lines = [
        "%multiply.1.0 = f32[8]{0} multiply(%p, %p)",
        "%div.4.0 = f32[8]{0} divide(%p, %DIVISOR), " + op("div"),
    ]
    assert maker("div.4.0", lines[0], lines[1].replace("DIVISOR", "multiply.1.0")) == Maker.SIMPLIFIER
    assert maker("div.4.0", MUL, lines[1].replace("DIVISOR", "mul.5.0")) == Maker.FRONT_END


def test_two_constant_factors_that_became_one() -> None:
    constant = "%constant.4.0 = f32[] constant(2)"
    product = f"%mul.6.0 = f32[8]{{0}} multiply(%mul.5.0, %broadcast.3.0), {op('mul')}"
    broadcast = "%broadcast.3.0 = f32[8]{0} broadcast(%constant.4.0), dimensions={}"
    assert maker("mul.6.0", MUL, constant, f"{broadcast}, {op('mul')}", product) == Maker.SIMPLIFIER
    assert maker("mul.6.0", MUL, constant, broadcast, product) == Maker.FRONT_END


def test_a_multiple_of_a_mean_was_of_two_factors() -> None:
    """The quotient between the sum and it is gone, and its divisor with it."""
    constants = ["%constant.1.0 = f32[] constant(2)", "%constant.9.0 = f32[] constant(3)"]
    spread = "%broadcast.9.0 = f32[8]{0} broadcast(%constant.9.0), dimensions={}"
    broadcast = "%broadcast.1.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}"
    total = "%reduce_sum.5.0 = f32[8]{0} reduce(%q, %zero), dimensions={1}, to_apply=%region, " + op("sum")
    product = f"%mul.6.0 = f32[8]{{0}} multiply(%reduce_sum.5.0, %broadcast.1.0), {op('mul')}"
    added = f"%add.5.0 = f32[8]{{0}} add(%mul.6.0, %broadcast.9.0), {op('add')}"
    lines = [*constants, spread, broadcast, total]
    assert maker("mul.6.0", *lines, product, added) == Maker.SIMPLIFIER
    alone = product.replace("%reduce_sum.5.0", "%p")
    assert maker("mul.6.0", *lines, alone, added) == Maker.FRONT_END
    # Nothing was folded into what is computed.
    root = f"%sqrt.1.0 = f32[] sqrt(%constant.1.0), {op('sqrt')}"
    computed = [*constants, root, spread, broadcast.replace("%constant.1.0", "%sqrt.1.0"), total]
    assert maker("mul.6.0", *computed, product, added) == Maker.FRONT_END


@pytest.mark.parametrize(
    ("path", "squared", "expected"),
    [
        ("jit(_var)", "square", Maker.SIMPLIFIER_AGAIN),
        ("jvp(jit(_var))", "square", Maker.SIMPLIFIER_AGAIN),
        ("jit(_var)", "mul", Maker.SIMPLIFIER),  # the mean, of as many as there are
    ],
)
def test_a_variance_is_divided_by_a_folded_number(path: str, squared: str, expected: Maker) -> None:
    square = f"%square.1.0 = f32[8,4]{{1,0}} multiply(%q, %q), {op(f'{path}/{squared}')}"
    total = "%reduce_sum.1.0 = f32[8]{0} reduce(%square.1.0, %zero), dimensions={1}, to_apply=%region"
    number = "%constant.1 = f32[] constant(0.125)"
    spread = "%broadcast.1 = f32[8]{0} broadcast(%constant.1), dimensions={}"
    product = f"%multiply.1 = f32[8]{{0}} multiply(%reduce_sum.1.0, %broadcast.1), {op(f'{path}/div')}"
    lines = (square, f"{total}, {op(f'{path}/reduce_sum')}", number, spread, product)
    assert maker("multiply.1", MUL, *lines) == expected


@pytest.mark.parametrize(
    ("number", "source", "expected"),
    [
        (6, "select(%finite.1.0, %reduce_max.1.0, %zero)", Maker.SIMPLIFIER_AGAIN),
        (5, "select(%finite.1.0, %reduce_max.1.0, %zero)", Maker.FRONT_END),
        # These had no dimension to keep: the numbers that are missing are of others.
        (6, "maximum(%reduce_max.1.0, %zero)", Maker.FRONT_END),
        (6, "select(%finite.1.0, %reduce_max.1.0, %reduce_max.2.0)", Maker.FRONT_END),
    ],
)
def test_a_number_that_had_kept_a_dimension_was_spread_in_two(
    number: int, source: str, expected: Maker
) -> None:
    """So two of the program are missing in front of it."""
    lines = (
        f"%sub.3.0 = f32[8]{{0}} subtract(%p, %p), {op('sub')}",
        f"%reduce_max.1.0 = f32[] reduce(%p, %zero), dimensions={{0}}, to_apply=%region, {op('max')}",
        f"%reduce_max.2.0 = f32[] reduce(%q, %zero), dimensions={{0,1}}, to_apply=%region, {op('max')}",
        f"%finite.1.0 = pred[] is-finite(%reduce_max.1.0), {op('is_finite')}",
        f"%select_n.1.0 = f32[] {source}, {op('select_n')}",
        f"%sub.{number}.0 = f32[8]{{0}} broadcast(%select_n.1.0), dimensions={{}}, {op('sub')}",
    )
    assert maker(f"sub.{number}.0", *lines) == expected


def test_what_spreads_a_number_is_no_tile() -> None:
    """jax.numpy.tile has a row to spread, so that three numbers are missing in front of it."""

    def spread(source: str, dimensions: str) -> Maker:
        name, told = "broadcast_in_dim", op("broadcast_in_dim")
        given = f"%{name}.3.0 = f32[4,8]{{1,0}} broadcast(%p), dimensions={{1}}, {told}"
        line = f"%{name}.7.0 = f32[4,8]{{1,0}} broadcast({source}), dimensions={{{dimensions}}}, {told}"
        return maker(f"{name}.7.0", given, line)

    assert spread("%p", "1") == Maker.SIMPLIFIER_AGAIN
    assert spread("%zero", "") == Maker.FRONT_END


@pytest.mark.parametrize(("frame", "expected"), [(7, Maker.SIMPLIFIER_AGAIN), (8, Maker.FRONT_END)])
def test_a_side_of_a_difference_was_reshaped_before_it_was_negated(frame: int, expected: Maker) -> None:
    path = "transpose(jvp())"

    def told(name: str, frame: int) -> str:
        return f'metadata={{op_name="jit(f)/{path}/{name}" stack_frame_id={frame}}}'

    total = "%reduce_sum.5.0 = f32[8]{0} reduce(%q, %zero), dimensions={1}, to_apply=%region, "
    neg = f"%neg.5.0 = f32[8]{{0}} negate(%reduce_sum.5.0), {told('neg', frame)}"
    assert maker("neg.5.0", total + told("reduce_sum", 7), neg) == expected


def test_a_reduction_that_tells_nothing_in_front_of_a_copy_got_its_layout_late() -> None:
    total = "%reduce.5 = f32[8,4]{1,0} reduce(%r, %zero), dimensions={2}, to_apply=%region"
    given = "%r = f32[8,4,2]{2,1,0} broadcast(%q), dimensions={0,1}"
    copy = f"%transpose.5 = f32[4,8]{{1,0}} transpose(%reduce.5), dimensions={{1,0}}, {op('reduce_sum')}"
    turned = copy.replace("%transpose.5", "%transpose.5.0").replace("reduce_sum", "transpose")
    assert maker("reduce.5", MUL, given, total, copy) == Maker.REDUCTIONS
    assert maker("reduce.5", MUL, given, total, turned) == Maker.SIMPLIFIER


@pytest.mark.parametrize(
    ("kind", "expected"), [("bf16", Maker.SIMPLIFIER_AGAIN), ("f32", Maker.SIMPLIFIER_LAST)]
)
def test_what_was_spread_narrow_is_as_old_as_it_was(kind: str, expected: Maker) -> None:
    """Float normalization put converts around it; where it is wide a convert went in front of it."""
    given, read = ("f32", "f32") if kind == "bf16" else ("bf16", "bf16")
    lines = (
        f"%given = {given}[8]{{0}} convert(%p)" if given == "bf16" else "%given = f32[8]{0} add(%p, %p)",
        f"%convert.1 = {kind}[8]{{0}} convert(%given)",
        f"%broadcast.1 = {kind}[8,4]{{1,0}} broadcast(%convert.1), dimensions={{0}}, {op('div')}",
        f"%convert.2 = {read}[8,4]{{1,0}} convert(%broadcast.1)"
        if kind == "bf16"
        else "%abs.1.0 = f32[8,4]{1,0} abs(%broadcast.1)",
    )
    assert maker("broadcast.1", MUL, *lines) == expected


@pytest.mark.parametrize(
    ("path", "dimensions", "expected"),
    [
        ("mul", "0", Maker.SIMPLIFIER_AGAIN),  # p[:, None] * q: two broadcasts became one
        ("broadcast_in_dim", "0", Maker.FRONT_END),  # of what is the program's as it is
        ("broadcast_in_dim", "1", Maker.FRONT_END),  # straight to where new dimensions are in front
    ],
)
def test_broadcasts_of_the_program(path: str, dimensions: str, expected: Maker) -> None:
    shape = "f32[8,4]{1,0}" if dimensions == "0" else "f32[4,8]{1,0}"
    name = path.split("/")[-1]
    line = f"%{name}.1.0 = {shape} broadcast(%mul.5.0), dimensions={{{dimensions}}}, {op(path)}"
    assert maker(f"{name}.1.0", MUL, line) == expected


@pytest.mark.parametrize(("number", "expected"), [(7, Maker.SIMPLIFIER_AGAIN), (6, Maker.FRONT_END)])
def test_what_is_tiled_had_two_reshapes_and_a_broadcast_in_front(number: int, expected: Maker) -> None:
    """Numbers below the upper half are not the program's."""
    line = f"%broadcast_in_dim.{number}.0 = f32[4,8]{{1,0}} broadcast(%mul.5.0), dimensions={{1}}"
    assert maker(f"broadcast_in_dim.{number}.0", MUL, f"{line}, {op('broadcast_in_dim')}") == expected


def test_a_bound_of_uniform_numbers_is_made_anew_with_a_dimension_of_size_one() -> None:
    constant = "%constant.4.0 = f32[] constant(2)"
    for shape, expected in (("f32[1,8]{1,0}", Maker.SIMPLIFIER), ("f32[2,8]{1,0}", Maker.INLINER)):
        line = f"%max.3.0 = {shape} broadcast(%constant.4.0), dimensions={{}}, {op('jit(_uniform)/max')}"
        assert maker("max.3.0", MUL, constant, line) == expected


def test_what_keeps_a_dimension_of_size_one_of_a_number_is_made_anew() -> None:
    bitcast = "%bitcast.1 = f32[] bitcast(%one)"
    for shape, expected in (("f32[1,8]{1,0}", Maker.SIMPLIFIER), ("f32[2,8]{1,0}", Maker.FRONT_END)):
        line = f"%div.1.0 = {shape} broadcast(%bitcast.1), dimensions={{}}, {op('div')}"
        one = "%one = f32[1]{0} reduce(%q, %zero), dimensions={0}, to_apply=%region"
        assert maker("div.1.0", MUL, one, bitcast, line) == expected


def test_places_of_an_argmax_came_with_a_function_whose_name_does_not_tell() -> None:
    iota = f"%iota.1.0 = s32[8]{{0}} iota(), iota_dimension=0, {op('iota')}"
    reduced = (
        "%reduce.1.0 = (f32[], s32[]) reduce(%p, %iota.1.0, %zero, %none), dimensions={0}, to_apply=%region"
    )
    assert maker("iota.1.0", MUL, "%none = s32[] constant(0)", iota, reduced) == Maker.INLINER
    compared = "%eq.1.0 = pred[8]{0} compare(%iota.1.0, %iota.1.0), direction=EQ"
    assert maker("iota.1.0", MUL, iota, compared) == Maker.FRONT_END


def test_what_is_selected_where_a_product_is_nothing_was_spread_for_that() -> None:
    constant = "%constant.1.0 = f32[] constant(0)"
    spread = "%broadcast.1.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}"
    told = "%gt.1.0 = pred[8]{0} compare(%p, %mul.5.0), direction=GT"
    for path, expected in (("mul", Maker.SIMPLIFIER), ("jit(_where)/select_n", Maker.FRONT_END)):
        line = f"%select.1 = f32[8]{{0}} select(%gt.1.0, %mul.5.0, %broadcast.1.0), {op(path)}"
        assert maker("broadcast.1.0", MUL, constant, spread, told, line, matrices=True) == expected


def test_what_a_loop_of_a_scatter_writes_had_a_dimension_less() -> None:
    constant = "%constant.1.0 = f32[] constant(7)"
    at = "%at = s32[] constant(0)"
    for size, expected in ((1, Maker.SIMPLIFIER_AGAIN), (2, Maker.FRONT_END)):
        spread = f"%broadcast.1.0 = f32[3,{size}]{{1,0}} broadcast(%constant.1.0), dimensions={{}}"
        write = (
            "%dynamic-update-slice.2.0 = f32[8,4]{1,0} dynamic-update-slice(%q, %broadcast.1.0, %at, %at), "
            + op("scatter")
        )
        assert maker("broadcast.1.0", MUL, constant, at, spread, write) == expected
    unread = "%broadcast.1.0 = f32[3,1]{1,0} broadcast(%constant.1.0), dimensions={}"
    assert maker("broadcast.1.0", MUL, constant, unread) == Maker.FRONT_END


def test_what_a_library_call_gives_is_as_young_as_the_call() -> None:
    call = '%custom-call.1 = (f32[8]{0}, s8[0]{0}) custom-call(%p, %q), custom_call_target="__cublas$gemm"'
    element = "%get-tuple-element.1.0 = f32[8]{0} get-tuple-element(%custom-call.1), index=0"
    assert maker("get-tuple-element.1.0", MUL, call, element) == Maker.FUSIONS


def test_it_was_spread_later_though_numbers_behind_it_seem_older() -> None:
    lines = ["%constant.1.0 = f32[] constant(7)", "%at = s32[] constant(0)"]
    lines += ["%broadcast.1.0 = f32[3,1]{1,0} broadcast(%constant.1.0), dimensions={}"]
    write = "dynamic-update-slice(%q, %broadcast.1.0, %at, %at)"
    lines += [f"%dynamic-update-slice.2.0 = f32[8,4]{{1,0}} {write}, {op('scatter')}"]
    for k in (2, 3):
        lines += [f"%broadcast.{k}.0 = f32[8]{{0}} broadcast(%constant.1.0), dimensions={{}}, {op('div')}"]
        lines += [f"%multiply.{k}.0 = f32[8]{{0}} multiply(%mul.5.0, %broadcast.{k}.0), {op('div')}"]
    assert maker("broadcast.1.0", MUL, *lines) == Maker.SIMPLIFIER_AGAIN


def test_the_negated_sum_of_a_derivative_of_a_division_was_moved() -> None:
    """The front end has it between two reshapes, and so what is spread of it became one broadcast."""
    total = (
        f"%reduce_sum.5.0 = f32[8]{{0}} reduce(%q, %zero), dimensions={{1}}, to_apply=%region, {op('sum')}"
    )
    neg = f"%neg.5.0 = f32[8]{{0}} negate(%reduce_sum.5.0), {op('neg')}"
    spread = f"f32[8,4]{{1,0}} broadcast(%neg.5.0), dimensions={{0}}, {op('broadcast_in_dim')}"
    lines = (total, neg, f"%broadcast_in_dim.9.0 = {spread}")
    assert maker("neg.5.0", *lines) == Maker.SIMPLIFIER_AGAIN
    assert maker("broadcast_in_dim.9.0", *lines) == Maker.SIMPLIFIER_AGAIN
    assert maker("neg.5.0", total, neg) == Maker.FRONT_END


@pytest.mark.parametrize(("number", "expected"), [(7, Maker.SIMPLIFIER_AGAIN), (6, Maker.FRONT_END)])
def test_a_negated_sum_was_given_its_dimension_by_what_spreads_it(number: int, expected: Maker) -> None:
    """If an operation is missing there: it was a reshape."""
    name, told = "broadcast_in_dim", op("transpose(jvp())/broadcast_in_dim")
    lines = (
        f"%{name}.5.0 = f32[8]{{0}} broadcast(%zero), dimensions={{}}, {told}",
        f"%reduce_sum.5.0 = f32[] reduce(%p, %zero), dimensions={{0}}, to_apply=%region, {op('reduce_sum')}",
        f"%neg.5.0 = f32[] negate(%reduce_sum.5.0), {op('neg')}",
        f"%{name}.{number}.0 = f32[8]{{0}} broadcast(%neg.5.0), dimensions={{}}, {told}",
    )
    assert maker(f"{name}.{number}.0", *lines) == expected


@pytest.mark.parametrize(
    ("shape", "compare", "expected"),
    [
        ("s32[8]{0}", "lt.5.0", Maker.FRONT_END),
        ("s32[8,8]{1,0}", "lt.5.0", Maker.SIMPLIFIER),
        ("s32[8,8]{1,0}", "compare.5.0", Maker.LAYOUT_NORMALIZATION),
    ],
)
def test_iotas_of_more_than_one_dimension_are_made_of_broadcasts(
    shape: str, compare: str, expected: Maker
) -> None:
    iota = f"%iota.5.0 = {shape} iota(), iota_dimension=0, {op('iota')}"
    pred = shape.replace("s32", "pred")
    read = f"%{compare} = {pred} compare(%iota.5.0, %iota.5.0), direction=LT, {op('lt')}"
    assert maker("iota.5.0", iota, read) == expected


def test_what_a_call_without_a_name_brought_in_was_inlined() -> None:
    iota = f"%iota.0.0 = s32[8]{{0}} iota(), iota_dimension=0, {op('iota')}"
    read = f"%sign.5.0 = s32[8]{{0}} sign(%iota.0.0), {op('sign')}"
    assert maker("iota.0.0", iota, read) == Maker.INLINER


@pytest.mark.parametrize(
    ("opcode", "expected"), [("add", Maker.SIMPLIFIER_AGAIN), ("multiply", Maker.SIMPLIFIER)]
)
def test_numbers_of_a_call_that_became_one(opcode: str, expected: Maker) -> None:
    """Sums are of numbers that had to be folded, which is behind the first simplification."""
    root = {"add": "add", "multiply": "mul"}[opcode]
    path = op(f"jit(g)/{root}")
    constant = "%constant.4.0 = f32[] constant(2)"
    spread = f"%broadcast.3.0 = f32[8]{{0}} broadcast(%constant.4.0), dimensions={{}}, {path}"
    x = f"%{root}.6.0 = f32[8]{{0}} {opcode}(%p, %broadcast.3.0), {path}"
    assert maker(f"{root}.6.0", constant, spread, x) == expected
    assert maker("broadcast.3.0", constant, spread, x) == expected
    kept = spread.replace("broadcast.3.0 =", f"{root}.2.0 =")
    assert maker(f"{root}.6.0", constant, kept, x.replace("broadcast.3.0", f"{root}.2.0")) == Maker.INLINER


@pytest.mark.parametrize(
    ("number", "opcode", "expected"),
    [
        (6, "xor", Maker.SIMPLIFIER_AGAIN),
        (5, "xor", Maker.INLINER),
        (6, "or", Maker.INLINER),
    ],
    ids=["of the key", "of the round", "of another sum"],
)
def test_a_word_of_the_key_and_the_number_of_a_round_may_be_one_that_rotates(
    number: int, opcode: str, expected: Maker
) -> None:
    """As those of key 3 in the third round, of threefry: 3 + 3 is spread already."""
    lines = (
        f"%constant.4.0 = u32[] constant({number})",
        f"%broadcast.3.0 = u32[8]{{0}} broadcast(%constant.4.0), dimensions={{}}, {op('jit(_uniform)')}",
        "%word.1.0 = u32[8]{0} constant({1,2,3,4,5,6,7,8})",
        f"%shift.1.0 = u32[8]{{0}} shift-left(%word.1.0, %broadcast.3.0), {op('jit(_uniform)/shift_left')}",
        f"%mix.1.0 = u32[8]{{0}} {opcode}(%word.1.0, %shift.1.0), {op(f'jit(_uniform)/{opcode}')}",
        f"%add.6.0 = u32[8]{{0}} add(%mix.1.0, %broadcast.3.0), {op('jit(_uniform)/add')}",
    )
    assert maker("add.6.0", *lines) == expected


@pytest.mark.parametrize(
    ("name", "reader", "expected"),
    [
        ("rev", "negate", Maker.FRONT_END),
        ("reverse", "negate", Maker.LAYOUT_NORMALIZATION),
        ("reverse", "convert", Maker.WIDENED_PRODUCTS),
    ],
)
def test_only_the_framework_calls_a_reverse_rev(name: str, reader: str, expected: Maker) -> None:
    kind = "f32" if reader == "negate" else "bf16"
    lines = (
        "%kernel = bf16[8]{0} parameter(2)".replace("bf16", kind),
        f"%{name}.1.0 = {kind}[8]{{0}} reverse(%kernel), dimensions={{0}}, {op('rev')}",
        f"%x.1.0 = f32[8]{{0}} {reader}(%{name}.1.0)",
    )
    assert maker(f"{name}.1.0", *lines) == expected


@pytest.mark.parametrize("opcode", ["and", "negate", "select"])
def test_remainders_of_powers_of_two_are_seen_when_numbers_are_folded(opcode: str) -> None:
    operands = {"and": "%i, %i", "negate": "%i", "select": "%c, %i, %i"}[opcode]
    lines = (
        "%c = pred[8]{0} constant({1,0,1,0,1,0,1,0})",
        "%i = s32[8]{0} constant({1,2,3,4,5,6,7,8})",
        f"%{opcode}.1.0 = s32[8]{{0}} {opcode}({operands}), {op('jit(remainder)/rem')}",
    )
    assert maker(f"{opcode}.1.0", *lines) == Maker.SIMPLIFIER_AGAIN


@pytest.mark.parametrize(
    ("keeps_dimension", "expected"), [(True, Maker.SIMPLIFIER_AGAIN), (False, Maker.INLINER)]
)
def test_what_a_call_reads_of_a_sum_that_it_spreads_was_moved(keeps_dimension: bool, expected: Maker) -> None:
    call = "jvp(jit(log_softmax))"
    total = "f32[8]{0} reduce(%q, %zero), dimensions={1}, to_apply=%region"
    lines = [
        f"%sum.1.0 = {total}, {op(f'{call}/reduce_sum')}",
        f"%log.1.0 = f32[8]{{0}} log(%sum.1.0), {op(f'{call}/log')}",
    ]
    if keeps_dimension:
        lines.append(f"%sub.1.0 = f32[8,4]{{1,0}} broadcast(%log.1.0), dimensions={{0}}, {op(f'{call}/sub')}")
    assert maker("log.1.0", *lines) == expected


@pytest.mark.parametrize(("path", "expected"), [("while/body/", Maker.SIMPLIFIER_AGAIN), ("", Maker.INLINER)])
def test_what_reads_a_row_of_a_loop_as_it_was_cut_was_moved(path: str, expected: Maker) -> None:
    """As was what reads that."""
    lines = (
        "%state = (f32[9,4]{1,0}) parameter(2)",
        "%rows = f32[9,4]{1,0} get-tuple-element(%state), index=0",
        "%at = s32[] constant(3)",
        "%row = f32[1,4]{1,0} dynamic-slice(%rows, %at, %at), dynamic_slice_sizes={1,4}, "
        + op(f"{path}jit(dynamic_index_in_dim)/dynamic_slice"),
        f"%exp.1.0 = f32[1,4]{{1,0}} exponential(%row), {op(f'{path}jit(g)/exp')}",
        f"%div.1.0 = f32[1,4]{{1,0}} divide(%exp.1.0, %exp.1.0), {op(f'{path}jit(g)/div')}",
    )
    assert maker("exp.1.0", *lines) == expected
    spread = (
        f"%broadcast.9.0 = f32[1,4]{{1,0}} broadcast(%p), dimensions={{0}}, {op(f'{path}jit(g)/sub')}",
        f"%sub.1.0 = f32[1,4]{{1,0}} subtract(%row, %broadcast.9.0), {op(f'{path}jit(g)/sub')}",
    )
    assert maker("sub.1.0", *lines[:-2], *spread) == Maker.INLINER
    assert maker("div.1.0", *lines) == expected


def test_bounds_of_indices_that_are_spread_were_moved() -> None:
    lines = (
        "%i = s32[8]{0} parameter(2)",
        f"%ge.1.0 = pred[8]{{0}} compare(%i, %i), direction=GE, {op('jit(_take)/ge')}",
        f"%le.1.0 = pred[8]{{0}} compare(%i, %i), direction=LE, {op('jit(_take)/le')}",
        f"%and.1.0 = pred[8]{{0}} and(%ge.1.0, %le.1.0), {op('jit(_take)/and')}",
        "%broadcast_in_dim.1.0 = pred[8,4]{1,0} broadcast(%and.1.0), dimensions={0}, "
        + op("jit(_take)/broadcast_in_dim"),
    )
    for name in ("ge.1.0", "le.1.0", "and.1.0"):
        assert maker(name, *lines) == Maker.SIMPLIFIER_AGAIN
        assert name == "and.1.0" or maker(name, *lines[:-1]) == Maker.INLINER


@pytest.mark.parametrize(
    ("name", "expected"), [("subtract.1", Maker.SIMPLIFIER_AGAIN), ("sub.5.0", Maker.FRONT_END)]
)
def test_a_loop_that_goes_backwards_counts_from_a_folded_number(name: str, expected: Maker) -> None:
    lines = (
        "%last = s32[] constant(7)",
        "%i = s32[] parameter(2)",
        f"%{name} = s32[] subtract(%last, %i), {op('sub')}",
    )
    assert maker(name, *lines) == expected


@pytest.mark.parametrize(("shift", "expected"), [("shift-left.1", True), ("shift_left.1", False)])
def test_what_a_call_brought_in_lies_as_what_it_reads(shift: str, expected: bool) -> None:
    """So do the numbers that only that reads."""
    path = "jit(_uniform)"
    number = f"broadcast(%constant.4.0), dimensions={{}}, {op(f'{path}/or')}"
    lines = (
        "%u = u32[8]{0} parameter(2)",
        "%constant.4.0 = u32[] constant(2)",
        f"%{shift} = u32[8]{{0}} shift-left(%u, %u), {op(f'{path}/shift_left')}",
        f"%broadcast.1.0 = u32[8]{{0}} {number}",
        f"%or.1.0 = u32[8]{{0}} or(%{shift}, %broadcast.1.0), {op(f'{path}/or')}",
        f"%xor.1.0 = u32[8]{{0}} xor(%or.1.0, %u), {op(f'{path}/xor')}",
    )
    for name in ("or.1.0", "xor.1.0"):
        assert maker(name, *lines, matrices=True) == (
            Maker.LAYOUT_NORMALIZATION if expected else Maker.INLINER
        )
    assert (maker("broadcast.1.0", *lines, matrices=True) == Maker.LAYOUT_NORMALIZATION) == expected


def test_half_of_a_sum_with_what_was_transposed_lies_as_that_does() -> None:
    call = "jit(cholesky)"
    lines = (
        f"%square = f32[8,8]{{1,0}} broadcast(%p), dimensions={{0}}, {op(f'{call}/broadcast_in_dim')}",
        f"%transpose.1.0 = f32[8,8]{{1,0}} transpose(%square), dimensions={{1,0}}, {op(f'{call}/transpose')}",
        f"%add.1.0 = f32[8,8]{{1,0}} add(%square, %transpose.1.0), {op(f'{call}/add')}",
        f"%multiply.1.0 = f32[8,8]{{1,0}} multiply(%add.1.0, %add.1.0), {op(f'{call}/div')}",
    )
    copy = lines[1].replace(f"{call}/transpose", f"{call}/cholesky")
    assert maker("multiply.1.0", lines[0], copy, *lines[2:]) == Maker.LAYOUT_NORMALIZATION
    assert maker("add.1.0", lines[0], copy, *lines[2:]) == Maker.LAYOUT_NORMALIZATION


def test_a_sum_in_two_steps_was_made_late() -> None:
    inner = "%reduce.1.0 = f32[8]{0} reduce(%q, %zero), dimensions={1}, to_apply=%region"
    outer = "%reduce_sum.3.0 = f32[] reduce(%reduce.1.0, %zero), dimensions={0}, to_apply=%region, "
    outer += op("reduce_sum")
    assert maker("reduce_sum.3.0", inner, outer) == Maker.REDUCTIONS
    assert maker("reduce.1.0", inner, outer) == Maker.REDUCTIONS


def test_a_negated_sum_had_been_the_sum_of_what_is_negated() -> None:
    total = "%reduce_sum.3.0 = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%region, " + op("reduce_sum")
    assert (
        maker("negate.1.0", total, f"%negate.1.0 = f32[] negate(%reduce_sum.3.0), {op('neg')}")
        == Maker.SIMPLIFIER
    )


def test_a_convert_that_nobody_asked_for_is_float_normalizations() -> None:
    line = "%convert.1.0 = bf16[8]{0} convert(%mul.5.0), " + op("mul")
    assert maker("convert.1.0", MUL, line) == Maker.FLOAT_NORMALIZATION
    spread = "%broadcast.3.0 = bf16[8,4]{1,0} broadcast(%convert.1.0), dimensions={0}"
    assert maker("broadcast.3.0", MUL, line, spread) == Maker.SIMPLIFIER_LAST
    assert maker("convert.1.0", MUL, line, spread) == Maker.SIMPLIFIER_LAST
    negated = "%neg.1.0 = bf16[8]{0} negate(%convert.1.0)"
    assert maker("convert.1.0", MUL, line, spread, negated) == Maker.FLOAT_NORMALIZATION


@pytest.mark.parametrize(("number", "made"), [(3, Maker.SIMPLIFIER_LAST), (1, Maker.SIMPLIFIER_AGAIN)])
def test_what_is_numbered_behind_what_was_converted_is_no_older(number: int, made: Maker) -> None:
    lines = (
        MUL,
        f"%convert.1.0 = bf16[8]{{0}} convert(%mul.5.0), {op('mul')}",
        "%broadcast.2.0 = bf16[8,4]{1,0} broadcast(%convert.1.0), dimensions={0}",
        f"%broadcast.{number}.0 = f32[8,4]{{1,0}} broadcast(%mul.5.0), dimensions={{0}}, {op('add')}",
        f"%add.5.0 = f32[8,4]{{1,0}} add(%broadcast.{number}.0, %q), {op('add')}",
    )
    assert maker(f"broadcast.{number}.0", *lines) == made


@pytest.mark.parametrize(("number", "made"), [(3, Maker.SIMPLIFIER), (0, Maker.INLINER)])
def test_what_is_numbered_behind_what_simplification_made_was_not_inlined(number: int, made: Maker) -> None:
    lines = [f"%sub.5.0 = f32[8]{{0}} subtract(%p, %p), {op('sub')}"]
    for k, path in ((1, "sub"), (2, "sub"), (4, "sub"), (number, "jit(silu)")):
        lines.append(f"%broadcast.{k}.0 = f32[8]{{0}} broadcast(%zero), dimensions={{}}, {op(path)}")
        lines.append(f"%sub.{k + 6}.0 = f32[8]{{0}} subtract(%broadcast.{k}.0, %p), {op('sub')}")
    assert maker(f"broadcast.{number}.0", *lines) == made


def test_float_normalization_knows_no_integers() -> None:
    """A random number's bits, as RngBitGeneratorExpander takes them apart."""
    line = "%convert.1.0 = u32[8]{0} convert(%mul.5.0), " + op("rng_bit_generator")
    assert maker("convert.1.0", MUL, line) == Maker.SIMPLIFIER


def test_numbers_set_right_what_neighbours_tell() -> None:
    """multiply.3 looks as if it were older, but its number is higher than that of the others."""
    anew = [f"%multiply.{k}.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op('mul')}" for k in (1, 2)]
    odd = f"%multiply.NUMBER.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op('div')}"
    assert (
        maker("multiply.3.0", MUL, *anew, odd.replace("NUMBER", "3"), matrices=True)
        == Maker.LAYOUT_NORMALIZATION
    )
    assert maker("multiply.0.0", MUL, *anew, odd.replace("NUMBER", "0"), matrices=True) == Maker.SIMPLIFIER


def test_a_computation_of_mostly_other_numbers_was_cloned_whole() -> None:
    """Of its numbers one happens to lie among those of the program."""

    def lines(number: int, product: int) -> str:
        return f"""  %p = f32[8]{{0}} parameter(0)
  %sin.{number}.0 = f32[8]{{0}} sine(%p), {op("while/body/sin")}
  %tanh.{number}.0 = f32[8]{{0}} tanh(%sin.{number}.0), {op("while/body/tanh")}
  ROOT %mul.{product}.0 = f32[8]{{0}} multiply(%p, %tanh.{number}.0), {op("while/body/mul")}"""

    text = f"HloModule m\n\n%body {{\n{lines(2, 6)}\n}}\n\n%other {{\n{lines(10, 10)}\n}}\n"
    text += "\nENTRY %main {\n  %q = f32[8]{0} parameter(0)\n"
    text += "  %one = f32[8]{0} call(%q), to_apply=%body\n"
    text += "  ROOT %two = f32[8]{0} call(%one), to_apply=%other\n}\n"
    module = parse_module(text)
    body = next(c for c in module.computations if c.name == "body")
    makers = makers_in_turn(body, named_by_front_end(module))
    assert {x.name: made for x, made in makers.items()} == {
        "sin.2.0": Maker.FRONT_END,
        "tanh.2.0": Maker.FRONT_END,
        "mul.6.0": Maker.FRONT_END,
    }


def test_constants_of_the_program_are_the_first_of_a_clone() -> None:
    """Behind the first one of what was called all are a pass's."""
    text = f"""HloModule m

%body.clone {{
  %p = f32[8]{{0}} parameter(0)
  %constant.4.0 = f32[] constant(2)
  %broadcast.6.0 = f32[8]{{0}} broadcast(%constant.4.0), dimensions={{}}
  %mul.9.0 = f32[8]{{0}} multiply(%p, %broadcast.6.0), {op("while/body/mul")}
  %constant.5.0 = f32[] constant(3), {op("while/body/jit(g)")}
  %broadcast.7.0 = f32[8]{{0}} broadcast(%constant.5.0), dimensions={{}}, {op("while/body/jit(g)")}
  %add.9.0 = f32[8]{{0}} add(%mul.9.0, %broadcast.7.0), {op("while/body/jit(g)/add")}
  %constant.6.0 = f32[] constant(4)
  %broadcast.8.0 = f32[8]{{0}} broadcast(%constant.6.0), dimensions={{}}
  ROOT %multiply.0.0 = f32[8]{{0}} multiply(%add.9.0, %broadcast.8.0), {op("while/body/div")}
}}

ENTRY %main {{
  %q = f32[8]{{0}} parameter(0)
{KEPT}
  ROOT %call = f32[8]{{0}} call(%q), to_apply=%body.clone
}}
"""
    module = parse_module(text)
    body = next(c for c in module.computations if c is not module.entry)
    made = {x.name: maker for x, maker in makers_in_turn(body, named_by_front_end(module)).items()}
    assert [made[f"constant.{k}.0"] for k in (4, 5, 6)] == [*THREE]
    assert [made[f"broadcast.{k}.0"] for k in (6, 7, 8)] == [*THREE]


KEPT = "\n".join(
    f"  %constant.{k}.0 = f32[] constant({k})\n  %broadcast.{k}.0 = f32[8]{{0}} broadcast(%constant.{k}.0), "
    "dimensions={}"
    for k in range(20, 24)
)
THREE = (Maker.FRONT_END, Maker.INLINER, Maker.SIMPLIFIER)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("exponential.3.0", Maker.LAYOUT_NORMALIZATION),
        ("exp.9.0", Maker.SIMPLIFIER_AGAIN),
    ],
)
def test_a_name_that_framework_and_compiler_share_is_told_by_what_is_around(name: str, made: Maker) -> None:
    """All of one layout was made anew, and elsewhere only ReshapeMover leaves such numbers."""
    assert (
        maker(
            "add.2.0",
            f"%add.10.0 = f32[8,4]{{1,0}} add(%q, %q), {op('add')}",
            f"%exp.10.0 = f32[8,4]{{1,0}} exponential(%add.10.0), {op('exp')}",
            f"%{name} = f32[8,4]{{1,0}} exponential(%exp.10.0), {op('exp')}",
            f"%add.2.0 = f32[8,4]{{1,0}} add(%{name}, %q), {op('add')}",
        )
        == made
    )


def test_a_constant_beside_tells_nothing_of_layouts() -> None:
    """It was spread for the one that reads it, whoever made that."""
    assert (
        maker(
            "add.0.0",
            "%c = f32[] constant(2)",
            f"%add.10.0 = f32[8]{{0}} add(%p, %p), {op('add')}",
            f"%add.9.0 = f32[8]{{0}} add(%add.10.0, %p), {op('add')}",
            f"%broadcast.0.0 = f32[8]{{0}} broadcast(%c), dimensions={{}}, {op('add')}",
            f"%add.0.0 = f32[8]{{0}} add(%add.9.0, %broadcast.0.0), {op('add')}",
        )
        == Maker.SIMPLIFIER_AGAIN
    )


def test_what_takes_the_place_of_another_operation_keeps_its_age() -> None:
    """The sign of a divisor that is above zero is false, and what was unequal to that is itself."""
    lines = (
        f"%lt.5.0 = pred[8]{{0}} compare(%p, %p), direction=LT, {op('lt')}",
        f"%ne.0.0 = pred[8]{{0}} compare(%p, %p), direction=LT, {op('jit(remainder)/lt')}",
        "%t = (pred[8]{0}, pred[8]{0}) tuple(%lt.5.0, %ne.0.0)",
    )
    assert maker("ne.0.0", *lines) == Maker.INLINER


IOTA = f"%iota.5.0 = s32[8]{{0}} iota(), iota_dimension=0, {op('iota')}"


@pytest.mark.parametrize(("path", "made"), [("reshape", Maker.SIMPLIFIER), ("mul", Maker.FRONT_END)])
def test_iotas_of_what_was_an_iota_reshaped_are_simplifications(path: str, made: Maker) -> None:
    name = "multiply.1" if path == "reshape" else "mul.7.0"
    product = f"%{name} = s32[8]{{0}} multiply(%iota.5.0, %iota.5.0), {op(path)}"
    assert maker("iota.5.0", IOTA, product) == made


@pytest.mark.parametrize(("number", "made"), [(8, Maker.SIMPLIFIER_AGAIN), (7, Maker.FRONT_END)])
def test_a_missing_number_tells_of_a_reshape_of_a_full_reduction(number: int, made: Maker) -> None:
    lines = (
        f"%add.6.0 = f32[8]{{0}} add(%p, %p), {op('add')}",
        "%reduce_sum.5.0 = f32[] reduce(%add.6.0, %zero), dimensions={0}, to_apply=%region, "
        + op("reduce_sum"),
        f"%add.{number}.0 = f32[8]{{0}} broadcast(%reduce_sum.5.0), dimensions={{}}, {op('add')}",
        f"%add.9.0 = f32[8]{{0}} add(%add.{number}.0, %p), {op('add')}",
    )
    assert maker(f"add.{number}.0", *lines) == made


@pytest.mark.parametrize(("number", "made"), [(8, Maker.SIMPLIFIER_AGAIN), (7, Maker.FRONT_END)])
def test_two_missing_numbers_tell_of_a_reshape_of_what_is_made_of_one(number: int, made: Maker) -> None:
    lines = (
        f"%add.5.0 = f32[8]{{0}} add(%p, %p), {op('add')}",
        "%reduce_sum.5.0 = f32[] reduce(%add.5.0, %zero), dimensions={0}, to_apply=%region, "
        + op("reduce_sum"),
        f"%rsqrt.0.0 = f32[] rsqrt(%reduce_sum.5.0), {op('rsqrt')}",
        f"%add.{number}.0 = f32[8]{{0}} broadcast(%rsqrt.0.0), dimensions={{}}, {op('add')}",
        f"%add.9.0 = f32[8]{{0}} add(%add.{number}.0, %p), {op('add')}",
    )
    lines += () if number == 8 else (f"%add.6.0 = f32[8]{{0}} add(%add.9.0, %p), {op('add')}",)
    assert maker(f"add.{number}.0", *lines) == made


@pytest.mark.parametrize(("first", "made"), [(5, Maker.SIMPLIFIER_AGAIN), (9, Maker.FRONT_END)])
def test_in_front_of_the_first_in_a_clone_numbers_are_missing_anyhow(first: int, made: Maker) -> None:
    """They were given to what was cloned for another computation."""
    text = f"""HloModule m

%region {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

%body.clone {{
{PARAMETERS}
  %add.{first}.0 = f32[8]{{0}} add(%p, %p), {op("while/body/add")}
  %reduce_sum.5.0 = f32[] reduce(%p, %zero), dimensions={{0}}, to_apply=%region, {op("while/body/reduce_sum")}
  %rsqrt.5.0 = f32[] rsqrt(%reduce_sum.5.0), {op("while/body/rsqrt")}
  %add.8.0 = f32[8]{{0}} broadcast(%rsqrt.5.0), dimensions={{}}, {op("while/body/add")}
  ROOT %add.10.0 = f32[8]{{0}} add(%add.8.0, %add.{first}.0), {op("while/body/add")}
}}

ENTRY %main {{
{PARAMETERS}
  ROOT %c = f32[8]{{0}} call(%p, %q), to_apply=%body.clone
}}
"""
    module = parse_module(text)
    body = next(c for c in module.computations if c.name == "body.clone")
    makers = makers_in_turn(body, named_by_front_end(module))
    assert next(found for x, found in makers.items() if x.name == "add.8.0") == made


def test_a_number_that_only_a_pass_reads_is_the_pass_s() -> None:
    lines = (
        MUL,
        "%half = f32[] constant(0.5)",
        "%broadcast.5.0 = f32[8]{0} broadcast(%half), dimensions={}",
        f"%multiply.1.0 = f32[8]{{0}} multiply(%mul.5.0, %broadcast.5.0), {op('div')}",
    )
    assert maker("broadcast.5.0", *lines) == Maker.SIMPLIFIER


def test_rows_of_a_transposed_parameter_are_columns_of_it_in_its_layout() -> None:
    row = f"%slice.1.0 = f32[8,1]{{1,0}} slice(%q), slice={{[0:8], [1:2]}}, {op('unstack')}"
    assert maker("slice.1.0", row) == Maker.LAYOUT_NORMALIZATION
    assert maker("slice.1.0", row.replace("unstack", "pad")) == Maker.SIMPLIFIER


def test_what_was_padded_for_a_call_is_sliced_behind_it() -> None:
    shape = "(f32[8,4]{1,0}, s8[1]{0})"
    call = f'%call.1 = {shape} custom-call(%q), custom_call_target="x", {op("dot_general")}'
    element = "%call.1_0 = f32[8,4]{1,0} get-tuple-element(%call.1), index=0"
    cut = f"%slice.1.0 = f32[7,4]{{1,0}} slice(%call.1_0), slice={{[0:7], [0:4]}}, {op('dot_general')}"
    assert maker("slice.1.0", call, element, cut) == Maker.DOT_MERGER
    assert maker("slice.1.0", call, element, cut.replace("dot_general", "pad")) == Maker.SIMPLIFIER


def test_a_factor_that_was_converted_as_the_front_end_spread_it_is_no_merged_one() -> None:
    number = f"%number.1.0 = f32[] constant(2), {op('mul')}"
    spread = f"%mul.4.0 = f32[8]{{0}} broadcast(%number.1.0), dimensions={{}}, {op('mul')}"
    lines = (
        "%convert.1.0 = f32[] convert(%number.1.0)",
        f"%broadcast.1.0 = f32[8]{{0}} broadcast(%convert.1.0), dimensions={{}}, {op('mul')}",
        f"%mul.5.0 = f32[8]{{0}} multiply(%p, %broadcast.1.0), {op('mul')}",
    )
    assert maker("mul.5.0", number, *lines) == Maker.SIMPLIFIER
    assert maker("mul.5.0", number, spread, *lines) == Maker.FRONT_END


def test_zeros_that_a_remainder_in_a_call_compares_with_are_spread_for_it() -> None:
    """They are merged with those that the call had."""
    lines = (
        "%constant.1.0 = f32[] constant(0), " + op("jit(remainder)"),
        "%broadcast.1.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}",
    )
    rem = f"pred[8]{{0}} compare(%p, %broadcast.1.0), direction=LT, {op('jit(remainder)/rem')}"
    assert maker("broadcast.1.0", *lines, f"%compare.1.0 = {rem}") == Maker.SIMPLIFIER_AGAIN
    assert maker("broadcast.1.0", *lines, f"%rem.1.0 = {rem}") == Maker.FRONT_END


def test_the_front_end_makes_the_root_last_unless_it_was_made_anew() -> None:
    root = "%tuple{} = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.5.0, %mul.5.0)"
    assert maker("tuple.1.0", MUL, root.format(".1.0")) == Maker.FRONT_END
    assert maker("tuple.1", MUL, root.format(".1")) == Maker.SIMPLIFIER


def test_what_joins_reductions_outside_of_their_functions_was_taken_apart() -> None:
    line = f"%reduce_max.5.0 = f32[8]{{0}} maximum(%p, %mul.5.0), {op('reduce_max')}"
    assert maker("reduce_max.5.0", MUL, line) == Maker.SIMPLIFIER_AGAIN
    window = line.replace("reduce_max", "reduce_window_max")
    assert maker("reduce_window_max.5.0", MUL, window) == Maker.SIMPLIFIER
    plain = line.replace("reduce_max", "max")
    assert maker("max.5.0", MUL, plain) == Maker.FRONT_END


def test_a_broadcast_for_what_had_been_narrow_was_made_behind_float_normalization() -> None:
    top = f"%top.1.0 = f32[] reduce(%mul.5.0, %zero), dimensions={{0}}, to_apply=%region, {op('top')}"
    spread = f"%broadcast.3.0 = f32[8]{{0}} broadcast(%top.1.0), dimensions={{}}, {op('sub')}"
    sub = f"%sub.1.0 = f32[8]{{0}} subtract(%p, %broadcast.3.0), {op('sub')}"
    narrow = "%convert.1.0 = bf16[8]{0} convert(%sub.1.0)"
    assert maker("broadcast.3.0", MUL, top, spread, sub, narrow) == Maker.SIMPLIFIER_LAST
    assert maker("broadcast.3.0", MUL, top, spread, sub) == Maker.SIMPLIFIER_AGAIN


def test_a_number_that_has_a_place_in_the_source_was_spread_by_a_pass() -> None:
    constant = "%constant.1.0 = f32[] constant(0)"
    spread = "%broadcast.1.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}"
    compared = f"%ge.4.0 = pred[8]{{0}} compare(%mul.5.0, %broadcast.1.0), direction=GE, {op('ge')}"
    assert maker("broadcast.1.0", MUL, constant, spread, compared) == Maker.FRONT_END
    placed = f"{spread}, metadata={{stack_frame_id=7}}"
    assert maker("broadcast.1.0", MUL, constant, placed, compared) == Maker.SIMPLIFIER


def test_a_number_whose_readers_were_widened_is_the_program_s() -> None:
    half = "%constant.1.0 = bf16[] constant(0.5)"
    spread = "%broadcast.5.0 = bf16[8]{0} broadcast(%constant.1.0), dimensions={}"
    widened = "%convert.4.0 = f32[8]{0} convert(%broadcast.5.0)"
    assert maker("broadcast.5.0", MUL, half, spread, widened) == Maker.FRONT_END


def test_a_transposition_of_what_was_converted_had_been_a_copy_into_another_layout() -> None:
    narrow = "%convert.1.0 = bf16[8,4]{1,0} convert(%q)"
    turned = "%transpose.1.0 = bf16[4,8]{1,0} transpose(%convert.1.0), dimensions={1,0}"
    assert maker("transpose.1.0", MUL, narrow, turned) == Maker.LAYOUT_NORMALIZATION


def test_what_was_cut_off_a_padded_convolution_lies_as_what_reads_it() -> None:
    call = (
        f'%conv.1 = f32[8,8]{{1,0}} custom-call(%q), custom_call_target="__cudnn$convForward", {op("conv")}'
    )
    cut = f"%slice.3.0 = f32[8,4]{{1,0}} slice(%conv.1), slice={{[0:8], [0:4]}}, {op('conv')}"
    known = f"%mul.6.0 = f32[8,4]{{1,0}} multiply(%q, %q), {op('mul')}"
    anew = f"%multiply.9.0 = f32[8,4]{{1,0}} multiply(%slice.3.0, %q), {op('mul')}"
    assert maker("slice.3.0", MUL, known, call, cut, anew) == Maker.LAYOUT_NORMALIZATION
    kept = anew.replace("multiply.9.0", "mul.7.0")
    assert maker("slice.3.0", MUL, known, call, cut, kept) == Maker.DOT_MERGER


def test_a_convert_of_the_program_named_after_its_opcode_was_made_anew() -> None:
    line = "%convert.1.0 = bf16[8]{0} convert(%mul.5.0), " + op("convert_element_type")
    assert maker("convert.1.0", MUL, line, matrices=True) == Maker.LAYOUT_NORMALIZATION


@pytest.mark.parametrize(("number", "made"), [(4, Maker.LAYOUT_NORMALIZATION), (1, Maker.SIMPLIFIER_AGAIN)])
def test_what_is_spread_is_no_older_than_what_is_numbered_before_it(number: int, made: Maker) -> None:
    """Whatever reads it: here something that was moved in front of a reshape."""
    lines = [
        "%broadcast.40.0 = f32[8]{0} broadcast(%zero), dimensions={}",
        f"%max.5.0 = f32[8]{{0}} maximum(%p, %broadcast.40.0), {op('max')}",
    ]
    for k, reader in ((number, "max.2.0"), *((k, f"maximum.{k}.0") for k in (2, 3, 5, 6))):
        lines.append(f"%broadcast.{k}.0 = f32[8]{{0}} broadcast(%zero), dimensions={{}}, {op('max')}")
        lines.append(f"%{reader} = f32[8]{{0}} maximum(%p, %broadcast.{k}.0), {op('max')}")
    assert maker(f"broadcast.{number}.0", *lines, matrices=True) == made


@pytest.mark.parametrize(
    ("reader", "made"), [("transpose.1", Maker.MOVED_COPIES), ("bitcast.9", Maker.SIMPLIFIER)]
)
def test_a_slice_in_front_of_copies_was_moved_there(reader: str, made: Maker) -> None:
    opcode = "transpose(%slice.3.0), dimensions={1,0}" if reader == "transpose.1" else "bitcast(%slice.3.0)"
    lines = [
        "%bitcast.1 = f32[8,4]{1,0} bitcast(%q)",
        f"%slice.3.0 = f32[4,4]{{1,0}} slice(%bitcast.1), slice={{[0:4], [0:4]}}, {op('dot_general')}",
        f"%{reader} = f32[4,4]{{1,0}} {opcode}",
    ]
    assert maker("slice.3.0", *lines) == made


def test_gathers_are_made_simple_ahead_of_everything_else() -> None:
    """Of indices with batches an iota was made for each dimension of these before that."""
    lines = [
        "%i = s32[8]{0} parameter(2)",
        "%iota.1.0 = s32[8,1]{1,0} iota(), iota_dimension=0",
        "%bitcast.1 = s32[8,1]{1,0} bitcast(%i)",
        "%concatenate.1.0 = s32[8,2]{1,0} concatenate(%iota.1.0, %bitcast.1), dimensions={1}, "
        + op("gather"),
        "%gather.1.0 = f32[8,1,1]{2,1,0} gather(%q, %concatenate.1.0), offset_dims={1,2}, "
        "collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}, "
        + op("gather"),
    ]
    assert maker("gather.1.0", *lines) == Maker.GATHERS
    assert maker("iota.1.0", *lines) == maker("concatenate.1.0", *lines) == Maker.INDICES


@pytest.mark.parametrize(("path", "made"), [("jit(g)/gather", Maker.GATHERS), ("gather", Maker.FRONT_END)])
def test_in_a_clone_gathers_that_were_called_are_made_simple_behind_the_calls(path: str, made: Maker) -> None:
    gather = (
        f"%gather.9.0 = f32[8,1,1]{{2,1,0}} gather(%q, %i), offset_dims={{1,2}}, collapsed_slice_dims={{}}, "
        f"start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}, {op(path)}"
    )
    body = "\n".join(("%q = f32[8,4]{1,0} parameter(0)", "%i = s32[8,2]{1,0} parameter(1)", f"ROOT {gather}"))
    entry = "ENTRY %main {\n%a = f32[8,4]{1,0} parameter(0)\n%b = s32[8,2]{1,0} parameter(1)\n"
    call = "ROOT %c = f32[8,1,1]{2,1,0} call(%a, %b), to_apply=%region_1.2.clone\n}\n"
    module = parse_module(f"HloModule m\n\n%region_1.2.clone {{\n{body}\n}}\n\n{entry}{call}")
    clone = next(c for c in module.computations if not c.is_entry)
    assert makers_in_turn(clone, frozenset())[clone.root] == made


@pytest.mark.parametrize(
    ("reader", "path", "made"),
    [
        ("subtract", "sub", Maker.SIMPLIFIER_AGAIN),
        ("add", "iota_2x32_shape", Maker.SIMPLIFIER),
    ],
)
def test_an_iota_that_an_operation_spreads_had_a_reshape_in_between(
    reader: str, path: str, made: Maker
) -> None:
    """The other one is of several operations that bear one name."""
    iota = f"%iota.1.0 = s32[8,8]{{1,0}} iota(), iota_dimension=0, {op(path)}"
    read = f"%{path}.5.0 = s32[8,8]{{1,0}} {reader}(%iota.1.0, %iota.1.0), {op(path)}"
    assert maker("iota.1.0", iota, read) == made


@pytest.mark.parametrize(
    ("between", "made"), [("bitcast(%p)", Maker.REDUCTIONS), ("sine(%p)", Maker.FRONT_END)]
)
def test_what_is_reduced_may_be_widened_behind_what_groups_its_dimensions(between: str, made: Maker) -> None:
    lines = [
        f"%b = f32[8]{{0}} {between}",
        "%convert.1 = f32[8]{0} convert(%b)",
        "%reduce_sum.5.0 = f32[] reduce(%convert.1, %zero), dimensions={0}, to_apply=%region, "
        + op("reduce_sum"),
    ]
    assert maker("reduce_sum.5.0", *lines) == made


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [("maximum", Maker.SIMPLIFIER), ("convert", Maker.FRONT_END)],
)
def test_a_number_that_only_what_passes_computed_reads_was_spread_for_that(
    opcode: str, expected: Maker
) -> None:
    """Be its number one of the front end's; a convert that was put in reads what was there."""
    operands = "%p, %broadcast.1.0" if opcode == "maximum" else "%broadcast.1.0"
    kind = "f32" if opcode == "maximum" else "bf16"
    lines = (
        f"%constant.4.0 = {kind}[] constant(2)",
        f"%broadcast.1.0 = {kind}[8]{{0}} broadcast(%constant.4.0), dimensions={{}}",
        f"%{opcode}.3.0 = f32[8]{{0}} {opcode}({operands})",
    )
    assert maker("broadcast.1.0", *lines) == expected


@pytest.mark.parametrize(
    ("kind", "expected"), [("s32", Maker.SIMPLIFIER_LAST), ("bf16", Maker.FLOAT_NORMALIZATION)]
)
def test_a_whole_number_that_had_been_narrow_was_converted_at_once_in_the_end(
    kind: str, expected: Maker
) -> None:
    lines = (
        f"%n.1.0 = {kind}[8]{{0}} parameter(2)",
        "%convert.1.0 = f32[8]{0} convert(%n.1.0)",
        f"%add.1.0 = f32[8]{{0}} add(%p, %convert.1.0), {op('add')}",
    )
    assert maker("convert.1.0", *lines) == expected


def test_a_whole_number_that_had_been_narrow_was_converted_behind_what_spreads_it() -> None:
    """What spreads it took the convert behind it in: the two converts became one when that was there."""
    lines = (
        "%n.1.0 = s32[] parameter(2)",
        "%convert.1.0 = f32[] convert(%n.1.0)",
        "%broadcast.1.0 = f32[8]{0} broadcast(%convert.1.0), dimensions={}",
        f"%add.1.0 = f32[8]{{0}} add(%p, %broadcast.1.0), {op('add')}",
    )
    assert maker("convert.1.0", *lines) == Maker.CONVERSIONS_LAST


@pytest.mark.parametrize(
    ("path", "expected"),
    [("mul", Maker.SIMPLIFIER), ("iota_2x32_shape", Maker.LAYOUT_NORMALIZATION)],
)
def test_counts_of_random_bits_are_shifted_by_the_program(path: str, expected: Maker) -> None:
    """Under the opcode it was made anew, and the iota that it reads: simplification shifts none."""
    lines = (
        MUL,
        "%bits = u64[] constant(32)",
        f"%iota.5 = u64[8,4]{{1,0}} iota(), iota_dimension=1, {op(path)}",
        f"%broadcast.5 = u64[8,4]{{1,0}} broadcast(%bits), dimensions={{}}, {op(path)}",
        f"%shift-right-logical.5 = u64[8,4]{{1,0}} shift-right-logical(%iota.5, %broadcast.5), {op(path)}",
    )
    assert maker("shift-right-logical.5", *lines) == expected
    assert maker("iota.5", *lines) == expected


@pytest.mark.parametrize(
    ("target", "reader", "expected"),
    [
        ("__cudnn$convBackwardInput", "bitcast", Maker.LAYOUT_NORMALIZATION),
        ("__cudnn$convBackwardInput", "negate", Maker.DOT_MERGER),
        ("__cublas$gemm", "bitcast", Maker.DOT_MERGER),
    ],
)
def test_what_is_cut_off_a_convolution_is_made_anew_in_the_layout_of_the_library(
    target: str, reader: str, expected: Maker
) -> None:
    """If an operation reads it as it is, the program has dimensions in the same order."""
    told = op("conv_general_dilated")
    lines = (
        f'%call.1 = (f32[9]{{0}}, u8[0]{{0}}) custom-call(%p), custom_call_target="{target}", {told}',
        "%element.1 = f32[9]{0} get-tuple-element(%call.1), index=0",
        f"%slice.3.0 = f32[8]{{0}} slice(%element.1), slice={{[0:8]}}, {told}",
        f"%{reader}.3.0 = f32[8]{{0}} {reader}(%slice.3.0)",
    )
    assert maker("slice.3.0", *lines) == expected


@pytest.mark.parametrize(("number", "expected"), [(8, Maker.SIMPLIFIER), (7, Maker.FRONT_END)])
def test_a_row_that_had_dimensions_behind_was_spread_in_two(number: int, expected: Maker) -> None:
    """If two operations are missing in front of the broadcast: the first one, and a reshape."""
    name, told = "broadcast_in_dim", op("broadcast_in_dim")
    lines = (
        f"%{name}.5.0 = f32[8,4]{{1,0}} broadcast(%zero), dimensions={{}}, {told}",
        f"%{name}.{number}.0 = f32[2,8,4]{{2,1,0}} broadcast(%p), dimensions={{1}}, {told}",
    )
    assert maker(f"{name}.{number}.0", *lines) == expected


def test_what_a_branch_shares_with_what_was_laid_anew_was_so_too() -> None:
    """And the numbers that only that reads: nothing in the names tells of it."""
    text = f"""HloModule m

ENTRY %main {{
  %q = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %broadcast.9.0 = f32[8,4]{{1,0}} broadcast(%zero), dimensions={{}}, {op("cond")}
  %divide.9.0 = f32[8,4]{{1,0}} divide(%q, %q), {op("jit(g)/cond/branch_1_fun/div")}
  ROOT %add.9.0 = f32[8,4]{{1,0}} add(%divide.9.0, %broadcast.9.0), {op("jit(g)/cond/branch_1_fun/add")}
}}
"""
    made = {"divide.9.0": Maker.LAYOUT_NORMALIZATION}
    entry = parse_module(text).entry
    makers = {x: made.get(x.name, Maker.CONDITIONALS) for x in entry if x.opcode != "parameter"}
    assert {x.name for x in laid_in_calls(makers)} == {"add.9.0", "broadcast.9.0"}


def test_what_spreads_a_product_is_the_programs() -> None:
    """The call stands where the product stood."""
    call = f'%call.1 = f32[8]{{0}} custom-call(%p), custom_call_target="x", {op("dot_general")}'
    spread = "f32[8,4]{1,0} broadcast(%call.1), dimensions={0}"
    line = f"%broadcast_in_dim.5.0 = {spread}, {op('broadcast_in_dim')}"
    assert maker("broadcast_in_dim.5.0", call, line) == Maker.FRONT_END


@pytest.mark.parametrize(("number", "expected"), [(1, Maker.SIMPLIFIER), (4, Maker.FRONT_END)])
def test_a_product_by_a_number_that_was_folded_of_two_is_new(number: int, expected: Maker) -> None:
    """It took the name of what it replaced. The front end's numbers have greater numbers in their names."""
    lines = [
        "%constant.3.0 = f32[] constant(3)",
        "%constant.4.0 = f32[] constant(4)",
        "%constant.1.0 = f32[] constant(1)",
        f"%log.2.0 = f32[] log(%constant.3.0), {op('log')}",
        f"%mul.5.0 = f32[] multiply(%log.2.0, %constant.{number}.0), {op('mul')}",
    ]
    assert maker("mul.5.0", *lines) == expected


@pytest.mark.parametrize(("number", "expected"), [(99, Maker.SIMPLIFIER), (4, Maker.FRONT_END)])
def test_a_sum_with_a_number_that_was_folded_of_two_is_new(number: int, expected: Maker) -> None:
    lines = [
        "%constant.3.0 = s32[] constant(3)",
        "%constant.4.0 = s32[] constant(4)",
        "%constant.99.0 = s32[] constant(1)",
        f"%not.2.0 = s32[] not(%constant.3.0), {op('not')}",
        f"%add.5.0 = s32[] add(%not.2.0, %constant.{number}.0), {op('add')}",
    ]
    assert maker("add.5.0", *lines) == expected


@pytest.mark.parametrize(("path", "expected"), [("sub", Maker.SIMPLIFIER_AGAIN), ("add", Maker.SIMPLIFIER)])
def test_a_number_that_was_subtracted_first_had_to_be_folded(path: str, expected: Maker) -> None:
    lines = [
        *(f"%constant.{k}.0 = s32[] constant({k})" for k in (3, 4, 5)),
        "%constant.98.0 = s32[] constant(-1)",
        "%constant.99.0 = s32[] constant(7)",
        f"%not.2.0 = s32[] not(%constant.3.0), {op('not')}",
        f"%add.4.0 = s32[] add(%not.2.0, %constant.98.0), {op(path)}",
        f"%add.5.0 = s32[] add(%not.2.0, %constant.99.0), {op('add')}",
        "%t = (s32[], s32[]) tuple(%add.4.0, %add.5.0)",
    ]
    assert maker("add.5.0", *lines) == expected


def test_where_a_slice_begins_had_to_be_folded() -> None:
    line = f"%slice.5.0 = f32[1]{{0}} slice(%p), slice={{[3:4]}}, {op('dynamic_slice')}"
    assert maker("slice.5.0", line) == Maker.SIMPLIFIER_AGAIN
    assert maker("slice.5.0", line.replace("dynamic_slice", "split")) == Maker.SIMPLIFIER


@pytest.mark.parametrize(("path", "expected"), [("mul", Maker.INLINER), ("", Maker.SIMPLIFIER)])
def test_a_number_that_the_program_spreads_was_not_folded_of_two(path: str, expected: Maker) -> None:
    """Of a product by two numbers one is left, which nobody spreads by the name of an operation."""
    product = op("jit(g)/mul")
    name = f"{path or 'broadcast'}.7.0"
    lines = [
        f"%three = f32[] constant(3), {product}",
        f"%{name} = f32[4]{{0}} broadcast(%three), dimensions={{}}, {product}",
        f"%broadcast.9.0 = f32[8]{{0}} broadcast(%three), dimensions={{}}, {product}",
        f"%mul.9.0 = f32[8]{{0}} multiply(%p, %broadcast.9.0), {product}",
        f"%t = (f32[8]{{0}}, f32[4]{{0}}) tuple(%mul.9.0, %{name})",
    ]
    assert maker("mul.9.0", *lines) == expected


@pytest.mark.parametrize(("path", "made"), [("while/body/iota", Maker.FRONT_END), ("iota", Maker.INLINER)])
def test_an_iota_of_what_was_cloned_whole_is_as_old_as_the_rest(path: str, made: Maker) -> None:
    """In the entry one with a number of its own came with a call."""
    lines = "\n".join(
        f"  %{name}.9{k}.0 = s32[8]{{0}} {opcode}, {op(path if name == 'iota' else 'while/body/' + name)}"
        for k, (name, opcode) in enumerate(
            [("iota", "iota(), iota_dimension=0"), ("rem", "remainder(%iota.90.0, %p)")]
        )
    )
    name = "region_1.2.clone" if "while" in path else "main"
    text = f"HloModule m\n\nENTRY %{name} {{\n  %p = s32[8]{{0}} parameter(0)\n{lines}\n"
    text += "  ROOT %tuple.1 = (s32[8]{0}) tuple(%rem.91.0)\n}\n"
    if name != "main":
        text = (
            text.replace("ENTRY ", "")
            + f"""
ENTRY %main {{
  %q = s32[8]{{0}} parameter(0)
  ROOT %call = (s32[8]{{0}}) call(%q), to_apply=%{name}
}}
"""
        )
    module = parse_module(text)
    computation = next(c for c in module.computations if c.name == name)
    makers = makers_in_turn(computation, frozenset())
    assert {m for x, m in makers.items() if x.name == "iota.90.0"} == {made}


@pytest.mark.parametrize("opcode", ["dynamic-slice", "dynamic-update-slice"])
def test_a_dynamic_slice_named_after_its_opcode_lies_otherwise(opcode: str) -> None:
    operands = "%q, %i, %i" if opcode == "dynamic-slice" else "%q, %q, %i, %i"
    sizes = ", dynamic_slice_sizes={8,4}" if opcode == "dynamic-slice" else ""
    lines = [
        "%i = s32[] parameter(2)",
        f"%{opcode}.3.0 = f32[8,4]{{1,0}} {opcode}({operands}){sizes}, {op(opcode.replace('-', '_'))}",
    ]
    assert maker(f"{opcode}.3.0", *lines) == Maker.LAYOUT_NORMALIZATION


@pytest.mark.parametrize(
    ("reshaped", "made"), [("square", Maker.MOVED_CONVERTS), ("", Maker.LAYOUT_NORMALIZATION)]
)
def test_what_is_widened_behind_the_reshape_of_another_operation_was_moved(
    reshaped: str, made: Maker
) -> None:
    """So ConvertMover does; in another layout the bitcast would be a pass's."""
    lines = [
        "%n = bf16[8,4]{1,0} parameter(2)",
        "%bitcast.1.0 = bf16[2,4,4]{2,1,0} bitcast(%n)" + (f", {op(reshaped)}" if reshaped else ""),
        f"%convert.3.0 = f32[2,4,4]{{2,1,0}} convert(%bitcast.1.0), {op('convert_element_type')}",
    ]
    assert maker("convert.3.0", *lines) == made
