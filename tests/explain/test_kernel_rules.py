"""Each rule about who runs a kernel, on a module of a line or two."""

from __future__ import annotations

import pytest

from hlofuse.compilation.config import release_for
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import release_of
from hlofuse.reports.kernels import Choice, kernel_selection
from hlofuse.rules.catalogue import catalogue

_APPLIED = """\
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%less (a: f32[], b: f32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %is = pred[] compare(%a, %b), direction=LT
}
"""
_CALL = 'custom-call(%p), custom_call_target="{}"'
_BODY = "fusion(%p), kind=kCustom, calls=%body"
_SCATTER = (
    "scatter(%p, %i, %p), update_window_dims={1}, inserted_window_dims={0},"
    " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%add"
)
_YNN = f'{_BODY}, backend_config={{"fusion_config":{{"kind":"__ynn_fusion"}}}}'
_COPY = ("f32[64,64]{1,0}", "copy(%q)")


def config(kind: str) -> str:
    return f'{_BODY}, backend_config={{"fusion_backend_config":{{"kind":"{kind}"}}}}'


# Code, shape of the result, the instruction (of %p: f32[64,64]), and the root of %body where there is one.
GPU = [
    ("EM001", "f32[64,64]{1,0}", 'custom-call(%p, %p), custom_call_target="__cublas$lt$matmul"', None),
    ("EM002", "f32[64,64]{1,0}", 'custom-call(%p, %p), custom_call_target="__cublas$gemm"', None),
    ("EM003", "f32[64,64]{1,0}", _CALL.format("__cudnn$convForward"), None),
    ("EM004", "f32[64,64]{1,0}", _CALL.format("xla.gpu.ext.cub_sort_keys"), None),
    ("EM005", "f32[64,64]{1,0}", _CALL.format("cusolver_potrf_ffi"), None),
    ("EM006", "f32[64,8]{1,0}", _CALL.format("__gpu$TopK"), None),
    ("EM007", "f32[64,64]{1,0}", _CALL.format("__gpu$xla.gpu.triton"), None),
    ("EM009", "f32[64,64]{1,0}", _CALL.format("my_function"), None),
    ("EM010", "c64[64,33]{1,0}", "fft(%p), fft_type=RFFT, fft_length={64}", None),
    ("EM011", "f32[64,64]{1,0}", "all-reduce(%p), replica_groups={}, to_apply=%add", None),
    ("EM012", "f32[64,64]{1,0}", "copy(%p)", None),
    ("EM013", "f32[64,64]{1,0}", "sort(%p), dimensions={0}, to_apply=%less", None),
    ("EM014", "u64[1]{0}", "rng-get-and-update-state(), delta=1", None),
    ("EM015", "(f32[64,64]{1,0}, token[])", "infeed(%o)", None),
    ("EM016", "f32[64,64]{1,0}", "cholesky(%p)", None),
    ("EM020", "f32[8,64]{1,0}", "slice(%p), slice={[8:16], [0:64]}", None),
    ("EM022", "f32[64,64]{1,0}", "fusion(%p), kind=kLoop, calls=%body", _COPY),
    ("EM030", "f32[64,64]{1,0}", config("__custom_fusion"), _COPY),
    ("EM031", "f32[64,64]{1,0}", config("__triton_gemm"), _COPY),
    ("EM032", "f32[64,64]{1,0}", config("__triton"), _COPY),
    ("EM033", "f32[64,64]{1,0}", config("__cudnn$fusion"), _COPY),
    ("EM034", "f32[64,64]{1,0}", config("__triton_collective"), _COPY),
    ("EM040", "f32[64]{0}", "reduce(%p, %c), dimensions={1}, to_apply=%add", None),
    ("EM041", "f32[64,64]{1,0}", "transpose(%p), dimensions={1,0}", None),
    ("EM042", "f32[64,64]{1,0}", _SCATTER, None),
    ("EM043", "f32[64,64]{1,0}", "fusion(%p), kind=kInput, calls=%body",
     ("f32[64,64]{1,0}", "sort(%q), dimensions={0}, to_apply=%less")),
    ("EM044", "f32[128,64]{1,0}", "concatenate(%p, %p), dimensions={0}", None),
    ("EM045", "f32[64,64]{1,0}", "dynamic-update-slice(%p, %u, %z, %z)", None),
    ("EM049", "f32[64,64]{1,0}", "negate(%p)", None),
    ("EM049", "f32[32,64]{1,0}", "slice(%p), slice={[0:64:2], [0:64]}", None),
    ("EM049", "f32[64,32]{1,0}", "slice(%p), slice={[0:64], [0:32]}", None),
    ("EM049", "f32[320,64]{1,0}", "concatenate(%p, %p, %p, %p, %p), dimensions={0}", None),
]  # fmt: skip
LEGACY = [
    ("EM046", "(f32[8,64]{1,0}, f32[8,64]{1,0})", "fusion(%p), kind=kInput, calls=%body", None),
    ("EM049", "f32[8,64]{1,0}", "slice(%p), slice={[8:16], [0:64]}", None),
]
CPU = [
    ("EC001", "f32[64,64]{1,0}", _YNN, _COPY),
    ("EC002", "f32[64,64]{1,0}", _CALL.format("__onednn$matmul"), None),
    ("EC003", "f32[64,64]{1,0}", "dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}", None),
    ("EC004", "f32[64]{0}", "dot(%p, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}", None),
    ("EC005", "f32[3,3]{1,0}", "dot(%t, %t), lhs_contracting_dims={1}, rhs_contracting_dims={0}", None),
    ("EC006", "f32[1,8,8,4]{3,2,1,0}",
     "convolution(%n, %k), window={size=1x1}, dim_labels=b01f_01io->b01f", None),
    ("EC007", "f32[64,64]{1,0}", _CALL.format("lapack_spotrf_ffi"), None),
    ("EC008", "c64[64,33]{1,0}", "fft(%p), fft_type=RFFT, fft_length={64}", None),
    ("EC020", "f32[64]{0}", "fusion(%p), kind=kOutput, calls=%body", None),
    ("EC021", "f32[64,64]{1,0}", "fusion(%p), kind=kLoop, calls=%body", ("f32[64,64]{1,0}", "negate(%q)")),
    ("EC023", "f32[128,64]{1,0}", "fusion(%p), kind=kLoop, calls=%body",
     ("f32[128,64]{1,0}", "concatenate(%q, %q), dimensions={0}")),
    ("EC025", "f32[32,64]{1,0}", "fusion(%p), kind=kLoop, calls=%body",
     ("f32[32,64]{1,0}", "slice(%q), slice={[0:32], [0:64]}")),
    ("EC030", "f32[64,64]{1,0}", "sort(%p), dimensions={0}, to_apply=%less", None),
    ("EC031", "f32[64,64]{1,0}", "copy(%p)", None),
    ("EC032", "f32[128,64]{1,0}", "concatenate(%p, %p), dimensions={0}", None),
    ("EC033", "f32[64,64]{1,0}", "all-reduce(%p), replica_groups={}, to_apply=%add", None),
    ("EC034", "u64[1]{0}", "rng-get-and-update-state(), delta=1", None),
    ("EC035", "f32[64,64]{1,0}", "cholesky(%p)", None),
]  # fmt: skip
_TWO_SLICES = """\
  %s = f32[8,64]{1,0} slice(%q), slice={[0:8], [0:64]}
  %t = f32[8,64]{1,0} slice(%q), slice={[8:16], [0:64]}
  ROOT %r = (f32[8,64]{1,0}, f32[8,64]{1,0}) tuple(%s, %t)
"""
_DOT_AND_SUM = """\
  %one = f32[] constant(1)
  %ones = f32[64]{0} broadcast(%one), dimensions={}
  %d = f32[64]{0} dot(%q, %ones), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %r = f32[64]{0} add(%d, %ones)
"""
_SEVERAL = {"EM046": _TWO_SLICES, "EC020": _DOT_AND_SUM}
ELSEWHERE = {
    "EM021": "test_kernels_fidelity.py, scan_update_buffer",
    "EM060": "test_kernels.py",
    "EM061": "test_kernels.py",
    "EC022": "test_kernels_fidelity.py, scatter_add",
    "EC024": "test_kernels_fidelity.py, dynamic_update",
    "EC060": "test_products_with_vectors_on_cpu",
}


