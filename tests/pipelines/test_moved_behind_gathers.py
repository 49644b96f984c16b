"""What is computed with gathers as GatherSimplifier leaves them, as XLA's dumps of each pass have it."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.moved_behind_gathers import moved_behind_gathers


def moved(behind: str, *others: str, named: str = "", root: str = "") -> list[str]:
    op = 'metadata={op_name="jit(f)/while/body/'
    more = "\n  ".join(f"{line}, {op}add{chr(34)}}}" for line in others)
    parameters = "%p = f32[8,4,6]{2,1,0} parameter(0)\n  %i = s32[8,2]{1,0} parameter(1)"
    text = f"""HloModule m

%last {{
  %a = f32[] parameter(0)
  ROOT %b = f32[] parameter(1)
}}

%body {{
  {parameters}
  %g = f32[8,1,1,6]{{3,2,1,0}} gather(%p, %i), offset_dims={{1,2,3}}, collapsed_slice_dims={{}},
    start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1,6}}
  %mul.8.0 = f32[8,1,1,6]{{3,2,1,0}} multiply(%g, %g), {op}mul"}}
  %add.9.0 = f32[8,1,1,6]{{3,2,1,0}} add(%g, %mul.8.0), {op}add"}}
  {more}
  ROOT %b = f32[{behind} {root or "bitcast(%add.9.0)"}, {op}add"}}
}}

ENTRY %main {{
  {parameters}
  ROOT %c = f32[{behind} call(%p, %i), to_apply=%body
}}
"""
    body = next(c for c in parse_module(text).computations if c.name == "body")
    makers = {x: Maker.FRONT_END for x in body if x.opcode not in ("bitcast", "parameter")}
    return sorted(x.name for x in moved_behind_gathers(makers, {x for x in body if x.name == named}))


def test_what_drops_its_dimensions_of_size_one_itself_was_moved_and_what_only_that_reads() -> None:
    assert moved("8,6]{1,0}") == ["add.9.0", "mul.8.0"]


def test_what_a_simple_scatter_takes_as_it_is_was_moved_in_front_of_a_reshape_for_that() -> None:
    scattered = """scatter(%p, %i, %add.9.0), update_window_dims={1,2,3}, inserted_window_dims={INSERTED},
    scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=%last"""
    shape = "8,4,6]{2,1,0}"
    assert moved(shape, root=scattered.replace("INSERTED", "")) == ["add.9.0", "mul.8.0"]
    assert moved(shape, root=scattered.replace("INSERTED", "0")) == []


def test_the_reshape_of_something_else_tells_nothing() -> None:
    assert moved("8,1,1,6,1]{4,3,2,1,0}") == []


def test_what_has_the_number_of_the_program_was_not_moved() -> None:
    assert moved("8,6]{1,0}", named="add.9.0") == []


def test_what_has_a_higher_number_than_what_was_moved_was_made_later_still() -> None:
    others = [f"%add.{k}.0 = f32[8,4,6]{{2,1,0}} add(%p, %p)" for k in (7, 12)]
    assert moved("8,6]{1,0}", *others) == ["add.12.0", "add.9.0", "mul.8.0"]
