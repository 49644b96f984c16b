"""The verifier finds each way a graph can be broken and says where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlofuse.ir import Computation, Module, parse_module
from ..tools.module_checks import check_module, verify_module

TEXT = """HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %main (p: f32[8]) -> f32[] {
  %p = f32[8]{0} parameter(0)
  %n = f32[8]{0} negate(%p)
  %zero = f32[] constant(0)
  %m = f32[8]{0} multiply(%n, %p)
  ROOT %r = f32[] reduce(%m, %zero), dimensions={0}, to_apply=%sum
}
"""


def drop_user(m: Module) -> None:
    m.find("n").users.clear()  # type: ignore[union-attr]


def foreign_user(m: Module) -> None:
    m.find("zero").users.append(m.find("n"))  # type: ignore[union-attr,arg-type]


def foreign_operand(m: Module) -> None:
    m.find("n").operands[0] = m.find("a")  # type: ignore[union-attr,assignment]


def double_user(m: Module) -> None:
    m.find("n").users.append(m.find("m"))  # type: ignore[union-attr,arg-type]


def cycle(m: Module) -> None:
    m.find("n").replace_operand(0, m.find("m"))  # type: ignore[union-attr,arg-type]


def wrong_id(m: Module) -> None:
    m.find("n").id = 7  # type: ignore[union-attr]


def no_root(m: Module) -> None:
    m.add_computation(Computation("empty"))


def foreign_root(m: Module) -> None:
    m.entry.root = m.find("c")  # type: ignore[assignment]


def same_name(m: Module) -> None:
    m.find("n").name = "a"  # type: ignore[union-attr]


def parameter_number(m: Module) -> None:
    m.find("b").payload = "4"  # type: ignore[union-attr]


def lost_parameter(m: Module) -> None:
    m.computations[0].parameters.pop()


def lost_caller(m: Module) -> None:
    m.computations[0].callers.clear()


def false_caller(m: Module) -> None:
    m.computations[0].callers[m.find("n")] = 1  # type: ignore[index]


def lost_computation(m: Module) -> None:
    m.computations.pop(0)


def lost_control_end(m: Module) -> None:
    n, zero = m.find("n"), m.find("zero")
    n.add_control_dependency_to(zero)  # type: ignore[union-attr,arg-type]
    zero._control = None  # type: ignore[union-attr]


def recursion(m: Module) -> None:
    a, body = m.find("a"), m.computations[0]
    a.called = [("to_apply", body)]  # type: ignore[union-attr]
    body.add_caller(a)  # type: ignore[arg-type]


def second_name(m: Module) -> None:
    m.add_computation(Computation("other")).name = "sum"


def test_a_whole_module_has_no_problems() -> None:
    assert verify_module(parse_module(TEXT)) == []
    check_module(parse_module(TEXT))


@pytest.mark.parametrize(
    ("damage", "where", "text"),
    [
        (drop_user, "m in main", "its operand n does not know it"),
        (foreign_user, "zero in main", "does not have it as an operand"),
        (foreign_operand, "n in main", "a is not in the computation"),
        (double_user, "n in main", "twice"),
        (cycle, "main", "depend on themselves"),
        (wrong_id, "n in main", "its id is 7"),
        (no_root, "empty", "no root"),
        (foreign_root, "c in main", "root is not in"),
        (same_name, "n|a", "same name"),
        (parameter_number, "b in sum", "parameter 1"),
        (lost_parameter, "sum", "2 parameters among the instructions, 1 listed"),
        (lost_caller, "sum", "r calls it 1 times, known are 0"),
        (false_caller, "sum", "n is listed as a caller"),
        (lost_computation, "r in main", "calls sum, which is not in the module"),
        (lost_control_end, "n in main", "control successor zero"),
        (recursion, "sum", "calls itself"),
        (second_name, "sum", "2 computations have this name"),
    ],
)
def test_damage_is_found(damage: Callable[[Module], None], where: str, text: str) -> None:
    module = parse_module(TEXT)
    damage(module)
    found = "\n".join(map(str, verify_module(module)))
    assert found
    assert text in found
    assert any(w in found for w in where.split("|"))
    with pytest.raises(ValueError, match="broken module"):
        check_module(module)
