"""Ahead of fusion as XLA:GPU: whole programs, single passes and small cases, settled by XLA's own dumps.

`tests/data/gpu-DEVICE-unoptimized.tar.xz` are made by `tests/tools/pack_passes.py`: the 63 programs
of the corpus, random ones and the small ones, and of every pass a few modules that it changed. `cases` holds
for each rewrite a small module as it is given to XLA, and under EXPECT as it enters XLA's fusion passes: on
`cpu` (`test_as_xla.py`) and on the devices that the label lists.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hlofuse
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.base import FixedPoint, Pass, Pipeline, UnimplementedPass
from hlofuse.passes.dce import HloDCE
from hlofuse.passes.gpu.convolutions.padding import ConvPaddingLegalization
from hlofuse.passes.gpu.copies import ConstantFillCopyRewriter, HostOffloader
from hlofuse.pipelines.targets import before_fusion
from hlofuse.trace import OnlySkipped, Recorder
from ..fixtures import Case, companion_texts, read_cases
from ..running import lowered
from ..tools.compare_passes import same_structure
from ..tools.module_checks import check_module
from .packed import archive

TEXTS = companion_texts(__file__)

DEVICES = ("h100_sxm", "v100")
CASES = read_cases(Path(__file__).parent / "cases")
GPU_CASES = [(case, label) for case in CASES for _, label in case.sections if label in DEVICES]
PARTS = 4
DIFFERENT = {
    "h100_sxm": {"random_719", "random_830", "sort_and_topk"},
    "v100": {"random_830", "sort_and_topk"},
}
"""Programs that passes not repeated change, or ours change otherwise than XLA's."""


def simple_steps(step: Pass) -> list[Pass]:
    """The passes in it; one that runs with several options is there several times."""
    if isinstance(step, FixedPoint):
        return simple_steps(step.of) if isinstance(step.of, Pipeline) else [step]
    if isinstance(step, Pipeline):
        return [inner for s in step.steps for inner in simple_steps(s)]
    return [] if isinstance(step, UnimplementedPass) else [step]


def left_by(step: Pass, text: str) -> Module:
    module = parse_module(text)
    step.run(module, Recorder())
    check_module(module)
    return module


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("device", DEVICES)
def test_programs_come_out_as_xla_has_them_ahead_of_fusion(device: str, part: int) -> None:
    different = set()
    names = sorted(case for case in archive(f"gpu-{device}") if case.startswith("programs/"))[part::PARTS]
    assert len(names) >= 25
    for case in names:
        texts = archive(f"gpu-{device}")[case]
        out = lowered(parse_module(texts["before"]), "gpu", load_device(device))
        check_module(out.module)
        written = parse_module(print_module(out.module))
        if not same_structure(written, parse_module(texts["ahead"])):
            different.add(case.rpartition("/")[2])
    assert different == {name for name in DIFFERENT[device] if f"programs/{name}" in names}


@pytest.mark.parametrize("device", DEVICES)
def test_a_pass_changes_a_module_as_xla_does(device: str) -> None:
    steps = [s for pipeline in before_fusion("gpu", load_device(device)) for s in simple_steps(pipeline)]
    found = {case: texts for case, texts in archive(f"gpu-{device}").items() if case.startswith("passes/")}
    assert len(found) >= 80
    for case, texts in found.items():
        truth = parse_module(texts["left"])
        configs = [step for step in steps if step.name == case.split("/")[1]]
        assert any(same_structure(left_by(step, texts["given"]), truth) for step in configs), case


def test_labels_of_small_cases_are_devices() -> None:
    assert {label for case in CASES for _, label in case.sections} == {"cpu", *DEVICES}
    assert all(case.sections for case in CASES)


@pytest.mark.parametrize(("case", "device"), GPU_CASES, ids=str)
def test_a_small_case_comes_out_as_xla_has_it(case: Case, device: str) -> None:
    out = lowered(case.module(), "gpu", load_device(device))
    assert not out.left_alone
    assert same_structure(out.module, parse_module(print_module(out.module)))
    own, truth = print_module(out.module), case.section("EXPECT", device)
    sizes, sizes_of_xla = (list(map(int, re.findall(_SCRATCH, text))) for text in (own, truth))
    assert sizes == pytest.approx(sizes_of_xla, rel=0.06)  # XLA has tables, measured for each device
    own, truth = (re.sub(_SCRATCH, "1", text) for text in (own, truth))
    assert same_structure(parse_module(own), parse_module(truth))


_SCRATCH = r"(?<=u8\[)\d+(?=\]\{0\}\) custom-call[^\n]*\.cub_sort_)"


def test_host_offloader_makes_equals_one_though_nothing_moves_to_the_host() -> None:
    module = parse_module(TEXTS["host_offloader_makes"])
    assert HostOffloader().run(module, Recorder())
    assert [x.name for x in module.entry.root.operands] == ["sine.1", "sine.1"]


_CONVOLUTION = TEXTS["convolution"]


@pytest.mark.parametrize(
    ("element_type", "device", "kernels", "target"),
    [
        ("f8e4m3fn", "h100_sxm", 2, "__cudnn$convForwardGraph"),
        ("f8e5m2", "b200", 2, "__cudnn$convForwardGraph"),
        ("f8e4m3fn", "a100_sxm_40", 4, "__cudnn$convForward"),
    ],
)
def test_cudnn_reads_floats_of_8_bits_as_they_are(
    element_type: str, device: str, kernels: int, target: str
) -> None:
    """The kernels are XLA 0.11.1's."""
    text = _CONVOLUTION.replace("TYPE", element_type)
    report = hlofuse.open(
        parse_module(text), target="gpu", device=device, xla="0.11.1", stage="before-optimizations"
    )
    assert f'"{target}"' in report.replayed_text()
    assert report.totals.kernels == kernels


