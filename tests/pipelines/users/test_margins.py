"""Values of which margins were taken away, or that were given one."""

from __future__ import annotations

import pytest

from .lists import named, users_of


def _trimmed(parts: str, *, last: str = "", again: str = "") -> str:
    """A value with slices, `start:limit` of each in `parts`, and what reads a slice `again` behind them."""
    cut = [part.split(":") for part in parts.split()]
    lines = "\n".join(
        f"  %s{k}.1 = f32[{int(end) - int(start)}]{{0}} slice(%x.1), slice={{[{start}:{end}]}}"
        f"{named('jvp()/pad')}\n"
        f"  %r{k}.1 = f32[{int(end) - int(start)}]{{0}} negate(%s{k}.1){named('neg')}"
        for k, (start, end) in enumerate(cut)
    )
    read = [f"f32[{int(end) - int(start)}]{{0}} %r{k}.1" for k, (start, end) in enumerate(cut)]
    results = [*read, "f32[8]{0} %o.1", *([f"f32[7]{{0}} %{again}"] if again else [])]
    shapes = ", ".join(r.split()[0] for r in results)
    return f"""  %p = f32[8]{{0}} parameter(0)
  %x.1 = f32[8]{{0}} add(%p, %p){named("add_any")}
{lines}
  %o.1 = f32[8]{{0}} sine(%x.1){named("sin")}
{last}  ROOT %t = ({shapes}) tuple({", ".join(r.split()[1] for r in results)})"""


@pytest.mark.parametrize("ids_known", [True, False])
@pytest.mark.parametrize(
    ("parts", "users"),
    [
        ("0:7 1:8", ["s1.1", "o.1", "s0.1"]),
        ("1:8 0:7", ["s1.1", "o.1", "s0.1"]),
        ("0:7 1:8 2:8", ["s2.1", "o.1", "s0.1", "s1.1"]),
        ("0:7 1:7", ["s0.1", "s1.1", "o.1"]),
        ("0:7", ["s0.1", "o.1"]),
    ],
)
def test_slices_of_one_pad_come_behind_and_the_last_where_it_stood(
    parts: str, users: list[str], ids_known: bool
) -> None:
    """Not where one was cut out of the middle: no pad of ours took away both margins."""
    assert users_of("x.1", _trimmed(parts), ids_known=ids_known) == users


def test_a_pad_read_twice_goes_before_it_is_merged() -> None:
    last = f"  %again.1 = f32[7]{{0}} cosine(%s1.1){named('cos')}\n"
    body = _trimmed("0:7 1:8", last=last, again="again.1")
    assert users_of("x.1", body) == ["s0.1", "s1.1", "o.1"]


def test_so_does_one_read_twice_through_a_convert() -> None:
    last = "".join(
        f"  %{name}.1 = bf16[7]{{0}} {opcode}(%narrow.1){named(name)}\n"
        for name, opcode in (("cos", "cosine"), ("exp", "exponential"))
    )
    narrow = "  %narrow.1 = bf16[7]{0} convert(%s1.1)\n"
    again = f"  %again.1 = pred[7]{{0}} compare(%cos.1, %exp.1), direction=LT{named('lt')}\n"
    body = _trimmed("0:7 1:8", last=narrow + last + again, again="again.1").replace(
        f"negate(%s1.1){named('neg')}", "constant({1, 2, 3, 4, 5, 6, 7})"
    )
    assert users_of("x.1", body) == ["s0.1", "s1.1", "o.1"]


@pytest.mark.parametrize(
    ("padding", "name", "frame", "users"),
    [
        ("1_0", "concatenate", 1, ["tail.1", "odd.1", "even.1"]),
        ("0_1", "concatenate", 1, ["tail.1", "even.1", "odd.1"]),
        ("1_0", "pad", 1, ["tail.1", "even.1", "odd.1"]),
        ("1_0", "concatenate", 2, ["tail.1", "even.1", "odd.1"]),
    ],
)
def test_the_last_takes_the_place_of_a_slice_of_the_margin(
    padding: str, name: str, frame: int, users: list[str]
) -> None:
    """The function that takes the slices puts the margin in front of its own result again."""
    body = f"""  %p = f32[7]{{0}} parameter(0)
  %one.1 = f32[] constant(1)
  %x.1 = f32[8]{{0}} pad(%p, %one.1), padding=1_0{named("concatenate", frame=3)}
  %even.1 = f32[4]{{0}} slice(%x.1), slice={{[0:7:2]}}{named("jit(cumprod)/slice", frame=1)}
  %odd.1 = f32[4]{{0}} slice(%x.1), slice={{[1:8:2]}}{named("jit(cumprod)/slice", frame=1)}
  %m.1 = f32[4]{{0}} multiply(%even.1, %odd.1){named("jit(cumprod)/mul", frame=1)}
  %first.1 = f32[3]{{0}} slice(%m.1), slice={{[0:3]}}{named("jit(cumprod)/slice", frame=1)}
  %tail.1 = f32[3]{{0}} slice(%x.1), slice={{[2:8:2]}}{named("jit(cumprod)/slice", frame=1)}
  %n.1 = f32[3]{{0}} multiply(%first.1, %tail.1){named("jit(cumprod)/mul", frame=1)}
  ROOT %c.1 = f32[4]{{0}} pad(%n.1, %one.1), padding={padding}{named(f"jit(cumprod)/{name}", frame=frame)}"""
    assert users_of("x.1", body) == users


@pytest.mark.parametrize(
    ("name", "users"),
    [("pad", ["back.1", "front.1"]), ("mul", ["front.1", "back.1"])],
    ids=["gradients of pads", "slices that were sunk"],
)
def test_slices_of_a_young_value_were_not_sunk_if_they_had_been_pads(name: str, users: list[str]) -> None:
    """A number that was taken in makes the value young: ids run on by chance."""
    body = f"""  %p = f32[4]{{0}} parameter(0)
  %mul.1 = f32[4]{{0}} multiply(%p, %p){named("mul")}
  %front.1 = f32[3]{{0}} slice(%mul.1), slice={{[0:3]}}{named(name)}
  %back.1 = f32[3]{{0}} slice(%mul.1), slice={{[1:4]}}{named(name)}
  ROOT %r = (f32[3]{{0}}, f32[3]{{0}}) tuple(%front.1, %back.1)"""
    assert users_of("mul.1", body, ids="p r mul.1 front.1 back.1") == users


def test_pads_of_two_functions_are_not_one() -> None:
    """Each has a number of its own to pad with, and goes for itself."""
    body = _trimmed("0:7 1:8").replace("jvp()/pad", "jvp(jit(cumprod))/pad", 1)
    assert users_of("x.1", body) == ["s0.1", "s1.1", "o.1"]
