"""XLA:CPU as the judge: equal modules are the same, broken ones are not; what it refuses has a verdict."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlofuse.ir import parse_module
from hlofuse.ir.computation_order import order_of_front_end
from hlofuse.ir.copy import copy_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.judge.judge import Judge, judge
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.reshape_mover import ReshapeMover
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.base import Pass
from hlofuse.passes.cse import HloCSE
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.passes.dot.dot_dimensions import DotDecomposer
from hlofuse.releases import AROUND_FUSION
from hlofuse.trace.provenance import BeforeFusion
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="needs jax (Python 3.12 or newer)"
)
DATA = Path(__file__).parent.parent / "data" / "cpu-unoptimized.tar.xz"
REDUCERS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
most { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
"""
NORM = TEXTS["norm"].replace("chosen = f32", "chosen = pred")
SHAPES = TEXTS["shapes"]
LOOP = TEXTS["loop"]
BROKEN = [
    (NORM, "constant(0.01)", "constant(0.011)"),
    (NORM, "reduce(x, zero), dimensions={1}", "reduce(x, zero), dimensions={0}"),
    (NORM, "ROOT r = f32[] maximum", "ROOT r = f32[] minimum"),
    (NORM, "low = f32[] constant(-inf)", "low = f32[] constant(0)"),
    (NORM, "select(chosen, part, y)", "select(chosen, y, part)"),
    (SHAPES, "[1:5], [0:6]", "[2:6], [0:6]"),
    (SHAPES, "whole = s32[6,6] convert(x)", "whole = f32[6,6] copy(x)"),
    (SHAPES, "transpose(cut), dimensions={1,0}", "reshape(cut)"),
    (SHAPES, "padding=1_1x1_1", "padding=0_2x1_1"),
    (LOOP, "constant(7)", "constant(6)"),
    (LOOP, "constant(0.5)", "constant(0.5001)"),
    (LOOP, "select(m, y, x)", "select(m, x, y)"),
]


@pytest.fixture(scope="module")
def process() -> Iterator[Judge]:
    with Judge() as found:
        yield found


def _module(text: str) -> Module:
    return parse_module(text.replace("REDUCERS", REDUCERS))


@pytest.mark.parametrize(("text", "right", "wrong"), BROKEN)
def test_a_miscompilation_is_found(process: Judge, text: str, right: str, wrong: str) -> None:
    assert text.replace("REDUCERS", REDUCERS).count(right) >= 1
    broken = text.replace("REDUCERS", REDUCERS).replace(right, wrong, 1)
    assert process.judge(_module(text), parse_module(broken)).verdict == "different"


def _passes() -> list[Pass]:
    return [
        AlgebraicSimplifier(Options(supports_non_canonical_dots=False, executing_on_cpu=True)),
        HloCSE(release=AROUND_FUSION, layout_sensitive=False, only_fusion_computations=False),
        HloDCE(),
        ReshapeMover(),
        TupleSimplifier(),
        DotDecomposer(),
    ]


def test_passes_in_any_order_leave_the_values(process: Judge) -> None:
    """Every third program before XLA's passes, against itself after passes of hlofuse drawn at random."""
    verdicts: list[tuple[str, str]] = []
    with tarfile.open(DATA) as tar:
        files = sorted(m.name for m in tar if m.name.endswith("ahead.hlo"))
        for number, name in enumerate(files):
            file = tar.extractfile(name)
            assert file is not None
            module = parse_module(file.read().decode())
            opcodes = [x.opcode for x in module.instructions()]
            if "bitcast" in opcodes or len(opcodes) > 400 or len(verdicts) == 42:
                continue  # these passes are for modules without layouts
            changed, recorder, draw = copy_module(module), BeforeFusion(), random.Random(number)
            changed.listeners.append(recorder)
            changed.computation_order = order_of_front_end(changed)
            for p in draw.choices(_passes(), k=6):
                recorder.begin_pass(p.name)
                p.run(changed, recorder)
            changed.listeners.clear()
            verdicts.append((name, process.judge(module, changed, scales=[0.1]).verdict))
    assert len(verdicts) >= 40
    assert [v for v in verdicts if v[1] == "different"] == []


def test_kernels_are_those_of_xla(process: Judge) -> None:
    found = process.compile(_module(NORM))
    assert (found.kernels, "fusion(" in found.text) == (3, True)
    apart = process.compile(_module(NORM), ["--xla_disable_hlo_passes=fusion,fusion-wrapper"])
    assert (apart.kernels > 8, "fusion(" in apart.text) == (True, False)


