"""After fusion as XLA:GPU: names of kernels, kernels, copies and launches, settled by XLA's own dumps.

`after_fusion.hlo` has small modules as they leave fusion and under EXPECT as they are launched.
`tests/data/gpu-h100_sxm-final.tar.xz` has the 63 programs of the corpus and 60 random ones;
`tests/tools/pack_final.py` makes both.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hlofuse.analysis.launches import COMMANDS, command_buffers, launch_of, launches
from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs.wire_format import ids_of_proto
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.base import Pass, UnimplementedPass
from hlofuse.pipelines.flags import COMMAND_BUFFERS, command_types
from hlofuse.pipelines.gpu.after_fusion import after_fusion
from hlofuse.reports.verify.verify import compare_final
from hlofuse.trace import Recorder
from ..fixtures import Case, companion_texts, packed, read_cases
from ..running import finished
from ..tools.module_checks import check_module

TEXTS = companion_texts(__file__)

DEVICE = load_device("h100_sxm")
DATA = Path(__file__).parent.parent / "data" / "gpu-h100_sxm-final.tar.xz"
CASES = read_cases(Path(__file__).parent / "after_fusion.hlo")
STEPS = [step for pipeline in after_fusion(DEVICE) for step in pipeline.steps]
AFTER_COPIES = next(k for k, step in enumerate(STEPS) if step.name == "copy-insertion") + 1
INSERTS_COPIES = not isinstance(STEPS[AFTER_COPIES - 1], UnimplementedPass)
WRITES_COPIES = {"result_twice", "lstm_scan", "random_1012"}
"""Programs with a fusion that writes a copy, which copy insertion has to make first."""
SPARES_COPIES = {"random_1006", "random_1012", "random_1013"}
"""Programs with copies that XLA finds to be needless once it has an order of execution."""
KINDS = {
    "kCustomKernel": "kernel",
    "kKernel": "kernel",
    "kConvolution": "library",
    "kCublasLtMatmul": "library",
    "kCustomCall": "library",
    "kFft": "library",
    "kTriangularSolve": "library",
    "kCopy": "copy",
    "kDynamicSliceFusion": "copy",
}


def archive() -> dict[str, dict[str, bytes]]:
    return packed(DATA)


def module(program: str, file: str) -> Module:
    return parse_module(archive()[program][file].decode(), file)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_small_modules_are_launched_as_by_xla(case: Case) -> None:
    final = finished(case.module(), "gpu", DEVICE).final
    check_module(final)
    found = compare_final(final, case.expected("h100_sxm"), "gpu")
    assert not found.renamed
    if INSERTS_COPIES:
        assert found.agrees, (found.only_xla, found.only_actual)
    elif case.name not in WRITES_COPIES:
        assert found.same_kernels, (found.only_xla, found.only_actual)


def test_programs_are_launched_as_by_xla() -> None:
    names, kernels, copies = set(), set(), set()
    for program, files in archive().items():
        fused = module(program, "fused.hlo")
        ids_of_proto(files["fused.hlo.pb"]).apply(fused)
        final = finished(fused, "gpu", DEVICE).final
        check_module(final)
        written = parse_module(print_module(final))
        found = compare_final(written, module(program, "final.hlo"), "gpu")
        names |= set() if found.same_names else {program}
        kernels |= set() if found.same_kernels else {program}
        copies |= set() if found.same_copies else {program}
    assert len(archive()) == 123
    assert names == set()
    if INSERTS_COPIES:
        assert kernels == set()
        assert copies <= SPARES_COPIES
    else:
        assert kernels == WRITES_COPIES & archive().keys()


def test_what_follows_copy_insertion_is_done_as_by_xla() -> None:
    different = set()
    for program in archive():
        final = module(program, "copied.hlo")
        for step in STEPS[AFTER_COPIES:]:
            step.run(final, Recorder())
        check_module(final)
        found = compare_final(final, module(program, "final.hlo"), "gpu")
        different |= set() if found.agrees else {program}
    assert different <= SPARES_COPIES


def test_every_pass_of_the_list_changes_some_program() -> None:
    implemented = {step.name for step in STEPS if not isinstance(step, UnimplementedPass)}
    changed = {step.name for program in archive() for step in steps_that_change(program)}
    collectives = read_cases(Path(__file__).parent / "collectives.hlo")
    changed |= {step.name for case in (*CASES, *collectives) for step in _run(case.module(), STEPS)}
    # Other passes may clean up what DCE would. `propagate-call-metadata` changes metadata only, which the
    # archive does not hold.
    assert implemented - changed - {"dce"} == {"propagate-call-metadata"}


def steps_that_change(program: str) -> list[Pass]:
    return _run(module(program, "fused.hlo"), STEPS[: AFTER_COPIES - 1]) + _run(
        module(program, "copied.hlo"), STEPS[AFTER_COPIES:]
    )


def _run(module: Module, steps: list[Pass]) -> list[Pass]:
    return [step for step in steps if step.run(module, Recorder())]


def test_launches_are_those_of_xlas_thunks() -> None:
    checked = 0
    for program, files in archive().items():
        thunks = [line.split(" ", 1) for line in files["thunks.txt"].decode().splitlines()]
        if not thunks:
            continue  # XLA's compiler for devices without a GPU does not come to the end of it
        expected = {(name, KINDS[kind]) for kind, name in thunks if kind in KINDS}
        # A sort or a triangular solve works in place, so its operands are copied first: a note here.
        expected -= {(name, "copy") for name, kind in expected if kind != "copy"}
        found = launches(module(program, "final.hlo"), "gpu")
        assert Counter((i.name, launch.kind) for i, launch in found) == Counter(expected), program
        checked += 1
    assert checked == 122


def test_command_buffers_are_those_of_xlas_thunks() -> None:
    unknown = []
    for program, files in archive().items():
        thunks = [line.split(" ", 1) for line in files["thunks.txt"].decode().splitlines()]
        if not thunks:
            continue
        kinds, names = zip(*thunks, strict=True)
        found = command_buffers(module(program, "final.hlo"))
        if found is None:
            unknown.append(program)
            continue
        # What a buffer launches follows it; a sort and its copies have one name.
        begins = [at + 2 for at, kind in enumerate(kinds) if kind == "kCommandBuffer"]
        assert len(found) == len(begins), program
        written = [list(dict.fromkeys(names[at:])) for at in begins]
        for launched in found:
            own = [i.name for i in launched]
            assert own in [w[: len(own)] for w in written], program
    # Each with four or fewer launches one of which sorts, in any number of kernels.
    assert unknown == [f"random_{n}" for n in (1000, 1010, 1015, 1027, 1030, 1045)]


@pytest.mark.parametrize(
    ("last", "numbers"),
    [
        ('custom-call(a), custom_call_target="__cublas$gemm"', [6]),
        ('custom-call(a), custom_call_target="theirs"', [5]),
        ('custom-call(a), custom_call_target="__cudnn$convForward"', [5]),
        ("copy(a)", [6]),
        ("bitcast(a)", [5]),
    ],
)
def test_command_buffers_hold_what_needs_no_host(last: str, numbers: list[int]) -> None:
    text = f"""HloModule m, is_scheduled=true
