"""What LayoutNormalization made anew, told by what is beside it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.laid_beside import computed_of_laid, laid_beside
from hlofuse.pipelines.likely_ids.maker import Maker

F, L, S = Maker.FRONT_END, Maker.LAYOUT_NORMALIZATION, Maker.SIMPLIFIER


def found(body: str, made: dict[str, Maker]) -> list[str]:
    """The names of those that are laid, where it is said who seems to have made which."""
    given = "  %p = f32[4,8]{1,0} parameter(0)\n  %n = f32[] constant(2)"
    text = f"HloModule m\n\nENTRY %main {{\n{given}\n{body}\n}}\n"
    entry = parse_module(text).entry
    return sorted(x.name for x in laid_beside({x: made[x.name] for x in entry if x.name in made}))


def pad(name: str, source: str, shape: str = "8,8") -> str:
    made = f"pad(%{source}, %n), padding=0_0x0_0"
    return f'  %{name} = f32[{shape}]{{1,0}} {made}, metadata={{op_name="jit(f)/pad"}}'


TURNED = """  %bitcast.1 = f32[8,4]{1,0} bitcast(%p)
  %multiply.1 = f32[8,4]{1,0} multiply(%bitcast.1, %bitcast.1)"""


@pytest.mark.parametrize(("name", "expected"), [("pad.3.0", ["pad.3.0"]), ("pad_3.0", [])])
def test_what_reads_it_is_laid_alike_unless_the_framework_named_it(name: str, expected: list[str]) -> None:
    body = f"{TURNED}\n{pad(name, 'multiply.1', '8,4')}\n  ROOT %bitcast.2 = f32[4,8]{{1,0}} bitcast(%{name})"
    assert found(body, {"multiply.1": L, name: F}) == expected


def test_what_the_program_is_given_is_laid_out_in_order() -> None:
    body = """  %add.3.0 = f32[4,8]{1,0} add(%p, %p)
  %multiply.1 = f32[4,8]{1,0} multiply(%add.3.0, %add.3.0)
  ROOT %bitcast.2 = f32[8,4]{1,0} bitcast(%multiply.1)"""
    assert found(body, {"multiply.1": L, "add.3.0": F}) == []
    assert found(
        body.replace("add(%p, %p)", "add(%b, %b)").replace(
            "  %add", "  %b = f32[4,8]{1,0} bitcast(%p)\n  %add", 1
        ),
        {"multiply.1": L, "add.3.0": F},
    ) == ["add.3.0"]


def test_a_row_has_no_other_layout() -> None:
    body = """  %b = f32[1,32]{1,0} bitcast(%p)
  %add.3.0 = f32[1,32]{1,0} add(%b, %b)
  %multiply.1 = f32[1,32]{1,0} multiply(%add.3.0, %add.3.0)
  ROOT %bitcast.2 = f32[32]{0} bitcast(%multiply.1)"""
    assert found(body, {"multiply.1": L, "add.3.0": S}) == []


def test_what_is_added_to_its_transposition_may_be_laid_otherwise() -> None:
    body = """  %b = f32[8,8]{1,0} bitcast(%p)
  %add.3.0 = f32[8,8]{1,0} add(%b, %b)
  %transpose.1 = f32[8,8]{1,0} transpose(%add.3.0), dimensions={1,0}
  %add.4 = f32[8,8]{1,0} add(%add.3.0, %transpose.1)
  ROOT %bitcast.2 = f32[64]{0} bitcast(%add.4)"""
    assert found(body, {"add.4": L, "add.3.0": F, "transpose.1": L}) == []


@pytest.mark.parametrize(("between", "expected"), [("pad.4.0", ["pad.4.0"]), ("pad.6.0", [])])
def test_a_number_between_two_of_those_tells(between: str, expected: list[str]) -> None:
    reads = {"pad.3.0": "multiply.1", between: "bitcast.1", "pad.5.0": "multiply.1"}
    lines = [pad(name, source, "8,4") for name, source in reads.items()]
    parts = "".join(f", %{name}" for name in reads)
    shapes = ", ".join(["f32[8,4]{1,0}"] * 3)
    body = "\n".join([TURNED, *lines, f"  ROOT %tuple.1 = ({shapes}) tuple({parts[2:]})"])
    body = (
        body.replace("  ROOT %tuple.1", "  %t") + "\n  ROOT %g = f32[8,4]{1,0} get-tuple-element(%t), index=0"
    )
    assert found(body, {"multiply.1": L, "pad.3.0": L, between: F, "pad.5.0": L}) == expected


def test_what_is_spread_for_those_alone_was_spread_in_their_layout() -> None:
    body = """  %broadcast.1 = f32[8,4]{1,0} broadcast(%n), dimensions={}
  %b = f32[8,4]{1,0} bitcast(%p)
  %multiply.1 = f32[8,4]{1,0} multiply(%b, %broadcast.1)
  ROOT %bitcast.2 = f32[4,8]{1,0} bitcast(%multiply.1)"""
    assert found(body, {"multiply.1": L, "broadcast.1": S}) == ["broadcast.1"]
    assert found(body, {"multiply.1": S, "broadcast.1": S}) == []


@pytest.mark.parametrize(("name", "expected"), [("multiply.2", ["multiply.2"]), ("mul.2.0", [])])
def test_what_is_computed_of_it_without_a_bitcast_is_as_young(name: str, expected: list[str]) -> None:
    body = f"""{TURNED}
  %{name} = f32[8,4]{{1,0}} multiply(%multiply.1, %bitcast.1), metadata={{op_name="jit(f)/mul"}}
  %bitcast.3 = f32[4,8]{{1,0}} bitcast(%multiply.1)
  ROOT %multiply.3 = f32[4,8]{{1,0}} multiply(%bitcast.3, %p)"""
    text = f"HloModule m\n\nENTRY %main {{\n  %p = f32[4,8]{{1,0}} parameter(0)\n{body}\n}}\n"
    made = {"multiply.1": L, name: S, "multiply.3": S}
    entry = parse_module(text).entry
    makers = {x: made[x.name] for x in entry if x.name in made}
    assert [x.name for x in computed_of_laid(makers)] == expected
