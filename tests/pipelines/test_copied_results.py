"""Results that are copied into another layout: LayoutNormalization comes to them last."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.copied_results import apart_from_copied_results

_TEXT = """HloModule m

ENTRY %main {
  %p = f32[4,8]{1,0} parameter(0)
  %add.1.0 = f32[4,8]{1,0} add(%p, %p)
  %transpose.1.0 = f32[8,4]{1,0} transpose(%add.1.0), dimensions={1,0}
  %transpose.2.0 = f32[8,4]{1,0} transpose(%p), dimensions={1,0}
  %add.2.0 = f32[8,4]{1,0} add(%transpose.2.0, %transpose.2.0)
  %transpose.3.0 = f32[4,8]{1,0} transpose(%add.2.0), dimensions={1,0}
  %bitcast.3.0 = f32[4,8]{1,0} bitcast(%transpose.3.0)
  %transpose.4.0 = f32[4,8]{1,0} transpose(%add.2.0), dimensions={1,0}, metadata={op_name="f/transpose"}
  ROOT %tuple.1 = (f32[8,4], f32[4,8], f32[4,8]) tuple(%transpose.1.0, %bitcast.3.0, %transpose.4.0)
}
"""


def test_copies_for_the_result_are_behind_all_else() -> None:
    """They read elements of the tuple that the program gives back. What the program transposes is none."""
    made = [x for x in parse_module(_TEXT).entry if x.opcode in ("add", "transpose")]
    others, copies = apart_from_copied_results(made)
    assert [x.name for x in copies] == ["transpose.1.0", "transpose.3.0"]
    assert [x for x in made if x not in copies] == others
