"""Values that were copied to another layout before they were cut, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize("ids_known", [True, False])
@pytest.mark.parametrize(
    ("part", "ids", "users"),
    [
        ("split", "p x.1 r MADE", ["slice.3", "slice.1", "slice.2"]),
        ("slice", "p x.1 r MADE", ["slice.3", "slice.1", "slice.2"]),
        ("slice", "p x.1 MADE r", ["slice.2", "slice.3", "slice.1"]),
    ],
)
def test_the_last_part_takes_the_place_of_the_copy(
    part: str, ids: str, users: list[str], ids_known: bool
) -> None:
    """Of parts that the program itself has the order stays."""
    slices = "\n".join(
        f"  %slice.{k} = f32[8,4]{{1,0}} slice(%x.1), slice={{[0:8], [{4 * k - 4}:{4 * k}]}}{named(part)}\n"
        f"  %transpose.{k} = f32[4,8]{{1,0}} transpose(%slice.{k}), dimensions={{1,0}}{named(part)}"
        for k in (2, 3, 1)
    )
    body = f"""  %p = f32[8,12]{{1,0}} parameter(0)
  %x.1 = f32[8,12]{{1,0}} exponential(%p){named("exp")}
{slices}
  ROOT %r = (f32[4,8]{{1,0}}, f32[4,8]{{1,0}}, f32[4,8]{{1,0}})\
 tuple(%transpose.2, %transpose.3, %transpose.1)"""
    made = "slice.1 slice.2 slice.3 transpose.1 transpose.2 transpose.3"
    assert users_of("x.1", body, ids=ids.replace("MADE", made), ids_known=ids_known) == users


@pytest.mark.parametrize(("padded", "users"), [("x.1", ["pad.2", "pad.1"]), ("p", ["pad.1", "pad.2"])])
def test_so_it_is_with_what_pads_a_value_but_for_arguments(padded: str, users: list[str]) -> None:
    """For two convolutions, which read both in another layout."""
    body = f"""  %p = f32[8,12]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %q = f32[8,12]{{1,0}} parameter(1)
  %x.1 = f32[8,12]{{1,0}} exponential(%q){named("exp")}
  %pad.1 = f32[8,13]{{1,0}} pad(%{padded}, %zero), padding=0_0x0_1{named("exp")}
  %transpose.1 = f32[13,8]{{1,0}} transpose(%pad.1), dimensions={{1,0}}{named("exp")}
  %pad.2 = f32[9,12]{{1,0}} pad(%{padded}, %zero), padding=0_1x0_0{named("exp")}
  %transpose.2 = f32[12,9]{{1,0}} transpose(%pad.2), dimensions={{1,0}}{named("exp")}
  ROOT %r = (f32[13,8], f32[12,9]) tuple(%transpose.1, %transpose.2)"""
    ids = "p q zero x.1 r pad.1 pad.2 transpose.1 transpose.2"
    assert users_of(padded, body, ids=ids) == users


def test_converts_that_were_put_behind_narrow_parts_are_no_copies() -> None:
    """FloatNormalization does that, and the part before it is older than the next one."""
    body = f"""  %p = bf16[8,12]{{1,0}} parameter(0)
  %zero = bf16[] constant(0)
  %x.1 = bf16[8,12]{{1,0}} exponential(%p){named("exp")}
  %pad.1 = bf16[8,13]{{1,0}} pad(%x.1, %zero), padding=0_0x0_1
  %convert.1 = f32[8,13]{{1,0}} convert(%pad.1)
  %transpose.1 = f32[13,8]{{1,0}} transpose(%convert.1), dimensions={{1,0}}
  %pad.2 = bf16[9,12]{{1,0}} pad(%x.1, %zero), padding=0_1x0_0
  %convert.2 = f32[9,12]{{1,0}} convert(%pad.2)
  %transpose.2 = f32[12,9]{{1,0}} transpose(%convert.2), dimensions={{1,0}}
  ROOT %r = (f32[13,8], f32[12,9]) tuple(%transpose.1, %transpose.2)"""
    ids = "p zero x.1 r pad.1 convert.1 pad.2 convert.2 transpose.1 transpose.2"
    assert users_of("x.1", body, ids=ids) == ["pad.2", "pad.1"]


@pytest.mark.parametrize(("read", "is_copied"), [("pad", True), ("negate", True), ("neg", False)])
def test_so_it_is_where_the_copy_of_a_part_was_moved_on(read: str, is_copied: bool) -> None:
    """Behind what pads the part or is computed of it, which was made anew in front of it."""
    name, read = read, {"neg": "negate"}.get(read, read)
    said = named({"negate": "neg"}.get(read, read))
    rest = "%zero), padding=0_0x4_0" if read == "pad" else ""
    shape = "f32[8,8]{1,0}" if read == "pad" else "f32[8,4]{1,0}"
    body = f"""  %p = f32[64]{{0}} parameter(0)
  %zero = f32[] constant(0)
  %e = f32[64]{{0}} exponential(%p){named("exp")}
  %x.1 = f32[8,8]{{1,0}} bitcast(%e)
  %slice.1 = f32[8,4]{{1,0}} slice(%x.1), slice={{[0:8], [0:4]}}{named("split")}
  %transpose.1 = f32[4,8]{{1,0}} transpose(%slice.1), dimensions={{1,0}}{named("split")}
  %slice.2 = f32[8,4]{{1,0}} slice(%x.1), slice={{[0:8], [4:8]}}{named("split")}
  %{name}.2 = {shape} {read}(%slice.2{", " + rest if rest else ")"}{said}
  %copy.2 = {shape} transpose(%{name}.2), dimensions={{1,0}}{said}
  ROOT %r = (f32[4,8], {shape}) tuple(%transpose.1, %copy.2)"""
    ids = f"p zero e r x.1 slice.1 slice.2 {name}.2 transpose.1 copy.2"
    expected = ["slice.2", "slice.1"] if is_copied else ["slice.1", "slice.2"]
    assert users_of("x.1", body, ids=ids) == expected


@pytest.mark.parametrize("copied", [True, False])
def test_so_it_is_with_parts_of_a_merged_product(copied: bool) -> None:
    """Parts that are not copied come as they were cut."""
    behind = "transpose(%slice.K), dimensions={1,0}" if copied else "negate(%slice.K)"
    shape = "f32[4,8]{1,0}" if copied else "f32[8,4]{1,0}"
    name = named("dot_general")
    slices = "\n".join(
        f"  %slice.{k} = f32[8,4]{{1,0}} slice(%x.1), slice={{[0:8], [{4 * k - 4}:{4 * k}]}}{name}\n"
        f"  %end.{k} = {shape} {behind.replace('K', str(k))}{named('transpose')}"
        for k in (1, 2, 3)
    )
    body = f"""  %p = f32[96]{{0}} parameter(0)
  %x.1 = f32[8,12]{{1,0}} bitcast(%p){named("dot_general")}
{slices}
  ROOT %r = ({shape}, {shape}, {shape}) tuple(%end.1, %end.2, %end.3)"""
    parts = ["slice.1", "slice.2", "slice.3"]
    ids = "p r x.1 slice.1 slice.2 slice.3 end.1 end.2 end.3"
    assert users_of("x.1", body, ids=ids) == ([parts[-1], *parts[:-1]] if copied else parts)


@pytest.mark.parametrize(
    ("part", "users"),
    [("slice.1.0", ["transpose.1.0", "multiply.1.0"]), ("split.1.0", ["multiply.1.0", "transpose.1.0"])],
)
def test_the_copy_of_a_part_comes_in_front_of_what_it_was_moved_behind(part: str, users: list[str]) -> None:
    """A part of the program was not copied so."""
    body = f"""  %p = f32[8,16,8]{{2,1,0}} parameter(0)
  %{part} = f32[8,16,4]{{2,1,0}} slice(%p), slice={{[0:8],[0:16],[0:4]}}{named("split")}
  %multiply.1.0 = f32[8,16,4]{{2,1,0}} multiply(%{part}, %{part}){named("integer_pow")}
  %transpose.1.0 = f32[8,4,16]{{2,1,0}} transpose(%{part}), dimensions={{0,2,1}}{named("split")}
  ROOT %r = (f32[8,16,4]{{2,1,0}}, f32[8,4,16]{{2,1,0}}) tuple(%multiply.1.0, %transpose.1.0)"""
    assert users_of(part, body, ids=f"p r {part} multiply.1.0 transpose.1.0") == users


@pytest.mark.parametrize(
    ("copied", "ids", "users"),
    [
        ("div", "p difference.1 divide.1 r", ["copy.1", "multiply.1", "difference.1"]),
        ("div", "p divide.1 difference.1 r", ["copy.1", "difference.1", "multiply.1"]),
        ("neg", "p difference.1 divide.1 r", ["copy.1", "difference.1", "multiply.1"]),
    ],
)
def test_older_readers_come_behind_what_was_made_anew_in_front_of_a_copy(
    copied: str, ids: str, users: list[str]
) -> None:
    """They read it from when the copy back cancelled the copy."""
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %divide.1 = f32[8,4]{{1,0}} divide(%p, %p){named("div")}
  %copy.1 = f32[4,8]{{1,0}} transpose(%divide.1), dimensions={{1,0}}{named(copied)}
  %difference.1 = f32[8,4]{{1,0}} subtract(%p, %divide.1){named("difference")}
  %multiply.1 = f32[8,4]{{1,0}} multiply(%divide.1, %difference.1){named("mul")}
  ROOT %r = (f32[4,8]{{1,0}}, f32[8,4]{{1,0}}) tuple(%copy.1, %multiply.1)"""
    assert users_of("divide.1", body, ids=ids.replace(" r", " multiply.1 copy.1 r")) == users


@pytest.mark.parametrize(
    ("operand", "users"),
    [("exponential", ["transpose.1", "mul.1"]), ("bitcast", ["mul.1", "transpose.1"])],
)
def test_so_does_the_copy_of_what_was_computed_in_front_of_it(operand: str, users: list[str]) -> None:
    """What a library gives, behind a bitcast, is copied for each that reads it."""
    name = named("convert_element_type")
    body = f"""  %p = f64[8,16]{{1,0}} parameter(0)
  %x.1 = f64[8,16]{{1,0}} {operand}(%p){named("exp")}
  %convert.1 = f32[8,16]{{1,0}} convert(%x.1){name}
  %mul.1 = f32[8,16]{{1,0}} multiply(%convert.1, %convert.1){named("integer_pow")}
  %transpose.1 = f32[16,8]{{1,0}} transpose(%convert.1), dimensions={{1,0}}{name}
  ROOT %r = (f32[8,16]{{1,0}}, f32[16,8]{{1,0}}) tuple(%mul.1, %transpose.1)"""
    assert users_of("convert.1", body, ids="p convert.1 mul.1 transpose.1 x.1 r") == users


def test_nor_does_that_of_a_part_of_what_a_library_gives() -> None:
    """cuDNN gives the gradient of a kernel beside what it worked in."""
    name = named("transpose(jvp())/convert_element_type")
    body = f"""  %p = bf16[8,16]{{1,0}} parameter(0)
  %conv.1 = (bf16[8,16]{{1,0}}, u8[0]{{0}}) custom-call(%p), custom_call_target="__cudnn$convForward"
  %part.1 = bf16[8,16]{{1,0}} get-tuple-element(%conv.1), index=0
  %convert.1 = f32[8,16]{{1,0}} convert(%part.1){name}
  %mul.1 = f32[8,16]{{1,0}} multiply(%convert.1, %convert.1){named("square")}
  %transpose.1 = f32[16,8]{{1,0}} transpose(%convert.1), dimensions={{1,0}}{name}
  ROOT %r = (f32[8,16]{{1,0}}, f32[16,8]{{1,0}}) tuple(%mul.1, %transpose.1)"""
    ids = "p conv.1 part.1 r convert.1 transpose.1 mul.1"
    assert users_of("convert.1", body, ids=ids) == ["mul.1", "transpose.1"]


@pytest.mark.parametrize(
    ("made_of", "users"),
    [
        ("parameter(2)", True),
        ("broadcast(%q), dimensions={0}", False),
        ("transpose(%t), dimensions={1,0}", False),
    ],
    ids=["parameter", "broadcast", "transpose"],
)
def test_what_takes_any_layout_or_was_copied_to_this_one_is_copied_by_who_reads_it(
    made_of: str, users: bool
) -> None:
    """LayoutAssignment copied it for that reader alone, and no copy was moved."""
    name = named("convert_element_type")
    body = f"""  %q = f64[8]{{0}} parameter(0)
  %t = f64[16,8]{{1,0}} parameter(1)
  %p = f64[8,16]{{1,0}} {made_of}
  %x.1 = f64[8,16]{{1,0}} exponential(%p){named("exp")}
  %convert.1 = f32[8,16]{{1,0}} convert(%x.1){name}
  %mul.1 = f32[8,16]{{1,0}} multiply(%convert.1, %convert.1){named("integer_pow")}
  %transpose.1 = f32[16,8]{{1,0}} transpose(%convert.1), dimensions={{1,0}}{name}
  ROOT %r = (f32[8,16]{{1,0}}, f32[16,8]{{1,0}}) tuple(%mul.1, %transpose.1)"""
    expected = ["transpose.1", "mul.1"] if users else ["mul.1", "transpose.1"]
    assert users_of("convert.1", body, ids="q t p convert.1 mul.1 transpose.1 x.1 r") == expected


@pytest.mark.parametrize(
    ("window", "users"),
    [
        ("1x16 pad=0_0x15_0", ["transpose.1.0", "slice.1.0"]),
        ("8x1 pad=7_0x0_0", ["slice.1.0", "transpose.1.0"]),
    ],
)
def test_so_does_that_of_cumulative_sums(window: str, users: list[str]) -> None:
    """Those along another dimension than the last have the layout of what they read."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %reduce-window.1.0 = f32[8,16]{{1,0}} reduce-window(%p, %zero), window={{size={window}}}, to_apply=%sum
  %slice.1.0 = f32[8,1]{{1,0}} slice(%reduce-window.1.0), slice={{[0:8], [15:16]}}
  %transpose.1.0 = f32[16,8]{{1,0}} transpose(%reduce-window.1.0), dimensions={{1,0}}
  ROOT %r = (f32[8,1]{{1,0}}, f32[16,8]{{1,0}}) tuple(%slice.1.0, %transpose.1.0)"""
    assert users_of("reduce-window.1.0", body) == users


def test_what_a_copy_behind_a_bitcast_was_moved_behind_comes_as_it_was_made() -> None:
    body = f"""  %p = f32[128]{{0}} parameter(0)
  %bitcast.1 = f32[8,16]{{1,0}} bitcast(%p){named("div")}
  %add.7 = f32[8,16]{{1,0}} add(%bitcast.1, %bitcast.1){named("add")}
  %multiply.1 = f32[8,16]{{1,0}} multiply(%bitcast.1, %bitcast.1){named("square")}
  %transpose.1 = f32[16,8]{{1,0}} transpose(%bitcast.1), dimensions={{1,0}}{named("div")}
  ROOT %r = (f32[8,16]{{1,0}}, f32[8,16]{{1,0}}, f32[16,8]{{1,0}}) tuple(%add.7, %multiply.1, %transpose.1)"""
    ids = "p r bitcast.1 multiply.1 add.7 transpose.1"
    assert users_of("bitcast.1", body, ids=ids) == ["transpose.1", "multiply.1", "add.7"]


@pytest.mark.parametrize("copied", [True, False])
def test_reductions_in_front_of_which_the_copy_was_moved_are_made_anew_behind_it(copied: bool) -> None:
    """ReduceDecomposer makes those that are copied anew, row-major."""
    behind = "transpose(%reduce.K), dimensions={1,0}" if copied else "negate(%reduce.K)"
    reductions = "\n".join(
        f"  %reduce.{k} = f32[8,8]{{1,0}} reduce(%multiply.1, %zero), dimensions={{0}}, to_apply=%sum{name}\n"
        f"  %made.{k} = f32[8,8]{{1,0}} {behind.replace('K', str(k))}{name}"
        for k, name in enumerate((named("reduce_max"), named("reduce_sum")), 1)
    )
    body = f"""  %p = f32[4,8,8]{{2,1,0}} parameter(0)
  %q = f32[4,8,8]{{2,1,0}} parameter(1)
  %zero = f32[] constant(0)
  %multiply.1 = f32[4,8,8]{{2,1,0}} multiply(%p, %q){named("mul")}
{reductions}
  %transpose.1 = f32[8,8,4]{{2,1,0}} transpose(%multiply.1), dimensions={{2,1,0}}{named("mul")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}, f32[8,8,4]{{2,1,0}}) tuple(%made.1, %made.2, %transpose.1)"""
    ids = "p q zero r multiply.1 transpose.1 made.1 made.2 reduce.1 reduce.2"
    made = ["reduce.1", "reduce.2"]
    expected = ["transpose.1", *made] if copied else [*made, "transpose.1"]
    assert users_of("multiply.1", body, ids=ids) == expected


def test_what_is_added_to_a_product_was_moved_in_front_of_the_copy_too() -> None:
    """The sum was; the product reads the value through a bitcast in its place."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %q = f32[8,16]{{1,0}} parameter(1)
  %add.1 = f32[8,16]{{1,0}} add(%p, %q){named("add")}
  %div.1 = f32[8,16]{{1,0}} divide(%add.1, %q){named("div")}
  %mul.1 = f32[8,16]{{1,0}} multiply(%add.1, %add.1){named("mul")}
  %bitcast.1 = f32[8,16]{{1,0}} bitcast(%add.1){named("add")}
  %call = (f32[8,16]{{1,0}}, s8[4]{{0}}) custom-call(%p, %q, %bitcast.1), \
custom_call_target="__cublas$lt$matmul", backend_config={{"gemm_backend_config":{{"beta":1}}}}
  %z = f32[8,16]{{1,0}} get-tuple-element(%call), index=0
  %transpose.1 = f32[16,8]{{1,0}} transpose(%add.1), dimensions={{1,0}}{named("add")}
  ROOT %r = (f32[8,16]{{1,0}}, f32[8,16]{{1,0}}, f32[8,16]{{1,0}}, f32[16,8]{{1,0}})\
 tuple(%div.1, %mul.1, %z, %transpose.1)"""
    ids = "p q r add.1 mul.1 div.1 transpose.1 bitcast.1 call z"
    assert users_of("add.1", body, ids=ids) == ["transpose.1", "mul.1", "div.1", "bitcast.1"]


@pytest.mark.parametrize(
    ("reader", "users"),
    [("__cublas$gemm", ["convert.1", "transpose.1"]), ("other", ["transpose.1", "convert.1"])],
    ids=["a product", "what is no product"],
)
def test_a_product_that_reads_what_was_copied_for_another_did_so_ahead_of_the_copy(
    reader: str, users: list[str]
) -> None:
    name = named("convert_element_type")
    body = f"""  %p = f8e4m3fn[1,8,16]{{2,1,0}} parameter(0)
  %q = f8e4m3fn[1,8,16]{{2,1,0}} parameter(1)
  %clamp.1 = f8e4m3fn[1,8,16]{{2,1,0}} maximum(%p, %q){name}
  %bitcast.1 = f8e4m3fn[8,16]{{1,0}} bitcast(%clamp.1){name}
  %convert.1 = f16[8,16]{{1,0}} convert(%bitcast.1){named("dot_general")}
  %dot.1 = f16[8,16]{{1,0}} custom-call(%convert.1), custom_call_target="{reader}"
  %transpose.1 = f8e4m3fn[16,8]{{1,0}} transpose(%bitcast.1), dimensions={{1,0}}{name}
  ROOT %r = (f16[8,16]{{1,0}}, f8e4m3fn[16,8]{{1,0}}) tuple(%dot.1, %transpose.1)"""
    ids = "p q clamp.1 bitcast.1 transpose.1 convert.1 dot.1 r"
    assert users_of("bitcast.1", body, ids=ids) == users
