"""Who made an instruction last: broadcasts, iotas, and the reshapes in between."""

from __future__ import annotations

import pytest

from hlofuse.pipelines.likely_ids.maker import Maker

from .made import MUL, maker, op

IOTA = f"%iota.5.0 = s32[8]{{0}} iota(), iota_dimension=0, {op('iota')}"


def test_a_slice_of_what_had_been_reshaped_is_as_young_as_that() -> None:
    bitcast = "%bitcast.1 = f32[8,1]{1,0} bitcast(%p)"
    moved = f"%mul.1.0 = f32[8,1]{{1,0}} multiply(%bitcast.1, %bitcast.1), {op('mul')}"
    slice_ = f"%slice.1 = f32[4,1]{{1,0}} slice(%mul.1.0), slice={{[0:4], [0:1]}}, {op('dynamic_slice')}"
    known = f"%dynamic_slice.5.0 = f32[4]{{0}} slice(%mul.5.0), slice={{[0:4]}}, {op('dynamic_slice')}"
    assert maker("slice.1", MUL, known, bitcast, moved, slice_) == Maker.SIMPLIFIER_AGAIN


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


def test_what_is_selected_where_a_product_is_nothing_was_spread_for_that() -> None:
    constant = "%constant.1.0 = f32[] constant(0)"
    spread = "%broadcast.1.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}"
    told = "%gt.1.0 = pred[8]{0} compare(%p, %mul.5.0), direction=GT"
    for path, expected in (("mul", Maker.SIMPLIFIER), ("jit(_where)/select_n", Maker.FRONT_END)):
        line = f"%select.1 = f32[8]{{0}} select(%gt.1.0, %mul.5.0, %broadcast.1.0), {op(path)}"
        assert maker("broadcast.1.0", MUL, constant, spread, told, line, matrices=True) == expected


def test_it_was_spread_later_though_numbers_behind_it_seem_older() -> None:
    lines = ["%constant.1.0 = f32[] constant(7)", "%at = s32[] constant(0)"]
    lines += ["%broadcast.1.0 = f32[3,1]{1,0} broadcast(%constant.1.0), dimensions={}"]
    write = "dynamic-update-slice(%q, %broadcast.1.0, %at, %at)"
    lines += [f"%dynamic-update-slice.2.0 = f32[8,4]{{1,0}} {write}, {op('scatter')}"]
    for k in (2, 3):
        lines += [f"%broadcast.{k}.0 = f32[8]{{0}} broadcast(%constant.1.0), dimensions={{}}, {op('div')}"]
        lines += [f"%multiply.{k}.0 = f32[8]{{0}} multiply(%mul.5.0, %broadcast.{k}.0), {op('div')}"]
    assert maker("broadcast.1.0", MUL, *lines) == Maker.SIMPLIFIER_AGAIN


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


def test_a_number_that_only_a_pass_reads_is_the_pass_s() -> None:
    lines = (
        MUL,
        "%half = f32[] constant(0.5)",
        "%broadcast.5.0 = f32[8]{0} broadcast(%half), dimensions={}",
        f"%multiply.1.0 = f32[8]{{0}} multiply(%mul.5.0, %broadcast.5.0), {op('div')}",
    )
    assert maker("broadcast.5.0", *lines) == Maker.SIMPLIFIER


def test_a_number_that_has_a_place_in_the_source_was_spread_by_a_pass() -> None:
    constant = "%constant.1.0 = f32[] constant(0)"
    spread = "%broadcast.1.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}"
    compared = f"%ge.4.0 = pred[8]{{0}} compare(%mul.5.0, %broadcast.1.0), direction=GE, {op('ge')}"
    assert maker("broadcast.1.0", MUL, constant, spread, compared) == Maker.FRONT_END
    placed = f"{spread}, metadata={{stack_frame_id=7}}"
    assert maker("broadcast.1.0", MUL, constant, placed, compared) == Maker.SIMPLIFIER


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


@pytest.mark.parametrize(("number", "expected"), [(8, Maker.SIMPLIFIER), (7, Maker.FRONT_END)])
def test_a_row_that_had_dimensions_behind_was_spread_in_two(number: int, expected: Maker) -> None:
    """If two operations are missing in front of the broadcast: the first one, and a reshape."""
    name, told = "broadcast_in_dim", op("broadcast_in_dim")
    lines = (
        f"%{name}.5.0 = f32[8,4]{{1,0}} broadcast(%zero), dimensions={{}}, {told}",
        f"%{name}.{number}.0 = f32[2,8,4]{{2,1,0}} broadcast(%p), dimensions={{1}}, {told}",
    )
    assert maker(f"{name}.{number}.0", *lines) == expected


def test_what_spreads_a_product_is_the_programs() -> None:
    """The call stands where the product stood."""
    call = f'%call.1 = f32[8]{{0}} custom-call(%p), custom_call_target="x", {op("dot_general")}'
    spread = "f32[8,4]{1,0} broadcast(%call.1), dimensions={0}"
    line = f"%broadcast_in_dim.5.0 = {spread}, {op('broadcast_in_dim')}"
    assert maker("broadcast_in_dim.5.0", call, line) == Maker.FRONT_END


def test_what_is_spread_beside_what_one_operation_became_is_of_its_turn() -> None:
    """Of a reshape of an iota AlgebraicSimplifier makes products that are spread, in a function as well."""
    of, other = op("jit(_uniform)/iota_2x32_shape"), op("jit(_uniform)/mul")
    count = f"%multiply.3.0 = f32[8]{{0}} multiply(%p, %p), {of}"
    spread = "%broadcast.5.0 = f32[8,4]{1,0} broadcast(%multiply.3.0), dimensions={0}, "
    total = f"%add.2.0 = f32[8,4]{{1,0}} add(%broadcast.5.0, %q), {op('add')}"
    assert maker("broadcast.5.0", count, spread + of, total) == Maker.SIMPLIFIER
    assert maker("broadcast.5.0", count, spread + other, total) == Maker.SIMPLIFIER_AGAIN
