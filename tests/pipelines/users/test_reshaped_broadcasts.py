"""Broadcasts of numbers that were reshaped for what ReshapeMover moved."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.duplicates.reshaped_broadcasts import with_moved_behind

from .lists import named, users_of

_SHARED = f"""  %p = f32[1,8]{{1,0}} parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %y = f32[8]{{0}} parameter(2)
  %rate = f32[] constant(0.1)
  %broadcast.9 = f32[1,8]{{1,0}} broadcast(%rate), dimensions={{}}
  %mul.1 = f32[1,8]{{1,0}} multiply(%p, %broadcast.9){named("mul", frame=1)}
  %bitcast.1 = f32[8]{{0}} bitcast(%mul.1){named("mul", frame=1)}
  %broadcast.1 = f32[8]{{0}} broadcast(%rate), dimensions={{}}NAME
  %mul.2 = f32[8]{{0}} multiply(%x, %broadcast.1){named("mul", frame=1)}
  %mul.3 = f32[8]{{0}} multiply(%y, %broadcast.1){named("mul", frame=1)}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%bitcast.1, %mul.2, %mul.3)"""


@pytest.mark.parametrize(("name", "users"), [("", ["mul.3", "mul.2"]), (named("f"), ["mul.2", "mul.3"])])
def test_what_was_moved_had_read_the_one_broadcast_of_a_number(name: str, users: list[str]) -> None:
    """An optimizer scales one array behind a reshape, two others as they are. The first was read first."""
    ids = "p x y rate broadcast.1 - mul.2 mul.3 r broadcast.9 mul.1 bitcast.1"
    assert users_of("broadcast.1", _SHARED.replace("NAME", name), ids=ids) == users


_KEYS = f"""  %p = u32[8]{{0}} parameter(0)
  %x = u32[8,1]{{1,0}} parameter(1)
  %y = u32[8,1]{{1,0}} parameter(2)
  %word = u32[] constant(466688986)
  %broadcast.9 = u32[8]{{0}} broadcast(%word), dimensions={{}}{named("split", frame=3)}
  %xor.1 = u32[8]{{0}} xor(%p, %broadcast.9){named("xor", frame=3)}
  %broadcast.2 = u32[8,1]{{1,0}} broadcast(%word), dimensions={{}}{named("split", frame=3)}
  %xor.2 = u32[8,1]{{1,0}} xor(%x, %broadcast.2){named("xor", frame=3)}
  %xor.3 = u32[8,1]{{1,0}} xor(%y, %broadcast.2){named("xor", frame=3)}
  ROOT %r = (u32[8]{{0}}, u32[8,1]{{1,0}}, u32[8,1]{{1,0}}) tuple(%xor.1, %xor.2, %xor.3)"""


@pytest.mark.parametrize(
    ("made", "users"), [("r broadcast.9 xor.1", ["xor.3", "xor.2"]), ("xor.1 r", ["xor.2", "xor.3"])]
)
def test_what_is_computed_without_ones_now_had_read_the_broadcast_with_them(
    made: str, users: list[str]
) -> None:
    """Unless it is as old as the program."""
    ids = "p x y word broadcast.2 - xor.2 xor.3 "
    ids += made if "broadcast.9" in made else f"broadcast.9 {made}"
    assert users_of("broadcast.2", _KEYS, ids=ids) == users


def _moved_and_kept(k: int) -> str:
    """An argument and the square of it times a number in front of a reshape, and another as it is."""
    mul = named("mul", frame=1)
    return f"""  %p.{k} = f32[1,8]{{1,0}} parameter({2 * k - 2})
  %x.{k} = f32[8]{{0}} parameter({2 * k - 1})
  %square.{k} = f32[1,8]{{1,0}} multiply(%p.{k}, %p.{k}){named("square", frame=1)}
  %mul.{k}1 = f32[1,8]{{1,0}} multiply(%square.{k}, %broadcast.9){mul}
  %bitcast.{k}1 = f32[8]{{0}} bitcast(%mul.{k}1){mul}
  %mul.{k}2 = f32[1,8]{{1,0}} multiply(%p.{k}, %broadcast.9){mul}
  %bitcast.{k}2 = f32[8]{{0}} bitcast(%mul.{k}2){mul}
  %square.{k}3 = f32[8]{{0}} multiply(%x.{k}, %x.{k}){named("square", frame=1)}
  %mul.{k}3 = f32[8]{{0}} multiply(%square.{k}3, %broadcast.1){mul}
  %mul.{k}4 = f32[8]{{0}} multiply(%x.{k}, %broadcast.1){mul}
