"""Narrow broadcasts that are read wide, where LayoutNormalization had made all of it anew."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_BODY = f"""  %p = bf16[8,4]{{1,0}} parameter(0)
  %c = bf16[] constant(0)
  %bitcast.1.0 = bf16[2,4,4]{{2,1,0}} bitcast(%p)
  %exponential.1.0 = bf16[2,4,4]{{2,1,0}} exponential(%bitcast.1.0){named("exp")}
  %broadcast.1.0 = bf16[2,4,4]{{2,1,0}} broadcast(%c), dimensions={{}}
  %compare.1.0 = pred[2,4,4]{{2,1,0}} compare(%exponential.1.0, %broadcast.1.0), direction=GT{named("gt")}
  %select.1.0 = bf16[2,4,4]{{2,1,0}} select(%compare.1.0, %exponential.1.0, %broadcast.1.0){named("where")}
  %convert.1.0 = f32[2,4,4]{{2,1,0}} convert(%broadcast.1.0)
  %convert.2.0 = f32[] convert(%c)
  %broadcast.2.0 = f32[2,4,4]{{2,1,0}} broadcast(%convert.2.0), dimensions={{}}
  %convert.3.0 = f32[2,4,4]{{2,1,0}} convert(%select.1.0)
  %maximum.1.0 = f32[2,4,4]{{2,1,0}} maximum(%convert.3.0, %broadcast.2.0){named("max")}
  ROOT %r = (f32[2,4,4]{{2,1,0}}) tuple(%maximum.1.0)"""
_IDS = "p c r bitcast.1.0 exponential.1.0 broadcast.1.0 compare.1.0 select.1.0 maximum.1.0"
_IDS += " convert.1.0 convert.2.0 broadcast.2.0 convert.3.0"


def test_the_convert_stands_where_that_stood_which_was_widened() -> None:
    """The maximum had been made anew last, and taken the place of the bitcast."""
    assert users_of("broadcast.1.0", _BODY, ids=_IDS) == ["convert.1.0", "compare.1.0", "select.1.0"]
    wide = _BODY.replace("maximum(%convert.3.0, %broadcast.2.0)", "maximum(%select.1.0, %broadcast.1.0)")
    lines = [x for x in wide.splitlines() if "convert" not in x and "%broadcast.2.0" not in x]
    ids = " ".join(x for x in _IDS.split() if "convert" not in x and x != "broadcast.2.0")
    same = "\n".join(lines).replace("bf16", "f32")
    assert users_of("broadcast.1.0", same, ids=ids) == ["maximum.1.0", "compare.1.0", "select.1.0"]


def test_of_several_that_were_widened_the_first_leaves_its_convert() -> None:
    """The others' converts were the last when they went: nobody takes their places."""
    second = _BODY.replace("ROOT %r = (f32[2,4,4]{2,1,0}) tuple(%maximum.1.0)", "%LAST")
    second = second.replace(
        "%LAST",
        """%maximum.2.0 = f32[2,4,4]{2,1,0} maximum(%maximum.1.0, %broadcast.2.0)METADATA
  ROOT %r = (f32[2,4,4]{2,1,0}) tuple(%maximum.2.0)""".replace("METADATA", named("max")),
    )
    ids = _IDS.replace("maximum.1.0", "maximum.1.0 maximum.2.0")
    assert users_of("broadcast.1.0", second, ids=ids) == ["convert.1.0", "compare.1.0", "select.1.0"]


@pytest.mark.parametrize(
    ("opcode", "users"), [("add", ["add.2.0", "add.1.0"]), ("divide", ["divide.1.0", "divide.2.0"])]
)
def test_the_last_user_takes_a_converts_place_where_broadcasts_were_one_before(
    opcode: str, users: list[str]
) -> None:
    """Devices that add in bf16 have Triton, for which HloCSE runs before anything is widened."""
    result = "  ROOT %r = (f32[2,4,4]{2,1,0}) tuple(%maximum.1.0)"
    end = f"""  %{opcode}.1.0 = bf16[2,4,4]{{2,1,0}} {opcode}(%select.1.0, %broadcast.1.0){named(opcode)}
  %convert.4.0 = f32[2,4,4]{{2,1,0}} convert(%{opcode}.1.0)
  %maximum.2.0 = f32[2,4,4]{{2,1,0}} maximum(%convert.4.0, %broadcast.2.0){named("max")}
  %{opcode}.2.0 = bf16[2,4,4]{{2,1,0}} {opcode}(%{opcode}.1.0, %broadcast.1.0){named(opcode)}
  ROOT %r = (f32[2,4,4]{{2,1,0}}, f32[2,4,4]{{2,1,0}}, bf16[2,4,4]{{2,1,0}}) \
tuple(%maximum.1.0, %maximum.2.0, %{opcode}.2.0)"""
    ids = _IDS.replace("maximum.1.0", f"maximum.1.0 maximum.2.0 {opcode}.1.0 {opcode}.2.0")
    ids += " convert.4.0"
    listed = users_of("broadcast.1.0", _BODY.replace(result, end), ids=ids)
    assert listed == ["convert.1.0", "compare.1.0", "select.1.0", *users]