def module(code: str, shape: str, instruction: str, root: tuple[str, str] | None) -> str:
    body = _SEVERAL.get(code, "")
    if root is not None:
        body = f"  ROOT %r = {root[0]} {root[1]}\n"
    if body:
        body = f"%body (q: f32[64,64]) -> {shape} {{\n  %q = f32[64,64]{{1,0}} parameter(0)\n{body}}}\n"
    operands = {
        "%o": "token[] after-all()",
        "%c": "f32[] constant(0)",
        "%z": "s32[] constant(0)",
        "%u": "f32[8,64]{1,0} parameter(1)",
        "%i": "s32[64,1]{1,0} parameter(1)",
        "%v": "f32[64]{0} parameter(1)",
        "%t": "f32[3,3]{1,0} parameter(1)",
        "%n": "f32[1,8,8,4]{3,2,1,0} parameter(1)",
        "%k": "f32[1,1,4,4]{3,2,1,0} parameter(2)",
    }
    used = "".join(
        f"  {name} = {text}\n"
        for name, text in operands.items()
        if f"{name}," in instruction + "," or f"{name})" in instruction
    )
    return (
        f"HloModule m\n\n{_APPLIED}\n{body}\nENTRY %main () -> {shape} {{\n"
        f"  %p = f32[64,64]{{1,0}} parameter(0)\n{used}  ROOT %kernel = {shape} {instruction}\n}}\n"
    )


