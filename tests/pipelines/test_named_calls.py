"""Calls that an op_name tells by their own names, as XLA writes them for texts of other releases."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.ir.module import Module
from hlofuse.pipelines.calls_in_names import function_called, is_of_call, outermost_call
from hlofuse.pipelines.named_calls import named_calls
from hlofuse.pipelines.names import is_of_older_release

from ..running import find
from .users.lists import users_of


def _text(op_name: str, *, loop: str = "") -> Module:
    """One operation with that `op_name`, in the body of a `loop` if one is named."""
    named = f'%x = f32[] abs(%p), metadata={{op_name="{op_name}"}}'
    if not loop:
        return parse_module(f"HloModule m\n\nENTRY %main {{\n  %p = f32[] parameter(0)\n  ROOT {named}\n}}\n")
    return parse_module(f"""HloModule m

%body (p: f32[]) -> f32[] {{
  %p = f32[] parameter(0)
  ROOT {named}
}}

%cond (c: f32[]) -> pred[] {{
  %c = f32[] parameter(0)
  ROOT %t = pred[] constant(true)
}}

ENTRY %main (q: f32[]) -> f32[] {{
  %q = f32[] parameter(0)
  ROOT %w = f32[] while(%q), condition=%cond, body=%body, metadata={{op_name="{loop}"}}
}}
""")


@pytest.mark.parametrize(
    ("op_name", "calls"),
    [
        ("call.7/call.3/jit(f)/jit(main)/jit(g)/mul", ("call.7", "call.3")),
        ("jit_g_.2/jit__where_.3/select_n.1", ("jit_g_.2", "jit__where_.3")),
        ("jit(f)/jit(main)/mul", ()),
        ("jit(f)/call/mul", ()),
        ("call.7/call.3", ("call.7", "call.3")),
    ],
)
def test_calls_stand_in_front(op_name: str, calls: tuple[str, ...]) -> None:
    assert named_calls(op_name) == calls


@pytest.mark.parametrize(
    ("op_name", "function"),
    [
        ("call.7/call.3/jit(f)/jit(main)/jit(g)/jit(_where)/mul", "jit(g)"),
        ("call.7/jit(f)/jit(main)/while/body/jit(g)/mul", "jit(g)"),
        ("jit_g_.2/jit__where_.3/select_n.1", "jit(g)"),
        ("jit(f)/jit(silu)/mul", "jit(silu)"),
        ("call.7/mul", ""),
    ],
)
def test_the_function_of_the_outermost_call(op_name: str, function: str) -> None:
    assert function_called(find(_text(op_name), "x")) == function


def test_the_outermost_call_is_one_of_the_computation_itself() -> None:
    old = "call.7/call.3/jit(f)/jit(main)/while/body/jit(g)/mul"
    assert outermost_call(find(_text(old), "x")) == "call.7"
    assert outermost_call(find(_text(old, loop="call.7/jit(f)/jit(main)/while"), "x")) == "call.7/call.3"
    around = find(_text(old, loop="call.7/call.3/jit(f)/jit(main)/while"), "x")
    assert outermost_call(around) == ""
    assert not is_of_call(around)
    assert is_of_older_release(around)


def test_all_users_in_one_named_call_are_of_that() -> None:
    """One nested call computed the value, and the call around it reads that, in the order of age."""
    inner, outer = "call.2/call.1/jit(f)/jit(main)/jit(g)/jit(u)", "call.2/jit(f)/jit(main)/jit(g)"

    def of(path: str, name: str) -> str:
        return f', metadata={{op_name="{path}/{name}"}}'

    body = f"""  %p = f32[8]{{0}} parameter(0)
  %max.1 = f32[8]{{0}} maximum(%p, %p){of(inner, "max")}
  %erf_inv.1 = f32[8]{{0}} abs(%max.1){of(outer, "erf_inv")}
  %erf_inv.2 = f32[8]{{0}} negate(%max.1){of(outer, "erf_inv")}
  %erf_inv.3 = f32[8]{{0}} multiply(%max.1, %erf_inv.2){of(outer, "erf_inv")}
  ROOT %mul.1 = f32[8]{{0}} multiply(%erf_inv.1, %erf_inv.3){of(outer, "mul")}"""
    assert users_of("max.1", body) == ["erf_inv.1", "erf_inv.2", "erf_inv.3"]