_MOVED = f"""  %p = bf16[8,16]{{1,0}} parameter(0)
  %i = s32[4,1]{{1,0}} parameter(1)
  %gather.1 = bf16[4,1,16]{{2,1,0}} gather(%p, %i), offset_dims={{1,2}}, collapsed_slice_dims={{}}, \
start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,16}}{named("gather")}
  %c = bf16[] constant(1)
  %one = bf16[4,1,16]{{2,1,0}} broadcast(%c), dimensions={{}}
  %add.1 = bf16[4,1,16]{{2,1,0}} add(%gather.1, %one){named("add")}
  %convert.1 = f32[4,1,16]{{2,1,0}} convert(%add.1)
  %convert.4 = f32[] convert(%c)
  %wide = f32[4,1,16]{{2,1,0}} broadcast(%convert.4), dimensions={{}}
  %div.1 = f32[4,1,16]{{2,1,0}} divide(%wide, %convert.1){named("div")}
  %convert.2 = f32[4,1,16]{{2,1,0}} convert(%gather.1)
  %div.2 = f32[4,1,16]{{2,1,0}} divide(%wide, %convert.2){named("div")}
  ROOT %r = (f32[4,1,16]{{2,1,0}}, f32[4,1,16]{{2,1,0}}) tuple(%div.1, %div.2)
  %convert.3 = f32[4,1,16]{{2,1,0}} convert(%one)"""


def test_a_row_taken_was_read_through_a_reshape_that_moved_behind_all_that_read_it() -> None:
    """1 / (row + 1) and 1 / row: the last, widened since, took the place of the reshape.

    Each had a one of its own, made when they had been moved; of the ones that of the first quotient was met
    first.
    """
    ids = "p i c r gather.1 - wide add.1 div.2 div.1 one convert.1 convert.2 convert.3 convert.4"
    assert users_of("gather.1", _MOVED, ids=ids) == ["convert.2", "add.1"]
    assert users_of("one", _MOVED, ids=ids) == ["convert.3", "add.1"]
    ids = ids.replace(" one", "").replace("wide", "wide one")
    assert users_of("one", _MOVED, ids=ids) == ["add.1", "convert.3"]


_SIGMOIDS = """  %p = bf16[16,4]{1,0} parameter(0)
  %q = bf16[16,4]{1,0} parameter(1)
  %c = bf16[] constant(1)
  %one = bf16[16,4]{1,0} broadcast(%c), dimensions={}
  %add.2.0 = bf16[16,4]{1,0} add(%p, %one)
  %convert.1.0 = f32[16,4]{1,0} convert(%add.2.0)
  %convert.6.0 = f32[] convert(%c)
  %wide = f32[16,4]{1,0} broadcast(%convert.6.0), dimensions={}
  %div.2.0 = f32[16,4]{1,0} divide(%wide, %convert.1.0)
  %convert.2.0 = bf16[16,4]{1,0} convert(%div.2.0)
  %add.3.0 = bf16[16,4]{1,0} add(%q, %one)
  %convert.4.0 = f32[16,4]{1,0} convert(%add.3.0)
  %div.3.0 = f32[16,4]{1,0} divide(%WIDE, %convert.4.0)
  %convert.5.0 = bf16[16,4]{1,0} convert(%div.3.0)
  %sub.3.0 = bf16[16,4]{1,0} subtract(%one, %convert.2.0)
  %sub.4.0 = bf16[16,4]{1,0} subtract(%one, %convert.5.0)
  %mul.6.0 = bf16[16,4]{1,0} multiply(%sub.3.0, %sub.4.0)
  %sub.5.0 = bf16[16,4]{1,0} subtract(%one, %mul.6.0)
  %all = (bf16[16,4], bf16[16,4], bf16[16,4]) tuple(%convert.2.0, %convert.5.0, %mul.6.0)
  ROOT %r = ((bf16[16,4], bf16[16,4], bf16[16,4]), bf16[16,4]) tuple(%all, %sub.5.0)
  %convert.7 = f32[16,4]{1,0} convert(%one)"""


