"""Places in the source, which XLA numbers as the front end meets them."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.program_order import in_program_order


def order(*lines: tuple[str, int]) -> list[str]:
    written = [f'{text}, metadata={{op_name="jit(f)/x" stack_frame_id={place}}}' for text, place in lines]
    *first, last = written
    body = "\n".join([*(f"  {line}" for line in first), f"  ROOT {last}"])
    module = parse_module(f"HloModule m\n\nENTRY %main {{\n  %p = f32[8]{{0}} parameter(0)\n{body}\n}}\n")
    operations = [x for x in module.entry.post_order() if x.opcode != "parameter"]
    return [x.name for x in in_program_order(operations)]


def sums(sine: int, cosine: int, tangent: int) -> list[str]:
    """The data would have the cosine right before its product."""
    return order(
        ("%sin.1.0 = f32[8]{0} sine(%p)", sine),
        ("%tanh.1.0 = f32[8]{0} tanh(%sin.1.0)", tangent),
        ("%cos.1.0 = f32[8]{0} cosine(%p)", cosine),
        ("%mul.1.0 = f32[8]{0} multiply(%tanh.1.0, %cos.1.0)", tangent + cosine + sine),
    )


def test_a_place_of_lower_number_was_met_before() -> None:
    assert sums(1, 3, 2) == ["sin.1.0", "tanh.1.0", "cos.1.0", "mul.1.0"]
    assert sums(2, 1, 3) == ["cos.1.0", "sin.1.0", "tanh.1.0", "mul.1.0"]


def test_the_fewest_are_moved() -> None:
    """It is the cosine that goes between the two, not the tangent behind it."""
    assert sums(1, 2, 3) == ["sin.1.0", "cos.1.0", "tanh.1.0", "mul.1.0"]


def test_data_is_stronger() -> None:
    """The first operation of the sine's place is gone: a lower number is on what reads others."""
    lines = (("%exp.1.0 = f32[8]{0} exponential(%p)", 2), ("%sin.1.0 = f32[8]{0} sine(%exp.1.0)", 1))
    assert order(*lines) == ["exp.1.0", "sin.1.0"]


def test_where_a_pass_made_something_of_a_place_nothing_is_told() -> None:
    written = [
        '%sin.1.0 = f32[8]{0} sine(%p), metadata={op_name="jit(f)/sin" stack_frame_id=2}',
        '%neg.1.0 = f32[8]{0} negate(%p), metadata={op_name="jit(f)/neg" stack_frame_id=1}',
        '%cos.1.0 = f32[8]{0} cosine(%p), metadata={op_name="jit(f)/cos" stack_frame_id=1}',
        "ROOT %tuple.1.0 = (f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(%sin.1.0, %neg.1.0, %cos.1.0)",
    ]
    text = "HloModule m\n\nENTRY %main {\n  %p = f32[8]{0} parameter(0)\n  " + "\n  ".join(written) + "\n}\n"
    ours = [x for x in parse_module(text).entry.post_order() if x.opcode in ("sine", "cosine")]
    assert [x.name for x in in_program_order(ours)] == ["sin.1.0", "cos.1.0"]
