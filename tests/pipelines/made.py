"""Who made an instruction last, as guessed of a small module."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.front_end_names import named_by_front_end
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_in_turn import makers_in_turn

PARAMETERS = """  %p = f32[8]{0} parameter(0)
  %q = f32[8,4]{1,0} parameter(1)
  %zero = f32[] constant(0)"""


def text_of(lines: Sequence[str], parameters: str = PARAMETERS, computation: str = "main") -> str:
    """A module of these `lines`, of which the last is the root, behind its `parameters`."""
    *first, last = lines
    body = "\n".join([*(f"  {line}" for line in first), f"  ROOT {last}"])
    return f"""HloModule m

%region {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

ENTRY %{computation} {{
{parameters}
{body}
}}
"""


def maker(name: str, *lines: str, computation: str = "main", matrices: bool = False) -> Maker:
    """Who made it; with `matrices` in the place of what has one dimension."""
    text = text_of(lines, computation=computation)
    if matrices:
        text = re.sub(r"\[(\d)\]\{0\}", r"[\1,6]{1,0}", text).replace("={[0:4]}", "={[0:4], [0:6]}")
    module = parse_module(text)
    makers = makers_in_turn(module.entry, named_by_front_end(module)).makers
    return next(found for x, found in makers.items() if x.name == name)


def op(path: str) -> str:
    return f'metadata={{op_name="jit(f)/{path}"}}'


MUL = f"%mul.5.0 = f32[8]{{0}} multiply(%p, %p), {op('mul')}"


SLICE = f"%slice.5.0 = f32[4]{{0}} slice(%mul.5.0), slice={{[0:4]}}, {op('slice')}"