def test_of_several_that_were_widened_each_had_a_convert() -> None:
    """XLA was asked for both sigmoids; of one the convert stands where the division stood."""
    both, one = _SIGMOIDS.replace("WIDE", "wide"), _SIGMOIDS.replace("WIDE", "convert.1.0")
    places = ["add.2.0", "convert.7", "add.3.0"]
    assert users_of("one", both) == [*places, "sub.5.0", "sub.3.0", "sub.4.0"]
    assert users_of("one", one) == [*places, "sub.3.0", "sub.4.0", "sub.5.0"]


@pytest.mark.parametrize(
    ("reader", "users"), [("", ["half", "scaled", "spread"]), ("%half", ["scaled", "half", "spread"])]
)
def test_a_convert_that_nobody_reads_any_more_stood_where_its_broadcast_is_read(
    reader: str, users: list[str]
) -> None:
    """A walk comes to it last; what is read later in the program came later still."""
    last = f"negate({reader})" if reader else "parameter(2)"
    body = f"""  %bias = f32[4]{{0}} parameter(0)
  %x = f32[8,4]{{1,0}} parameter(1)
  %spread = f32[8,4]{{1,0}} broadcast(%bias), dimensions={{1}}{named("add")}
  %sum = f32[8,4]{{1,0}} add(%x, %spread){named("add")}
  %scaled = f32[4]{{0}} multiply(%bias, %bias){named("mul")}
  %half = bf16[4]{{0}} convert(%bias){named("convert_element_type")}
  %narrow = bf16[8,4]{{1,0}} broadcast(%half), dimensions={{1}}{named("add")}
  %back = f32[8,4]{{1,0}} convert(%narrow)
  %last = bf16[4]{{0}} {last}
  ROOT %r = (f32[8,4]{{1,0}}, f32[4]{{0}}, bf16[4]{{0}}) tuple(%sum, %scaled, %last)"""
    assert users_of("bias", body) == users


def _silu(number: int, value: str) -> str:
    def place(operation: str) -> str:
        return named(f"jit(silu)/{operation}", frame=number)

    return f"""  %add.{number}.0 = bf16[16,4]{{1,0}} add(%{value}, %one){place("add")}
  %convert.{number}.0 = f32[16,4]{{1,0}} convert(%add.{number}.0)
  %div.{number}.0 = f32[16,4]{{1,0}} divide(%wide, %convert.{number}.0){place("div")}
  %convert.{number}.1 = bf16[16,4]{{1,0}} convert(%div.{number}.0)
  %sub.{number}.0 = bf16[16,4]{{1,0}} subtract(%one, %convert.{number}.1){place("sub")}"""


def test_the_converts_stood_next_to_what_the_walk_meets_before_them() -> None:
    """The call that CSE met first stands later in the text: CSE kept the convert of the other one."""
    body = f"""  %p = bf16[16,4]{{1,0}} parameter(0)
  %q = bf16[16,4]{{1,0}} parameter(1)
  %c = bf16[] constant(1)
  %one = bf16[16,4]{{1,0}} broadcast(%c), dimensions={{}}{named("jit(silu)")}
  %convert.6.0 = f32[] convert(%c)
  %wide = f32[16,4]{{1,0}} broadcast(%convert.6.0), dimensions={{}}
{_silu(2, "q")}
{_silu(1, "p")}
  ROOT %r = (bf16[16,4]{{1,0}}, bf16[16,4]{{1,0}}) tuple(%sub.2.0, %sub.1.0)
  %convert.7 = f32[16,4]{{1,0}} convert(%one)"""
    ids = "p q c one add.1.0 div.1.0 sub.1.0 add.2.0 div.2.0 sub.2.0 r convert.6.0 wide convert.1.0"
    ids += " convert.2.0 convert.1.1 convert.2.1 convert.7"
    assert users_of("one", body, ids=ids) == ["add.1.0", "sub.2.0", "sub.1.0", "add.2.0", "convert.7"]
