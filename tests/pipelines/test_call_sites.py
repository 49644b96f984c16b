"""What a function does at one of its call sites, and then at the next one."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.program_order import in_program_order

_TABLES = """
FileNames
1 "steps.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=4 end_column=10}
2 {file_name_id=1 function_name_id=1 line=2 end_line=2 column=4 end_column=10}
3 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=10}
4 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=4 end_column=10}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=2}
4 {file_location_id=4 parent_frame_id=2}

"""


def order(squares: tuple[int, int], products: tuple[int, int], path: str = "jit(f)") -> list[str]:
    """Of two leaves that are squared, negated and multiplied, each at a line of its own."""
    lines = [
        line
        for k, (p, square, product) in enumerate(zip("pq", squares, products, strict=True), 1)
        for line in (
            (f"%mul.{square}.0 = f32[8]{{0}} multiply(%{p}, %{p})", "mul", 2),
            (f"%neg.{k}.0 = f32[8]{{0}} negate(%mul.{square}.0)", "neg", 3),
            (f"%mul.{product}.0 = f32[8]{{0}} multiply(%neg.{k}.0, %{p})", "mul", 4),
        )
    ]
    body = "\n".join(
        f'  {text}, metadata={{op_name="{path}/{name}" stack_frame_id={frame}}}'
        for text, name, frame in lines
    )
    one, other = (f"%mul.{product}.0" for product in products)
    module = parse_module(
        f"HloModule m\n{_TABLES}ENTRY %main {{\n"
        f"  %p = f32[8]{{0}} parameter(0)\n  %q = f32[8]{{0}} parameter(1)\n{body}\n"
        f"  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple({one}, {other})\n}}\n"
    )
    operations = [x for x in module.entry.post_order() if x.opcode != "parameter"]
    return [x.name.removesuffix(".0") for x in in_program_order(operations)][:-1]


def test_sites_apart_are_blocks() -> None:
    """All leaves were squared before any was multiplied: so they were before any was negated."""
    assert order((1, 2), (3, 4)) == ["mul.1", "mul.2", "neg.1", "neg.2", "mul.3", "mul.4"]


def test_a_loop_around_sites_mixes_them() -> None:
    assert order((1, 3), (2, 4)) == ["mul.1", "neg.1", "mul.2", "mul.3", "neg.2", "mul.4"]


def test_what_is_differentiated_comes_again() -> None:
    """Numbers tell nothing of the negations then."""
    found = order((1, 2), (3, 4), "jit(f)/transpose(jvp())")
    assert found != ["mul.1", "mul.2", "neg.1", "neg.2", "mul.3", "mul.4"]
    assert sorted(found) == ["mul.1", "mul.2", "mul.3", "mul.4", "neg.1", "neg.2"]