def test_a_module_after_passes_is_judged_by_its_operations(process: Judge) -> None:
    head, x = "HloModule m", "x = f32[4,8]{1,0} parameter(0)"
    a = f"{head}\nENTRY e {{ {x}  ROOT t = f32[8,4]{{1,0}} transpose(x), dimensions={{1,0}} }}"
    for layout, verdict in (("{0,1}", "same"), ("{1,0}", "different")):
        body = f"f {{ {x}  b = f32[8,4]{layout} bitcast(x)  ROOT c = f32[8,4]{{1,0}} copy(b) }}"
        b = f"{head}\n{body}\nENTRY e {{ {x}  ROOT r = f32[8,4]{{1,0}} fusion(x), kind=kLoop, calls=f }}"
        assert process.judge(parse_module(a), parse_module(b)).verdict == verdict


def test_an_index_out_of_range_is_named(process: Judge) -> None:
    head = "HloModule m\nENTRY e { t = f32[40] parameter(0)  i = s32[1] parameter(1)  j = s32[] reshape(i)"
    row = "r = f32[1] dynamic-slice(t, j), dynamic_slice_sizes={1}"
    tested = "z = s32[1] constant({0})  p = pred[1] compare(i, z), direction=GE  o = f32[1] constant({0})"
    for chosen, in_range in (("r, o", True), ("o, r", False)):
        b = f"{head}  {row}  {tested}  ROOT s = f32[1] select(p, {chosen}) }}"
        found = process.judge(parse_module(f"{head}  ROOT {row} }}"), parse_module(b), seed=1)
        assert (found.verdict, found.in_range) == ("different", in_range)
        assert ("same for indices in range" in found.reason) == in_range


def test_what_cannot_be_told(process: Judge) -> None:
    start = "HloModule m\nENTRY e { x = f32[4] parameter(0)  n = f32[4] abs(x)  b = f32[4] negate(n)"
    log, sqrt = (parse_module(f"{start}  ROOT r = f32[4] {o}(b) }}") for o in ("log", "sqrt"))
    found = process.judge(log, sqrt)
    assert (found.verdict, "nan or inf" in found.reason) == ("cannot tell", True)
    sine = "k = f32[] constant(1e9)  c = f32[4] broadcast(k), dimensions={}  y = f32[4] multiply(x, c)"
    text = f"{start}  {sine}  ROOT r = f32[4] sine(y) }}"
    found = process.judge(parse_module(text), parse_module(text.replace("1e9", "1.1e9")))
    assert (found.verdict, "one ulp of the inputs" in found.reason) == ("cannot tell", True)


def test_a_refusal_is_a_verdict(process: Judge, hlofuse: Run, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.hlo", tmp_path / "bad.hlo"
    good.write_text("HloModule m\nENTRY e { x = f32[4] parameter(0)  ROOT r = f32[4] negate(x) }")
    bad.write_text(good.read_text().replace("negate(x)", 'custom-call(x), custom_call_target="nobody"'))
    found = hlofuse("judge", good, bad, "--format", "json")
    assert found.status == 1
    document = json.loads(found.out)
    assert document["verdict"] == "refused"
    assert document["reason"].startswith("XLA rejects B: ")
    assert (document["a"], document["b"]) == ({"kernels": 1, "instructions": 4}, None)
    broken = LOOP.replace("constant(7)", "constant(-9)").replace("direction=LT", "direction=NE")
    endless = _module(broken)
    with Judge(timeout=20) as short:
        assert short.compile(endless).kernels > 0
        short.timeout = 2
        assert short.judge(_module(LOOP), endless).reason == "XLA rejects B: no result within 2 s"
        short.timeout = 60
        assert short.compile(_module(LOOP)).kernels > 0  # another process goes on


def test_the_command(hlofuse: Run, tmp_path: Path) -> None:
    a, b = tmp_path / "a.hlo", tmp_path / "b.hlo"
    a.write_text(NORM.replace("REDUCERS", REDUCERS))
    b.write_text(a.read_text().replace("constant(0.01)", "constant(0.02)"))
    same = hlofuse("judge", a, a, "--scale", "0.1")
    assert (same.status, same.err) == (0, "")
    assert same.out.startswith("Same: all outputs agree\n  A: 3 kernels, ")
    assert hlofuse("judge", a, b, "--seed", 3).out.startswith("Different: output 0 differs by ")
    b.write_text("HloModule m\nENTRY e { ROOT x = f32[4] parameter(0) }")
    other = hlofuse("judge", a, b)
    assert (other.status, other.out) == (2, "")
    assert other.err == "error: the modules have different parameters or results\n"
    assert hlofuse("judge", a, a, "--python", "/nowhere/python").status == 2


def test_a_python_without_jax(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    fake.chmod(0o755)
    with pytest.raises(HlofuseError, match="needs jax"):
        judge(_module(NORM), _module(NORM), python=str(fake))