def choice(target: str, device: str | None, text: str, xla: str | None = None) -> Choice:
    parsed, release = parse_module(text), release_of(release_for(target, xla))
    found = kernel_selection(parsed, target, release, device=load_device(device) if device else None)
    return next(k for k in found.kernels if k.name == "kernel")


@pytest.mark.parametrize(("code", "shape", "instruction", "root"), GPU)
def test_on_gpu(code: str, shape: str, instruction: str, root: tuple[str, str] | None) -> None:
    found = choice("gpu", "h100_sxm", module(code, shape, instruction, root))
    assert (found.code, found.run_by) == (code, catalogue()[code].runs)
    derived = code.startswith("EM04") and code != "EM043"
    assert (found.blocks is not None) == derived


@pytest.mark.parametrize(("code", "shape", "instruction", "root"), LEGACY)
def test_until_0_4_35(code: str, shape: str, instruction: str, root: tuple[str, str] | None) -> None:
    assert choice("gpu-legacy", "v100", module(code, shape, instruction, root)).code == code


@pytest.mark.parametrize(("code", "shape", "instruction", "root"), CPU)
def test_on_cpu(code: str, shape: str, instruction: str, root: tuple[str, str] | None) -> None:
    assert choice("cpu", None, module(code, shape, instruction, root)).code == code


def test_products_with_vectors_on_cpu() -> None:
    metadata = 'metadata={op_name="jit(f)/dot_general"}'
    text = (
        f"HloModule m\n\n{_APPLIED}\n%body (q: f32[64,64]) -> f32[64] {{\n"
        "  %q = f32[64,64]{1,0} parameter(0)\n  %zero = f32[] constant(0)\n"
        f"  %m = f32[64,64]{{1,0}} multiply(%q, %q), {metadata}\n"
        f"  ROOT %r = f32[64]{{0}} reduce(%m, %zero), dimensions={{1}}, to_apply=%add, {metadata}\n}}\n\n"
        "ENTRY %main () -> f32[64] {\n  %p = f32[64,64]{1,0} parameter(0)\n"
        "  ROOT %kernel = f32[64]{0} fusion(%p), kind=kLoop, calls=%body\n}\n"
    )
    found = choice("cpu", None, text)
    assert [n.rule.code for n in found.notes] == ["EC060"]


@pytest.mark.parametrize(
    ("instruction", "shape", "because"),
    [
        ("concatenate(%p, %p, %p, %p, %p), dimensions={0}", "f32[320,64]{1,0}", "it concatenates 5 operands"),
        ("reduce(%t, %c), dimensions={1}, to_apply=%add", "f32[3]{0}", "the reduction is too short"),
        ("transpose(%t), dimensions={1,0}", "f32[3,3]{1,0}", "the transpose is not tiled"),
    ],
)
def test_why_an_emitter_does_not_take_it(instruction: str, shape: str, because: str) -> None:
    found = choice("gpu", "h100_sxm", module("EM049", shape, instruction, None))
    assert (found.code, str(found.figures["because"]).startswith(because)) == ("EM049", True)


def test_every_rule_is_asked() -> None:
    requested = {code for code, *_ in (*GPU, *LEGACY, *CPU)} | set(ELSEWHERE)
    assert requested == {code for code, rule in catalogue().items() if rule.runs}


@pytest.mark.parametrize(("xla", "code"), [("0.8.3", "EC025"), ("0.9.2", "EC021")])
def test_the_tiled_emitter_came_with_0_9(xla: str, code: str) -> None:
    (tiled,) = (own for own in CPU if own[0] == "EC021")
    assert choice("cpu", None, module(*tiled), xla).code == code
    (loop,) = (own for own in CPU if own[0] == "EC025")
    assert ("not tiled because" in choice("cpu", None, module(*loop), xla).figures) == (xla == "0.9.2")
