"""What very many instructions use keeps its users in XLA's order, without looking through them all."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from hlofuse.ir import parse_module
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape

_ACTIONS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "turn round"]), st.integers(0, 99)), max_size=60
)


def _constant() -> tuple[Instruction, Shape]:
    module = parse_module("HloModule m\n\nENTRY %e () -> f32[] {\n  ROOT %c = f32[] constant(1)\n}\n")
    return module.entry.root, module.entry.root.shape


@given(st.sampled_from([0, 50, 63, 64, 65, 100]), _ACTIONS)
@example(100, [("remove", 0), ("turn round", 0), ("remove", 1), ("remove", 98)])
def test_users_are_as_if_searched_for(first: int, actions: list[tuple[str, int]]) -> None:
    used, shape = _constant()
    pool = [Instruction(f"user.{k}", shape, "negate") for k in range(100)]
    expected: list[Instruction] = []
    for user in pool[:first]:
        used.add_user(user)
        expected.append(user)
    for action, number in actions:
        user = pool[number]
        if action == "turn round":
            used.users.reverse()
            expected.reverse()
        elif action == "add":
            used.add_user(user)
            if user not in expected:
                expected.append(user)
        elif user in expected:
            used.remove_user(user)
            expected[expected.index(user)] = expected[-1]
            expected.pop()
        assert used.users == expected
