"""A program whose every name is an attack; no parser would let these pass, an API might."""

from __future__ import annotations

from hlofuse.ir import Module, parse_module

EVIL = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=2">${`'
COLOUR = "\x1b[31m‮"
"""What no page may run, and no terminal obey."""

_TEXT = """HloModule m

ENTRY %main (p: f32[8], q: f32[8]) -> (f32[8], f32[8]) {
  %p = f32[8]{0} parameter(0)
  %q = f32[8]{0} parameter(1)
  %e = f32[8]{0} exponential(%p), metadata={op_name="x" source_file="y" source_line=3}
  %n = f32[8]{0} negate(%e)
  %a = f32[8]{0} add(%n, %q)
  %b = f32[8]{0} multiply(%e, %q)
  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%a, %b)
}
"""


def hostile_module(evil: str, *, op_name: str, source_file: str) -> Module:
    """`evil` behind every name; `op_name` and `source_file` as they stand in quotes in the dump."""
    module = parse_module(_TEXT)
    module.name = f"m{evil}"
    module.filename = f"f{evil}"
    module.entry.name = f"main{evil}"
    for i in module.instructions():
        i.name += evil
        if "metadata" in i.attributes:
            i.attributes = i.attributes.updated(
                metadata=f'{{op_name="{op_name}" source_file="{source_file}" source_line=3}}'
            )
    return module
