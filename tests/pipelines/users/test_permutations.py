"""Whatever a program looks like, its users are put in another order and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlofuse.ir import Module, parse_module
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.reordering import reorder_users
from hlofuse.pipelines.users import restore

from ...running import find
from .lists import named, users_as_guessed, users_of
from .random_programs import random_program


def _restored_strictly(module: Module, *, ids_known: bool) -> None:
    """Restore users; rules that list others fail here, though no more comes of it than a wrong order."""

    def strictly(value: Instruction, order: Sequence[Instruction]) -> bool:
        assert sorted(order, key=id) == sorted(value.users, key=id), [u.name for u in order]
        return reorder_users(value, order)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(restore, "reorder_users", strictly)
        restore.restore_users(module, ids_known=ids_known)


@settings(max_examples=150)
@given(st.integers(0, 1 << 32), st.sampled_from((15, 40, 80)), st.booleans(), st.booleans())
def test_a_list_keeps_its_users(seed: int, size: int, ids_known: bool, shuffled: bool) -> None:
    random = Random(seed)
    module = parse_module(random_program(random, size=size))
    if shuffled:
        ids = random.sample(range(2 * size + 20), len(module.entry.instructions))
        for x, number in zip(module.entry, ids, strict=True):
            x.id = number
    before = {x: set(x.users) for x in module.entry}
    _restored_strictly(module, ids_known=ids_known)
    assert before == {x: set(x.users) for x in module.entry}
    assert all(len(x.users) == len(before[x]) for x in module.entry)


def test_what_is_no_order_of_the_users_is_not_taken() -> None:
    body = """  %p = f32[8]{0} parameter(0)
  %a = f32[8]{0} negate(%p)
  %b = f32[8]{0} sine(%p)
  ROOT %c = f32[8]{0} add(%a, %b)"""
    module = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n")
    p, a, b = (find(module, name) for name in "pab")
    assert not reorder_users(p, [b, a, b])
    assert not reorder_users(p, [b, b])
    assert not reorder_users(p, [b])
    assert p.users == [a, b]
    assert reorder_users(p, [b, a])
    assert p.users == [b, a]


def test_the_element_of_a_place_that_is_gathered_from_as_well() -> None:
    """What was taken for the gather reads the place of another line, ahead of the window of the scatter."""
    at = f"{named('scatter', frame=7)}"
    body = f"""  %p = s32[] parameter(0)
  %x = f32[8,4]{{1,0}} parameter(1)
  %y = f32[8,4]{{1,0}} parameter(2)
  %zero = s32[] constant(0)
  %i.1 = s32[] negate(%p){named("select_n", frame=7)}
  %bitcast.1 = s32[1]{{0}} bitcast(%i.1){named("select_n", frame=7)}
  %taken.1 = f32[1,1]{{1,0}} dynamic-slice(%x, %i.1, %zero), dynamic_slice_sizes={{1,1}},\
 metadata={{stack_frame_id=9}}
  %old.1 = f32[1,1]{{1,0}} dynamic-slice(%y, %i.1, %zero), dynamic_slice_sizes={{1,1}},\
 metadata={{stack_frame_id=7}}
  %both.1 = f32[1,1]{{1,0}} maximum(%taken.1, %old.1)
  %new.1 = f32[8,4]{{1,0}} dynamic-update-slice(%y, %both.1, %i.1, %zero){at}
  ROOT %r = (s32[1]{{0}}, f32[8,4]{{1,0}}) tuple(%bitcast.1, %new.1)"""
    as_xla = ["bitcast.1", "new.1", "taken.1", "old.1"]
    assert users_of("i.1", body) == as_xla
    assert users_as_guessed("i.1", body) == as_xla


def test_a_gemm_that_takes_two_operations_on_a_value_along_is_one_user() -> None:
    head = """%gemm (a: f32[4,4], b: f32[4,4]) -> f32[4,4] {
  %a = f32[4,4]{1,0} parameter(0)
  %b = f32[4,4]{1,0} parameter(1)
  %left = f32[4,4]{1,0} sine(%a)
  %right = f32[4,4]{1,0} cosine(%b)
  ROOT %dot = f32[4,4]{1,0} dot(%left, %right), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    body = """  %p = f32[16]{0} parameter(0)
  %x = f32[16]{0} negate(%p)
  %there = f32[2,8]{1,0} bitcast(%x)
  %one = f32[4,4]{1,0} bitcast(%there)
  %other = f32[4,4]{1,0} bitcast(%there)
  %n = f32[16]{0} exponential(%x)
  %g = f32[4,4]{1,0} fusion(%one, %other), kind=kCustom, calls=%gemm
  ROOT %r = (f32[4,4]{1,0}, f32[16]{0}) tuple(%g, %n)"""
    module = parse_module(f"HloModule m\n\n{head}\nENTRY %main {{\n{body}\n}}\n")
    _restored_strictly(module, ids_known=True)
    assert [u.name for u in find(module, "x").users] == ["there", "n"]


def test_what_is_made_narrow_in_two_ways_is_listed_for_both() -> None:
    body = """  %p = bf16[8]{0} parameter(0)
  %wide = f32[8]{0} convert(%p)
  %x = f32[8]{0} power(%wide, %wide)
  %eight = f8e4m3fn[8]{0} convert(%x)
  %back = bf16[8]{0} convert(%x)
  ROOT %r = (f8e4m3fn[8]{0}, bf16[8]{0}) tuple(%eight, %back)"""
    module = parse_module(f"HloModule m\n\nENTRY %main {{\n{body}\n}}\n")
    _restored_strictly(module, ids_known=False)
    assert {u.name for u in find(module, "x").users} == {"back", "eight"}
