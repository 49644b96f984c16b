"""What differs between releases in PriorityFusion beyond times and verdicts."""

from __future__ import annotations

import pytest

from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.ir.graph import Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.order.restore import reserve_counted_names
from hlofuse.passes.fusion.priority_fusion.priority_fusion import PriorityFusion
from hlofuse.releases import release_of
from hlofuse.rules.instruction_fusion import FusionState
from hlofuse.rules.priority_fusion import PriorityPair, PriorityState
from hlofuse.rules.priority_fusion.conditions import triton_over_limit
from hlofuse.rules.settings import Settings
from hlofuse.trace import Recorder

DEVICE = load_device("h100_sxm")
CHAIN = """HloModule m

ENTRY %e {
  %p.1 = f32[64] parameter(0)
  %tanh.2 = f32[64] tanh(%p.1)
  ROOT %exponential = f32[64] exponential(%tanh.2)
}
"""
SLICES = """HloModule m

%b (a: f32[4096]) -> (f32[10], f32[20]) {
  %a = f32[4096] parameter(0)
  %s = f32[10] slice(%a), slice={[0:10]}
  %t = f32[20] slice(%a), slice={[5:25]}
  ROOT %r = (f32[10], f32[20]) tuple(%s, %t)
}

ENTRY %e {
  %p = f32[4096] parameter(0)
  ROOT %f = (f32[10], f32[20]) fusion(%p), kind=kInput, calls=%b
}
"""


@pytest.mark.parametrize(("release", "producer"), [("0.5.3", "tanh.2.0"), ("0.6.2", "tanh.2")])
def test_priority_fusion_itself_renames_until_0_5(release: str, producer: str) -> None:
    module, recorder = parse_module(CHAIN), Recorder()
    PriorityFusion(device=DEVICE, release=release_of(release)).run(module, recorder)
    assert [e.producer for e in recorder.events if e.event == "fuse"] == [producer]


@pytest.mark.parametrize(
    ("release", "launch"), [("0.6.2", Launch("slices", 32, 128)), ("0.7.2", Launch("loop", 1, 10))]
)
def test_several_slices_were_a_kernel_of_the_whole_array(release: str, launch: Launch) -> None:
    module = parse_module(SLICES)
    root = module.entry.root
    assert root is not None
    assert kernel_model(DEVICE, release_of(release)).launch(root) == launch


def wide(count: int) -> Module:
    """A sum of a product of many arrays and of as many others."""
    names = [f"p{k}" for k in range(2 * count)]
    inside = "\n".join(f"  %a{k} = f32[8] parameter({k})" for k in range(count))
    body = f"%b {{\n{inside}\n  ROOT %r = f32[8] negate(%a0)\n}}\n"
    first, second = ", ".join(f"%{n}" for n in names[:count]), ", ".join(f"%{n}" for n in names[count:])
    parameters = "\n".join(f"  %{n} = f32[8] parameter({k})" for k, n in enumerate(names))
    return parse_module(
        f"HloModule m\n\n{body}\n{body.replace('%b', '%c')}\nENTRY %e {{\n{parameters}\n"
        f"  %f = f32[8] fusion({first}), kind=kLoop, calls=%b\n"
        f"  ROOT %g = f32[8] fusion(%f, {second.partition(', ')[2]}), kind=kLoop, calls=%c\n}}\n"
    )


@pytest.mark.parametrize(("release", "refused"), [("0.5.3", False), ("0.6.2", True)])
def test_triton_fusions_have_the_limit_of_parameters_since_0_6(release: str, refused: bool) -> None:
    settings, model = Settings(), CombinedModel(DEVICE, release_of(release))
    consumer = wide(60).entry.root
    assert consumer is not None
    state = PriorityState(
        model,
        settings,
        triton=None,  # type: ignore[arg-type]
        tiled=None,  # type: ignore[arg-type]
        in_place=FusionState(True, model.release, settings, lambda _: False),
    )
    verdict = triton_over_limit(PriorityPair(consumer.operands[0], consumer, state))
    assert (verdict is not None) == refused


def test_names_that_xla_counted_stay_spent() -> None:
    """concat_then_reduce of XLA 0.5.3: of two reductions each had another name before it was grouped."""
    module = parse_module("""HloModule m

%add {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %e {
  %p = f32[128,128] parameter(0)
  %zero = f32[] constant(0)
  %bitcast.77 = f32[16384] bitcast(%p)
  %reduce = f32[] reduce(%bitcast.77, %zero), dimensions={0}, to_apply=%add
  %bitcast.85 = f32[16384] bitcast(%p)
  %reduce.1 = f32[] reduce(%bitcast.85, %zero), dimensions={0}, to_apply=%add
  ROOT %reduce.11 = f32[128] reduce(%p, %zero), dimensions={0}, to_apply=%add
}
""")
    reserve_counted_names(module)
    assert module.instruction_names.unique("reduce.0") == "reduce.4"
