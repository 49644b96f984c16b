"""The order of users that passes before fusion leave, each case as XLA's records show it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.users import restore_users


def users_of(name: str, body: str, *, ids: list[str] | None = None) -> list[str]:
    module = parse_module(f"HloModule m\n\n{_REGION}\n\nENTRY %main {{\n{body}\n}}\n")
    if ids is not None:
        entry = module.entry
        entry.reorder(sorted(entry.instructions, key=lambda x: ids.index(x.name)))
    restore_users(module, ids_known=ids is not None)
    found = module.find(name)
    assert found is not None
    return [u.name for u in found.users]


_REGION = """%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}"""

_SOFTMAX = """  %p = bf16[32]{0} parameter(0)
  %widened = f32[32]{0} convert(%p)KEPT
  %zero = f32[] constant(0)
  %total = f32[] reduce(%widened, %zero), dimensions={0}, to_apply=%sum
  %each = f32[32]{0} broadcast(%total), dimensions={}
  %quotient = f32[32]{0} divide(%widened, %each)
  ROOT %r = bf16[32]{0} convert(%quotient)"""


def test_users_of_an_inserted_convert_come_as_the_walk_met_their_uses() -> None:
    """A convert for each user was merged by CSE, the divide's first: it is operand 0."""
    assert users_of("widened", _SOFTMAX.replace("KEPT", "")) == ["quotient", "total"]


def test_users_of_a_convert_of_the_program_stay_in_the_order_of_the_text() -> None:
    named = ', metadata={op_name="jit(f)/convert_element_type"}'
    assert users_of("widened", _SOFTMAX.replace("KEPT", named)) == ["total", "quotient"]


_WIDENED = """  %p = bf16[32]{0} parameter(0)
  %convert.1 = f32[32]{0} convert(%p)
  %x = f32[32]{0} multiply(%convert.1, %convert.1)
  %u = f32[32]{0} add(%x, %x)
  %v = f32[32]{0} subtract(%u, %x)
  %w = f32[32]{0} divide(%v, %x)
  %convert.2 = bf16[32]{0} convert(%w)"""


def test_the_convert_behind_what_was_widened_comes_first() -> None:
    body = f"""{_WIDENED}
  %convert.3 = bf16[32]{{0}} convert(%x)
  ROOT %r = (bf16[32]{{0}}, bf16[32]{{0}}) tuple(%convert.2, %convert.3)"""
    assert users_of("x", body) == ["convert.3", "u", "v", "w"]


def test_the_last_user_takes_the_place_of_a_convert_that_went() -> None:
    body = f"{_WIDENED}\n  ROOT %r = (bf16[32]{{0}}) tuple(%convert.2)"
    assert users_of("x", body) == ["w", "u", "v"]


def test_a_broadcast_swapped_with_a_convert_comes_last() -> None:
    body = """  %p = f32[32]{0} parameter(0)
  %x = f32[32]{0} rsqrt(%p)
  %new = f32[32,8]{1,0} broadcast(%x), dimensions={0}
  ROOT %r = f32[32,8]{1,0} negate(%new)
  %narrow = bf16[32]{0} convert(%x)
  %old = bf16[32,8]{1,0} broadcast(%narrow), dimensions={0}
  %dead = f32[32,8]{1,0} convert(%old)"""
    assert users_of("x", body) == ["narrow", "new"]


def test_a_convert_swapped_with_a_broadcast_comes_last() -> None:
    body = """  %p = bf16[32]{0} parameter(0)
  %x = bf16[32]{0} negate(%p)
  %lifted = f32[32]{0} convert(%x)
  %new = f32[32,8]{1,0} broadcast(%lifted), dimensions={0}
  ROOT %r = f32[32,8]{1,0} negate(%new)
  %old = bf16[32,8]{1,0} broadcast(%x), dimensions={0}
  %dead = f32[32,8]{1,0} convert(%old)"""
    assert users_of("x", body) == ["old", "lifted"]


def test_parts_of_a_split_reduction_come_behind_the_concatenate() -> None:
    name = 'metadata={op_name="jit(f)/reduce_sum"}'
    body = f"""  %p = f32[32]{{0}} parameter(0)
  %q = f32[32]{{0}} parameter(1)
  %x = f32[32]{{0}} negate(%p)
  %zero = f32[] constant(0)
  %part.1 = f32[] reduce(%x, %zero), dimensions={{0}}, to_apply=%sum, {name}
  %part.2 = f32[] reduce(%q, %zero), dimensions={{0}}, to_apply=%sum, {name}
  %whole = f32[] add(%part.1, %part.2), {name}
  %c = f32[64]{{0}} concatenate(%x, %q), dimensions={{0}}
  %last = f32[32]{{0}} exponential(%x)
  ROOT %r = (f32[], f32[64]{{0}}, f32[32]{{0}}) tuple(%whole, %c, %last)"""
    assert users_of("x", body) == ["c", "part.1", "last"]


def test_a_convert_counts_as_what_it_serves_among_users_of_a_slice() -> None:
    body = """  %p = bf16[32]{0} parameter(0)
  %x = bf16[16]{0} slice(%p), slice={[0:16]}
  %second = bf16[16]{0} negate(%x)
  %widened = f32[16]{0} convert(%x)
  %first = f32[16]{0} add(%widened, %widened)
  ROOT %r = (bf16[16]{0}, f32[16]{0}) tuple(%second, %first)"""
    assert users_of("x", body, ids=["p", "x", "first", "second", "widened", "r"]) == ["widened", "second"]
