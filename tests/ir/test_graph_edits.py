"""Whatever is edited, the graph holds together, and users are in XLA's order."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hlofuse.ir import Instruction, copy_module, parse_module, print_module
from hlofuse.ir.verifier import verify_module

sys.path.insert(0, str(Path(__file__).parent))
from random_graphs import F32, edit, modules


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
    twin = copy_module(module)
    assert verify_module(twin) == []
    assert [(i.name, i.id, [u.name for u in i.users]) for i in module.entry] == [
        (i.name, i.id, [u.name for u in i.users]) for i in twin.entry
    ]
    before = print_module(module)
    assert print_module(twin) == before
    assert twin.instruction_names.copy().unique("add") == module.instruction_names.copy().unique("add")
    for _ in range(4):
        edit(twin, data.draw)
    assert print_module(module) == before
    assert not set(module.entry) & set(twin.entry)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_what_is_printed_reads_the_same(data: st.DataObject) -> None:
    module = data.draw(modules())
    for _ in range(data.draw(st.integers(0, 8))):
        edit(module, data.draw)
    text = print_module(module)
    again = parse_module(text)
    assert verify_module(again) == []
    assert print_module(again) == text


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
