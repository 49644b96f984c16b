"""Slices of a loop that products are called with, each case as XLA's records show it."""

from __future__ import annotations

from .lists import named, users_in

_STATE = "(s32[], f32[3,64,64], f32[3,64,64], f32[3,64,64], f32[3,64,64], f32[3,64,64])"


def _loop(calls: dict[str, tuple[int, ...]], *, read_back: str = "") -> str:
    """`calls` has which elements of the state each product reads or, behind 3, writes a slice of.

    Others read element 1 and write 3 and 4. What one writes may be `read_back`.
    """
    bodies, made = [], []
    for name, elements in calls.items():
        lines = [f"  %i.{name} = s32[] parameter(0)", f"  %two.{name} = s32[] constant(2)"]
        lines.append(f"  %k.{name} = s32[] subtract(%two.{name}, %i.{name}), backend_config={{}}")
        lines.append(f"  %z.{name} = s32[] constant(0)")
        result = f"%m.{name}"
        for number, element in enumerate(elements, 1):
            whole, at = f"%a{element}.{name}", f"%k.{name}, %z.{name}, %z.{name}"
            lines.append(f"  {whole} = f32[3,64,64]{{2,1,0}} parameter({number})")
            if element < 3:
                piece = f"f32[1,64,64]{{2,1,0}} dynamic-slice({whole}, {at}), dynamic_slice_sizes={{1,64,64}}"
                lines.append(f"  {result} = {piece}")
            else:
                read = result if len(elements) > 1 else f"%u.{name}"
                if len(elements) == 1:
                    lines.append(
                        f"  {read} = f32[1,64,64]{{2,1,0}} slice({whole}), slice={{[0:1], [0:64], [0:64]}}"
                    )
                result = f"%w.{name}"
                lines.append(
                    f"  {result} = f32[3,64,64]{{2,1,0}} dynamic-update-slice({whole}, {read}, {at})"
                )
        lines[-1] = lines[-1].replace("  ", "  ROOT ", 1)
        bodies.append(f"%body.{name} {{\n" + "\n".join(lines) + "\n}\n")
        shape = "f32[3,64,64]{2,1,0}" if elements[-1] >= 3 else "f32[1,64,64]{2,1,0}"
        operands = ", ".join(["%i", *(f"%e{element}" for element in elements)])
        made.append(f"  %{name} = {shape} fusion({operands}), kind=kCustom, calls=%body.{name}")
    elements = [f"  %e{k} = f32[3,64,64]{{2,1,0}} get-tuple-element(%state), index={k}" for k in range(1, 6)]
    piece = f"f32[1,64,64]{{2,1,0}} dynamic-slice(%{read_back}, %k, %z, %z), dynamic_slice_sizes={{1,64,64}}"
    back = [f"  %back = {piece}"] if read_back else []
    results = ", ".join(f"%{name}" for name in calls)
    shapes = ", ".join(
        ["f32[3,64,64]{2,1,0}"] * 2
        + ["f32[3,64,64]{2,1,0}" if read[-1] >= 3 else "f32[1,64,64]{2,1,0}" for read in calls.values()]
    )
    return "\n".join(
        [
            "HloModule m",
            *bodies,
            "ENTRY %main {",
            f"  %state = {_STATE} parameter(0)",
            "  %i = s32[] get-tuple-element(%state), index=0",
            *elements,
            "  %two = s32[] constant(2)",
            "  %k = s32[] subtract(%two, %i)",
            "  %z = s32[] constant(0)",
            "  %r1 = f32[1,64,64]{2,1,0} dynamic-slice(%e1, %k, %z, %z), dynamic_slice_sizes={1,64,64}",
            "  %n = f32[1,64,64]{2,1,0} negate(%r1)",
            "  %w3 = f32[3,64,64]{2,1,0} dynamic-update-slice(%e3, %n, %k, %z, %z)",
            "  %w4 = f32[3,64,64]{2,1,0} dynamic-update-slice(%e4, %n, %k, %z, %z)",
            *made,
            *back,
            f"  ROOT %r = ({shapes}) tuple(%w3, %w4, {results})",
            "}",
        ]
    )


def _offset(calls: dict[str, tuple[int, ...]], *, read_back: str = "") -> list[str]:
    return users_in(_loop(calls, read_back=read_back), "k", ids_known=True)


def test_the_last_slice_takes_the_place_of_one_that_a_product_is_called_with() -> None:
    assert _offset({"call": (2,)}) == ["r1", "w4", "w3"]
    assert _offset({"call": (5,)}) == ["r1", "w3", "w4"]


def test_a_slice_goes_with_the_last_product_that_reads_it() -> None:
    assert _offset({"call": (2,), "call.1": (5,)}) == ["r1", "w4", "w3"]
    assert _offset({"call": (2,), "call.1": (5,), "call.2": (2,)}) == ["r1", "w4", "w3"]


def test_a_slice_that_others_read_stays() -> None:
    assert _offset({"call": (1,)}) == ["r1", "w3", "w4"]


def test_what_a_product_wrote_is_read_back_by_a_slice_that_came_with_it() -> None:
    assert _offset({"call": (5,)}, read_back="call") == ["r1", "w3", "w4", "back"]
    assert _offset({"call": (5,), "call.1": (2,)}, read_back="call") == ["r1", "back", "w3", "w4"]


def test_a_call_with_a_copy_of_a_slice_that_stays_was_made_behind_it() -> None:
    program = f"""HloModule m

%call (p0: f32[64,8], p1: f32[8,8]) -> f32[32,8] {{
  %p0 = f32[64,8]{{1,0}} parameter(0)
  %slice.9 = f32[32,8]{{1,0}} slice(%p0), slice={{[32:64], [0:8]}}
  %p1 = f32[8,8]{{1,0}} parameter(1)
  ROOT %dot.1 = f32[32,8]{{1,0}} custom-call(%slice.9, %p1), custom_call_target="__cublas$gemm"
}}

ENTRY %main {{
  %p = f32[8,64]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %sin.1 = f32[8,64]{{1,0}} sine(%p){named("sin")}
  %rows = f32[64,8]{{1,0}} bitcast(%sin.1)
  %slice.1 = f32[32,8]{{1,0}} slice(%rows), slice={{[0:32], [0:8]}}{named("slice")}
  %called = f32[32,8]{{1,0}} fusion(%rows, %q), kind=kCustom, calls=%call
  %slice.2 = f32[32,8]{{1,0}} slice(%rows), slice={{[32:64], [0:8]}}{named("slice")}
  ROOT %r = (f32[32,8]{{1,0}}, f32[32,8]{{1,0}}, f32[32,8]{{1,0}}) tuple(%slice.1, %called, %slice.2)
}}
"""
    assert users_in(program, "rows", ids_known=True) == ["slice.1", "slice.2", "called"]
