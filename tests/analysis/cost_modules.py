"""Small modules, one for each way of counting; `ask_xla_costs.py` has XLA count them."""

from __future__ import annotations

_ADD = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""
_EXP_ADD = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  %e = f32[] exponential(%b)
  ROOT %sum = f32[] add(%a, %e)
}
"""
_GE = """
%ge (a: f32[], b: f32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %cmp = pred[] compare(%a, %b), direction=GE
}
"""


def _entry(body: str, before: str = "") -> str:
    return f"HloModule m\n{before}\nENTRY %main {{\n{body}\n}}\n"


def _one(operation: str, *shapes: str, before: str = "") -> str:
    """A module of one operation on parameters %p0, %p1…"""
    lines = [f"  %p{i} = {s} parameter({i})" for i, s in enumerate(shapes)]
    return _entry("\n".join([*lines, f"  ROOT %r = {operation}"]), before)


def _fused(body: str, result: str, *shapes: str, kind: str = "kLoop", before: str = "") -> str:
    inner = "\n".join([*(f"  %q{i} = {s} parameter({i})" for i, s in enumerate(shapes)), body])
    fused = f"{before}\n%fused {{\n{inner}\n}}\n"
    operands = ", ".join(f"%p{i}" for i in range(len(shapes)))
    return _one(f"{result} fusion({operands}), kind={kind}, calls=%fused", *shapes, before=fused)


_CONV = "convolution(%p0, %p1), window={{{}}}, dim_labels=b01f_01io->b01f{}"
_LOOP = (
    _ADD
    + """
