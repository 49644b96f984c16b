"""Whatever is edited, the graph holds together, and users are in XLA's order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlofuse.ir import Instruction, Module, copy_module, parse_module, print_module
from hlofuse.ir.fusing import convert_to_fusion, fuse_in_place_of
from hlofuse.ir.removing import set_attribute
from ..tools.module_checks import verify_module
from .random_graphs import F32, edit, modules


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_edits_keep_the_graph_whole(data: st.DataObject) -> None:
    module = data.draw(modules())
    assert verify_module(module) == []
    for _ in range(data.draw(st.integers(1, 12))):
        edit(module, data.draw)
        assert verify_module(module) == []


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_copies_are_equal_and_independent(data: st.DataObject) -> None:
    module = data.draw(modules())
    for _ in range(data.draw(st.integers(0, 6))):
        edit(module, data.draw)
    copy = copy_module(module)
    assert verify_module(copy) == []
    assert [(i.name, i.id, [u.name for u in i.users]) for i in module.entry] == [
        (i.name, i.id, [u.name for u in i.users]) for i in copy.entry
    ]
    before = print_module(module)
    assert print_module(copy) == before
    assert copy.instruction_names.copy().unique("add") == module.instruction_names.copy().unique("add")
    for _ in range(4):
        edit(copy, data.draw)
    assert print_module(module) == before
    assert not set(module.entry) & set(copy.entry)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_what_is_printed_reads_the_same(data: st.DataObject) -> None:
    module = data.draw(modules())
    for _ in range(data.draw(st.integers(0, 8))):
        edit(module, data.draw)
    text = print_module(module)
    repeated_call = parse_module(text)
    assert verify_module(repeated_call) == []
    assert print_module(repeated_call) == text


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_turns_into_a_fusion_is_as_good_as_replaced(data: st.DataObject) -> None:
    module = data.draw(modules())
    for _ in range(data.draw(st.integers(0, 8))):
        edit(module, data.draw)
    given = {"sharding": "{replicated}", "metadata": '{op_name="a"}', "frontend_attributes": "{}"}
    for attribute in data.draw(st.lists(st.sampled_from(sorted(given)))):
        set_attribute(data.draw(st.sampled_from(module.entry.instructions)), attribute, given[attribute])
    copy = copy_module(module)
    inner = [x.name for x in module.entry if x.opcode != "parameter"]
    for name in data.draw(st.lists(st.sampled_from(inner), max_size=4, unique=True)):
        one, other = module.entry.find(name), copy.entry.find(name)
        assert one is not None
        assert other is not None
        fuse_in_place_of(one, "kLoop")
        convert_to_fusion(other, "kLoop")
        assert verify_module(copy) == []
    assert print_module(copy) == print_module(module)
    assert _all_there_is(copy) == _all_there_is(module)


@pytest.mark.parametrize("name", ["reduce", "twice", "constant"])
def test_a_fusion_of_itself_calls_what_it_called(name: str) -> None:
    text = """HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT add.1 = f32[] add(a, b) }
ENTRY e { p = f32[4] parameter(0)
 constant = f32[] constant(0)
 twice = f32[4] multiply(p, p)
 other = f32[] reduce(p, constant), dimensions={0}, to_apply=add
 reduce = f32[] reduce(twice, constant), dimensions={0}, to_apply=add
 ROOT last = f32[] reduce(twice, reduce), dimensions={0}, to_apply=add }"""
    module, copy = parse_module(text), parse_module(text)
    one, other = module.entry.find(name), copy.entry.find(name)
    assert one is not None
    assert other is not None
    fuse_in_place_of(one, "kInput")
    convert_to_fusion(other, "kInput")
    assert verify_module(copy) == []
    assert print_module(copy) == print_module(module)
    assert _all_there_is(copy) == _all_there_is(module)
    callers = [[[x.name for x in c.callers] for c in m.computations] for m in (copy, module)]
    assert callers[0] == callers[1]


def _all_there_is(module: Module) -> list[object]:
    return [
        (
            *(x.name, x.id, x.payload, x.is_root, x.attributes.text),
            [[y.name for y in of] for of in (x.users, x.control_predecessors, x.control_successors)],
        )
        for x in module.instructions()
    ]


def test_a_removed_user_is_replaced_by_the_last() -> None:
    p = Instruction("p", F32, "parameter", payload="0")
    users = [Instruction(f"n{i}", F32, "negate", [p]) for i in range(4)]
    p.remove_user(users[1])
    assert [u.name for u in p.users] == ["n0", "n3", "n2"]
    p.remove_user(users[2])
    assert [u.name for u in p.users] == ["n0", "n3"]
    p.add_user(users[1])
    assert [u.name for u in p.users] == ["n0", "n3", "n1"]


def test_a_user_that_takes_a_value_twice_is_one_user() -> None:
    p = Instruction("p", F32, "parameter", payload="0")
    q = Instruction("q", F32, "parameter", payload="1")
    x = Instruction("x", F32, "add", [p, p])
    assert p.users == [x]
    x.replace_operand(0, q)
    assert p.users == [x]
    x.replace_operand(1, q)
    assert p.users == []
    assert q.users == [x]