ENTRY e {{
  x = f32[8,8]{{1,0}} parameter(0)
  v = f32[8,8]{{1,0}} add(x, x)
  w = f32[8,8]{{1,0}} negate(x)
  y = f32[8,8]{{1,0}} abs(x)
  z = f32[8,8]{{1,0}} sine(x)
  a = f32[8,8]{{1,0}} subtract(x, x)
  b = f32[8,8]{{1,0}} {last}
  ROOT t = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(a, b)
}}"""
    assert [len(own) for own in command_buffers(parse_module(text)) or []] == numbers
    assert command_buffers(parse_module(text), smallest=7) == []
    # Without a schedule it counts only where nothing stands between the launches.
    unordered = command_buffers(parse_module(text.replace(", is_scheduled=true", "")))
    assert (unordered is None) == (last.startswith("custom-call") and "cublas" not in last)


# Six kernels, an all-reduce of one of them, and three more; the last is between its start and its done.
SUMMED = TEXTS["summed"]
STARTED = SUMMED.replace("all-reduce(", "all-reduce-start(").replace("add(r, x)", "add(x, x)")
DONE = "  e = f32[8,8]{1,0} all-reduce-done(r)"
STARTED = STARTED.replace("  ROOT t", f"{DONE}\n  ROOT t").replace("tuple(r, i)", "tuple(e, i)")


@pytest.mark.parametrize(
    ("text", "value", "numbers"),
    [
        (SUMMED, None, [5]),
        (SUMMED, "+collectives", [9]),
        (SUMMED, "COLLECTIVES,CUBLAS,FUSION", [9]),
        (SUMMED, "-FUSION", []),
        (SUMMED, "+COLLECTIVES,-FUSION", []),
        (SUMMED, "CUBLAS", []),
        (SUMMED, "", []),
        # A buffer has both the start and the end of an asynchronous operation, or none of them.
        (STARTED, None, [5]),
        (STARTED, "+COLLECTIVES", [9]),
        (STARTED.replace("sine(h)", 'custom-call(h), custom_call_target="theirs"'), "+COLLECTIVES", [5]),
    ],
)
def test_a_flag_says_which_commands_are_in_buffers(text: str, value: str | None, numbers: list[int]) -> None:
    flags = () if value is None else (f"--{COMMAND_BUFFERS}={value}",)
    found = command_buffers(parse_module(text), command_types(flags, COMMANDS))
    assert [len(own) for own in found or []] == numbers


def test_a_module_that_is_not_final_has_launches_too() -> None:
    kinds = {i.name: x.kind for i in parse_module(TEXTS["not_final"]).entry if (x := launch_of(i, "gpu"))}
    assert kinds == {"a": "kernel", "c": "library", "d": "copy", "f": "copy", "g": "kernel"}


def test_final_names_lead_back_to_the_names_at_fusion() -> None:
    case = next(c for c in CASES if c.name == "loop_over_rows")
    final = finished(case.module(), "gpu", DEVICE)
    fusions = {i.name for i in final.final.instructions() if i.opcode == "fusion"}
    before = {i.name for i in case.module().instructions() if i.opcode == "fusion"}
    assert {final.names_at_fusion[name] for name in fusions} == before


def test_differences_between_final_modules_are_named() -> None:
    case = next(c for c in CASES if c.name == "several_heroes")
    xla = case.expected("h100_sxm")
    other = parse_module(print_module(xla).replace("loop_divide_subtract_fusion", "loop_divide_fusion"))
    found = compare_final(other, xla, "gpu")
    assert found.same_kernels
    assert not found.agrees
    assert found.renamed == ("loop_divide_subtract_fusion",)
    found = compare_final(next(c for c in CASES if c.name == "slices").expected("h100_sxm"), xla, "gpu")
    assert not found.same_kernels
    assert [side.name for side in found.only_xla] == ["loop_divide_subtract_fusion"]