%body (s: (s32[], f32[8])) -> (s32[], f32[8]) {
  %s = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %one = s32[] constant(1)
  %j = s32[] add(%i, %one)
  %x = f32[8]{0} get-tuple-element(%s), index=1
  %y = f32[8]{0} tanh(%x)
  ROOT %t = (s32[], f32[8]{0}) tuple(%j, %y)
}
%cond (s: (s32[], f32[8])) -> pred[] {
  %s = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(10)
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}
"""
)
_BRANCHES = """
%small (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%x)
}
%large (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %y = f32[8]{0} multiply(%x, %x)
  %c = f32[8]{0} constant({1,2,3,4,5,6,7,8})
  ROOT %z = f32[8]{0} power(%y, %c)
}
"""

MODULES: dict[str, str] = {
    "add": _one("f32[4,5]{1,0} add(%p0, %p1)", "f32[4,5]{1,0}", "f32[4,5]{1,0}"),
    "tanh": _one("bf16[7]{0} tanh(%p0)", "bf16[7]{0}"),
    "compare": _one("pred[7]{0} compare(%p0, %p1), direction=LT", "s8[7]{0}", "s8[7]{0}"),
    "packed_s4": _one("s4[7]{0:E(4)} add(%p0, %p0)", "s4[7]{0:E(4)}"),
    "complex_abs": _one("f64[9]{0} abs(%p0)", "c128[9]{0}"),
    "convert": _one("f32[9]{0} convert(%p0)", "f16[9]{0}"),
    "copy": _one("f32[3,4]{0,1} copy(%p0)", "f32[3,4]{1,0}"),
    "bitcast": _one("f32[12]{0} bitcast(%p0)", "f32[3,4]{1,0}"),
    "transpose": _one("f32[4,3]{1,0} transpose(%p0), dimensions={1,0}", "f32[3,4]{1,0}"),
    "transpose_bitcast": _one("f32[4,3]{0,1} transpose(%p0), dimensions={1,0}", "f32[3,4]{1,0}"),
    "transpose_three": _one("f32[5,3,4]{0,2,1} transpose(%p0), dimensions={2,0,1}", "f32[3,4,5]{2,1,0}"),
    "tuple": _one("(f32[3]{0}, f32[3]{0}, f32[]) tuple(%p0, %p0, %p1)", "f32[3]{0}", "f32[]"),
    "broadcast": _one("f32[3,4]{1,0} broadcast(%p0), dimensions={0}", "f32[3]{0}"),
    "slice": _one("f32[2,3]{1,0} slice(%p0), slice={[1:3], [0:3]}", "f32[9,3]{1,0}"),
    "dynamic_slice": _one(
        "f32[2,3]{1,0} dynamic-slice(%p0, %p1, %p1), dynamic_slice_sizes={2,3}", "f32[9,3]{1,0}", "s32[]"
    ),
    "dynamic_update_slice": _one(
        "f32[9,3]{1,0} dynamic-update-slice(%p0, %p1, %p2, %p2)", "f32[9,3]{1,0}", "f32[2,3]{1,0}", "s64[]"
    ),
    "gather": _one(
        "f32[5,3]{1,0} gather(%p0, %p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},"
        " index_vector_dim=1, slice_sizes={1,3}",
        "f32[9,3]{1,0}",
        "s32[5,1]{1,0}",
    ),
    "scatter": _one(
        "f32[9,3]{1,0} scatter(%p0, %p1, %p2), update_window_dims={1}, inserted_window_dims={0},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%add",
        "f32[9,3]{1,0}",
        "s32[5,1]{1,0}",
        "f32[5,3]{1,0}",
        before=_ADD,
    ),
    "concatenate": _one("f32[5]{0} concatenate(%p0, %p1), dimensions={0}", "f32[3]{0}", "f32[2]{0}"),
    "pad": _one("f32[9]{0} pad(%p0, %p1), padding=3_3", "f32[3]{0}", "f32[]"),
    "iota": _one("s32[9]{0} iota(), iota_dimension=0"),
    "reduce": _one(
        "f32[3]{0} reduce(%p0, %p1), dimensions={1}, to_apply=%add", "f32[3,4]{1,0}", "f32[]", before=_EXP_ADD
    ),
    "reduce_window": _one(
        "f32[3,4]{1,0} reduce-window(%p0, %p1), window={size=2x3 pad=0_1x1_1}, to_apply=%add",
        "f32[3,4]{1,0}",
        "f32[]",
        before=_ADD,
    ),
    "reduce_window_broadcast": _one(
        "f32[3,4]{1,0} reduce-window(%p0, %p1), window={size=1x7 pad=0_0x3_3}, to_apply=%add",
        "f32[3,4]{1,0}",
        "f32[]",
        before=_ADD,
    ),
    "select_and_scatter": _one(
        "f32[4,4]{1,0} select-and-scatter(%p0, %p1, %p2), window={size=2x2 stride=2x2},"
        " select=%ge, scatter=%add",
        "f32[4,4]{1,0}",
        "f32[2,2]{1,0}",
        "f32[]",
        before=_ADD + _GE,
    ),
    "map": _one("f32[6]{0} map(%p0, %p0), dimensions={0}, to_apply=%add", "f32[6]{0}", before=_EXP_ADD),
    "dot": _one(
        "f32[2,3,5]{2,1,0} dot(%p0, %p1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},"
        " rhs_contracting_dims={1}",
        "f32[2,3,4]{2,1,0}",
        "f32[2,4,5]{2,1,0}",
    ),
    "convolution_valid": _one(
        f"f32[2,6,6,5]{{3,2,1,0}} {_CONV.format('size=3x3', '')}",
        "f32[2,8,8,4]{3,2,1,0}",
        "f32[3,3,4,5]{3,2,1,0}",
    ),
    "convolution_padded": _one(
        f"f32[2,8,8,5]{{3,2,1,0}} {_CONV.format('size=3x3 pad=1_1x1_1', '')}",
        "f32[2,8,8,4]{3,2,1,0}",
        "f32[3,3,4,5]{3,2,1,0}",
    ),
    "convolution_strided": _one(
        f"f32[2,4,3,5]{{3,2,1,0}} {_CONV.format('size=3x4 stride=2x3 pad=1_1x2_1 rhs_dilate=1x2', '')}",
        "f32[2,8,10,4]{3,2,1,0}",
        "f32[3,4,4,5]{3,2,1,0}",
    ),
    "convolution_transposed": _one(
        f"f32[2,17,17,5]{{3,2,1,0}} {_CONV.format('size=3x3 pad=2_2x2_2 lhs_dilate=2x2', '')}",
        "f32[2,8,8,4]{3,2,1,0}",
        "f32[3,3,4,5]{3,2,1,0}",
    ),
    "convolution_grouped": _one(
        f"f32[2,6,6,8]{{3,2,1,0}} {_CONV.format('size=3x3', ', feature_group_count=4')}",
        "f32[2,8,8,4]{3,2,1,0}",
        "f32[3,3,1,8]{3,2,1,0}",
    ),
    "fft": _one("c64[4,5]{1,0} fft(%p0), fft_type=RFFT, fft_length={8}", "f32[4,8]{1,0}"),
    "sort": _one("f32[5,9]{1,0} sort(%p0), dimensions={1}, to_apply=%ge", "f32[5,9]{1,0}", before=_GE),
    "triangular_solve": _one(
        "f32[4,3]{1,0} triangular-solve(%p0, %p1), left_side=true, lower=true, unit_diagonal=false,"
        " transpose_a=NO_TRANSPOSE",
        "f32[4,4]{1,0}",
        "f32[4,3]{1,0}",
    ),
    "cholesky": _one("f32[4,4]{1,0} cholesky(%p0), lower=true", "f32[4,4]{1,0}"),
    "rng": _one("f32[7]{0} rng(%p0, %p1), distribution=rng_uniform", "f32[]", "f32[]"),
    "rng_bit_generator": _one(
        "(u64[2]{0}, u32[5]{0}) rng-bit-generator(%p0), algorithm=rng_three_fry", "u64[2]{0}"
    ),
    "all_reduce": _one(
        "f32[7]{0} all-reduce(%p0), replica_groups={}, to_apply=%add", "f32[7]{0}", before=_ADD
    ),
    "while": _entry(
        "  %i = s32[] constant(0)\n  %x = f32[8]{0} parameter(0)\n"
        "  %t = (s32[], f32[8]{0}) tuple(%i, %x)\n"
        "  ROOT %w = (s32[], f32[8]{0}) while(%t), condition=%cond, body=%body",
        _LOOP,
    ),
    "conditional": _one(
        "f32[8]{0} conditional(%p0, %p1, %p1), true_computation=%small, false_computation=%large",
        "pred[]",
        "f32[8]{0}",
        before=_BRANCHES,
    ),
    "call": _one("f32[8]{0} call(%p0), to_apply=%large", "f32[8]{0}", before=_BRANCHES),
    "custom_call": _one('f32[8]{0} custom-call(%p0), custom_call_target="f"', "f32[8]{0}"),
    "fusion": _fused(
        "  %e = f32[9]{0} exponential(%q0)\n  ROOT %m = f32[9]{0} multiply(%e, %q1)",
        "f32[9]{0}",
        "f32[9]{0}",
        "f32[9]{0}",
    ),
    "fusion_constant": _fused(
        "  %c = f32[4]{0} constant({1,2,3,4})\n  %d = f32[] constant(2)\n"
        "  %b = f32[4]{0} broadcast(%d), dimensions={}\n  %s = f32[4]{0} add(%c, %b)\n"
        "  ROOT %m = f32[4]{0} multiply(%s, %q0)",
        "f32[4]{0}",
        "f32[4]{0}",
    ),
    "fusion_slices": _fused(
        "  %s = f32[2]{0} slice(%q0), slice={[1:3]}\n  %t = f32[2]{0} slice(%q0), slice={[4:6]}\n"
        "  %d = f32[2]{0} dynamic-slice(%q0, %q1), dynamic_slice_sizes={2}\n"
        "  %a = f32[2]{0} add(%s, %t)\n  ROOT %m = f32[2]{0} multiply(%a, %d)",
        "f32[2]{0}",
        "f32[90]{0}",
        "s32[]",
    ),
    "fusion_update": _fused(
        "  %n = f32[2]{0} negate(%q1)\n  ROOT %u = f32[90]{0} dynamic-update-slice(%q0, %n, %q2)",
        "f32[90]{0}",
        "f32[90]{0}",
        "f32[2]{0}",
        "s32[]",
    ),
    "fusion_two_reads": _fused(
        "  %b = f32[9,2]{1,0} broadcast(%q0), dimensions={0}\n  %r = f32[9,1]{1,0} reshape(%q0)\n"
        "  %n = f32[9]{0} negate(%q0)\n"
        "  ROOT %t = (f32[9,2]{1,0}, f32[9,1]{1,0}, f32[9]{0}) tuple(%b, %r, %n)",
        "(f32[9,2]{1,0}, f32[9,1]{1,0}, f32[9]{0})",
        "f32[9]{0}",
    ),
    "fusion_updates": _fused(
        "  %u = f32[90]{0} dynamic-update-slice(%q0, %q1, %q2)\n  %n = f32[2]{0} negate(%q1)\n"
        "  ROOT %t = (f32[90]{0}, f32[2]{0}) tuple(%u, %n)",
        "(f32[90]{0}, f32[2]{0})",
        "f32[90]{0}",
        "f32[2]{0}",
        "s32[]",
    ),
    "fusion_reduce": _fused(
        "  %z = f32[] constant(0)\n  ROOT %r = f32[3]{0} reduce(%q0, %z), dimensions={1}, to_apply=%add",
        "f32[3]{0}",
        "f32[3,4]{1,0}",
        before=_ADD,
    ),
}


def _async(*lines: str, before: str = "") -> str:
    body = "\n".join(f"  {line}" for line in ("%a = f32[1024]{0} parameter(0)", *lines))
    return f"HloModule m\n\n{before}ENTRY %main {{\n{body}\n}}\n"


ASYNC = {
    "async_copy": _async(
        "%s = (f32[1024]{0:S(1)}, f32[1024]{0}, u32[]) copy-start(%a)",
        "ROOT %d = f32[1024]{0:S(1)} copy-done(%s)",
    ),
    "async_all_reduce": _async(
        "%s = f32[1024]{0} all-reduce-start(%a), replica_groups={}, to_apply=%add",
        "ROOT %d = f32[1024]{0} all-reduce-done(%s)",
        before=_ADD,
    ),
    "async_all_gather": _async(
        "%s = (f32[1024]{0}, f32[4096]{0}) all-gather-start(%a), replica_groups={{0,1,2,3}}, dimensions={0}",
        "ROOT %d = f32[4096]{0} all-gather-done(%s)",
    ),
    "async_short_form": _async(
        "%s = ((f32[1024]{0}), f32[1024]{0}) all-to-all-start(%a), replica_groups={{0,1}}, dimensions={0}",
        "ROOT %d = f32[1024]{0} all-to-all-done(%s)",
    ),
    "async_update": _async(
        "%s = ((f32[1024]{0}), f32[1024]{0}, u32[]) all-to-all-start(%a), replica_groups={{0,1}},"
        " dimensions={0}",
        "%u = ((f32[1024]{0}), f32[1024]{0}, u32[]) all-to-all-update(%s)",
        "ROOT %d = f32[1024]{0} all-to-all-done(%u)",
    ),
    "async_computation": _async(
        "%s = ((f32[1024]{0}), f32[1024]{0}) async-start(%a), calls=%wrapped",
        "ROOT %d = f32[1024]{0} async-done(%s)",
        before="%wrapped {\n  %p = f32[1024]{0} parameter(0)\n"
        "  ROOT %t = f32[1024]{0} all-to-all(%p), replica_groups={{0,1}}, dimensions={0}\n}\n\n",
    ),
    "async_send": _async(
        "%t = token[] after-all()",
        "%s = (f32[1024]{0}, u32[], token[]) send(%a, %t), channel_id=1",
        "ROOT %d = token[] send-done(%s), channel_id=1",
    ),
    "async_receive": _async(
        "%t = token[] after-all()",
        "%s = (f32[1024]{0}, u32[], token[]) recv(%t), channel_id=1",
        "%d = (f32[1024]{0}, token[]) recv-done(%s), channel_id=1",
        "ROOT %g = f32[1024]{0} get-tuple-element(%d), index=0",
    ),
}
"""Asynchronous operations, in each of their forms."""
MODULES |= ASYNC