"""


def test_what_reads_an_operation_that_was_moved_is_moved_a_round_later() -> None:
    """An optimizer's averages: CSE merged the reshapes for the arrays before it met those for the squares."""
    results = [
        f"{kind}.{k}{n}" for k in range(1, 4) for n, kind in enumerate(("bitcast",) * 2 + ("mul",) * 2, 1)
    ]
    kinds = ", ".join(["f32[8]{0}"] * len(results))
    body = """  %rate = f32[] constant(0.1)
  %broadcast.9 = f32[1,8]{1,0} broadcast(%rate), dimensions={}
  %broadcast.1 = f32[8]{0} broadcast(%rate), dimensions={}
"""
    body += "".join(map(_moved_and_kept, range(1, 4)))
    body += f"  ROOT %r = ({kinds}) tuple({', '.join(f'%{x}' for x in results)})"
    given = " ".join(f"p.{k} x.{k} square.{k}3 mul.{k}3 mul.{k}4" for k in range(1, 4))
    made = " ".join(f"square.{k} mul.{k}1 bitcast.{k}1 mul.{k}2 bitcast.{k}2" for k in range(1, 4))
    users = ["mul.23", "mul.24", "mul.13", "mul.14", "mul.33", "mul.34"]
    assert users_of("broadcast.1", body, ids=f"rate broadcast.1 {given} r broadcast.9 {made}") == users


@pytest.mark.parametrize(
    ("age", "is_moved", "users"),
    [
        (6, False, ["lt.1", "gt.0", "ge.1"]),
        (6, True, ["lt.1", "ge.1", "gt.0"]),
        (9, True, ["lt.1", "ge.1", "gt.0"]),
    ],
    ids=["of the program", "moved as well", "moved in a later round"],
)
def test_what_else_was_moved_stands_where_the_walk_has_it_beside_bounds_of_indices(
    age: int, is_moved: bool, users: list[str]
) -> None:
    body = f"""  %p = s32[8]{{0}} parameter(0)
  %q = f32[32]{{0}} parameter(1)
  %zero = s32[] constant(0)
  %lt.0 = s32[8]{{0}} broadcast(%zero), dimensions={{}}{named("lt")}
  %lt.1 = pred[8]{{0}} compare(%p, %lt.0), direction=LT{named("lt")}
  %index.1 = s32[8]{{0}} select(%lt.1, %p, %p){named("select_n")}
  %ge.1 = pred[8]{{0}} compare(%index.1, %lt.0), direction=GE{named("ge")}
  %at.1 = s32[8,1]{{1,0}} bitcast(%index.1)
  %gather.1 = f32[8,1]{{1,0}} gather(%q, %at.1), offset_dims={{1}}, collapsed_slice_dims={{}}, \
start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}
  %gt.0 = pred[8]{{0}} compare(%p, %lt.0), direction=GT{named("gt")}
  ROOT %r = (pred[8]{{0}}, f32[8,1]{{1,0}}, pred[8]{{0}}) tuple(%gt.0, %gather.1, %ge.1)"""
    entry = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n").entry
    broadcast, gt, ge = (next(x for x in entry if x.name == name) for name in ("lt.0", "gt.0", "ge.1"))
    gt.id, ge.id = age, 8
    met = broadcast.users if age == 6 else [u for u in broadcast.users if u is not gt]
    met = met if age == 6 else [met[0], gt, *met[1:]]
    listed = with_moved_behind(broadcast, met, frozenset([gt] if is_moved else []))
    assert [u.name for u in listed] == users