_TO_HOST = {
    "moves": ('custom_call_target="MoveToHost"', 'custom_call_target="MoveToDevice"'),
    "placements": tuple(
        'custom_call_target="annotate_device_placement", custom_call_has_side_effect=true,'
        f' frontend_attributes={{_xla_buffer_placement="{place}"}}'
        for place in ("pinned_host", "device")
    ),
}


@pytest.mark.parametrize("form", _TO_HOST)
def test_annotations_of_host_memory_launch_nothing_and_part_nothing(form: str) -> None:
    """A value that comes straight back never leaves: XLA 0.11.1 has 1 kernel for h100_sxm."""
    there, back = _TO_HOST[form]
    module = parse_module(f"""HloModule jit_f, entry_computation_layout={{(f32[8,8]{{1,0}})->f32[8,8]{{1,0}}}}

ENTRY main {{
  a = f32[8,8]{{1,0}} parameter(0)
  s = f32[8,8]{{1,0}} cosine(a)
  h = f32[8,8]{{1,0}} custom-call(s), {there}
  d = f32[8,8]{{1,0}} custom-call(h), {back}
  ROOT m = f32[8,8]{{1,0}} add(d, a)
}}
""")
    report = hlofuse.open(module, target="gpu", device="h100_sxm", stage="before-optimizations")
    assert report.totals.kernels == 1


def test_host_offloader_copies_there_and_back_where_the_value_comes_back() -> None:
    """A value that is read on the host keeps its annotation."""
    module = parse_module(TEXTS["host_offloader_copies"])
    assert HostOffloader().run(module, Recorder())
    back, negated = module.entry.root.operands
    assert (back.opcode, str(back.shape)) == ("copy", "f32[8]{0}")
    assert str(back.operands[0].shape) == "f32[8]{0:S(5)}"
    assert negated.operands[0].opcode == "custom-call"


def test_an_element_of_a_tuple_that_is_itself_a_constant_stays() -> None:
    """Only what a tuple was put together from is looked into."""
    module = parse_module(TEXTS["element_tuple_itself"])
    assert not HloConstantFolding().run(module, Recorder())
    assert module.entry.root.opcode == "get-tuple-element"


@pytest.mark.parametrize(
    ("pad", "start"), [("0_1x0_1", 0), ("1_0x1_0", 1), ("2_1x2_1", 1), ("1_1x1_1", None)]
)
def test_the_gradient_of_unevenly_padded_pictures_is_a_piece_of_a_larger_one(
    pad: str, start: int | None
) -> None:
    text = f"""HloModule m
    ENTRY e {{
      g = f32[4,8,8,16] parameter(0)
      w = f32[3,3,8,16] parameter(1)
      c = (f32[4,16,16,8], u8[0]) custom-call(g, w), window={{size=3x3 stride=2x2 pad={pad}}},
        dim_labels=b01f_01io->b01f, custom_call_target="__cudnn$convBackwardInput"
      ROOT x = f32[4,16,16,8] get-tuple-element(c), index=0
    }}"""
    module = parse_module(text)
    assert ConvPaddingLegalization().run(module, OnlySkipped()) == (start is not None)
    slices = [i.attributes["slice"] for i in module.entry if i.opcode == "slice"]
    assert [[(r.start, r.limit) for r in s] for s in slices] == (
        [] if start is None else [[(0, 4), (start, start + 16), (start, start + 16), (0, 8)]]
    )


@pytest.mark.parametrize(
    ("size", "fill", "results", "copies"),
    [
        (262_144, "constant(2)", "s, t", 1),  # the other one writes the array in place
        (262_144, "constant(2)", "s, f", 0),
        (262_144, "constant(2)", "s, t, f, y", 0),
        (262_144, "constant(2)", "f, y", 1),  # one instruction reads both
        (262_143, "constant(2)", "s, f", 1),  # less than 1 MiB
        (262_144, "parameter(0)", "s, f", 1),
    ],
)
def test_large_constants_are_written_again_not_copied_since_0_12(
    size: int, fill: str, results: str, copies: int
) -> None:
    """As XLA answered for scatters in the place of sines."""
    shape, given = f"f32[{size}]", "a" if "parameter" in fill else ""
    module = parse_module(f"""HloModule m
    fill {{
      c = f32[] {fill}
      ROOT b = {shape} broadcast(c), dimensions={{}}
    }}
    ENTRY e {{
      a = f32[] parameter(0)
      f = {shape} fusion({given}), kind=kLoop, calls=fill
      x = {shape} copy(f)
      y = {shape} copy(f)
      s = {shape} sine(x)
      t = {shape} sine(y)
      ROOT r = ({", ".join([shape] * (results.count(",") + 1))}) tuple({results})
    }}""")
    HloDCE().run(module, Recorder())
    before = sum(i.opcode == "copy" for i in module.entry)
    assert ConstantFillCopyRewriter().run(module, Recorder()) == (copies < before)
    check_module(module)
    assert sum(i.opcode == "copy" for i in module.entry) == copies
