"""What XLA:CPU launches for single instructions; `test_cpu_final.py` compares whole programs."""

from __future__ import annotations

import pytest

from hlofuse.analysis.launches import launch_of
from hlofuse.ir.text.reader import parse_module

COMPUTATIONS = """
inside {
  p = f32[4,4]{1,0} parameter(0)
  ROOT s = f32[4,4]{1,0} sine(p)
}

sum {
  p1 = f32[] parameter(0)
  q1 = f32[] parameter(1)
  ROOT r1 = f32[] add(p1, q1)
}
"""
ALWAYS = "f32[4,4]{1,0}"


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("bitcast(x)", None),
        ("opt-barrier(x)", None),
        ("fusion(x), kind=kLoop, calls=inside", "kernel"),
        ("fusion(x), kind=kOutput, calls=inside", "kernel"),
        ("fusion(x), kind=kCustom, calls=inside", "library"),
        ("call(x), to_apply=inside", None),
        ('call(x), to_apply=inside, frontend_attributes={xla_cpu_small_call="true"}', "kernel"),
        ("sine(x)", "kernel"),
        ("copy(x)", "copy"),
        ("dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "library"),
        ('custom-call(x), custom_call_target="lapack_spotrf_ffi"', "library"),
        ('custom-call(x), custom_call_target="SliceToDynamic"', "kernel"),
        ('custom-call(x), custom_call_target="GetRngSeed"', "host"),
        ('custom-call(x), custom_call_target="Sharding", sharding={replicated}', None),
        ("all-reduce(x), replica_groups={}, to_apply=sum", "collective"),
    ],
)
def test_an_operation_of_an_array(operation: str, kind: str | None) -> None:
    text = f"HloModule m\n{COMPUTATIONS}\nENTRY e {{\n  x = {ALWAYS} parameter(0)\n"
    module = parse_module(f"{text}  ROOT y = {ALWAYS} {operation}\n}}\n")
    launch = launch_of(module.entry.root, "cpu")
    assert (launch and launch.kind) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("u64[2]{0} rng-get-and-update-state(), delta=1", "host"),
        ("u32[] partition-id()", "host"),
        ("f32[4]{0} constant({1, 2, 3, 4})", None),
        ("s4[8]{0:E(4)} copy(narrow)", "kernel"),
        ("f32[2,2]{1,0} dot(tiny, tiny), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "kernel"),
        ("s32[4,4]{1,0} transpose(wide), dimensions={1,0}", "kernel"),
        ("s32[16]{0} reshape(wide)", None),
    ],
)
def test_other_operations(line: str, kind: str | None) -> None:
    module = parse_module(f"""HloModule m

ENTRY e {{
  narrow = s4[8]{{0:E(4)}} parameter(0)
  tiny = f32[2,2]{{1,0}} parameter(1)
  wide = s32[4,4]{{1,0}} parameter(2)
  ROOT y = {line}
}}
""")
    launch = launch_of(module.entry.root, "cpu")
    assert (launch and launch.kind) == kind
