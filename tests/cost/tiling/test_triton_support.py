"""What may join a Triton fusion, and XLA's words where not."""

from __future__ import annotations

import pytest

from hlofuse.cost.gpu.backend_config import FusionConfig, fusion_config, is_generic_triton_fusion
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.tiling.constraints import backend_config_text
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir.fusing import append_producer
from hlofuse.ir.graph import Instruction
from hlofuse.ir.record import replace
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.releases import release_of

REGION = "r {{ a = {0} parameter(0)\n b = {0} parameter(1)\n ROOT c = {0} add(a, b)\n}}\n"


def operation(line: str, *operands: str) -> Instruction:
    """The root of a module with parameters p0, p1 … of the given shapes."""
    parameters = "\n".join(f"  p{i} = {t} parameter({i})" for i, t in enumerate(operands))
    region = REGION.format(line.partition("[")[0] + "[]" if "to_apply" in line else "f32[]")
    return parse_module(f"HloModule m\n{region}ENTRY e {{\n{parameters}\n  ROOT x = {line}\n}}").entry.root


def conversion(source: str, result: str, text: str) -> str:
    return f"Unsupported conversion in Triton: {source} to {result} with message:\n{text}"


CASES: list[tuple[str, tuple[str, ...], str | None]] = [
    ("f32[8] add(p0, p1)", ("f32[8]", "f32[8]"), None),
    ("f32[8] logistic(p0)", ("f32[8]",), "Unsupported elementwise operation."),
    ("f32[8] sign(p0)", ("f32[8]",), "Unsupported elementwise operation."),
    ("s32[8] divide(p0, p1)", ("s32[8]", "s32[8]"), None),
    ("s32[8] shift-left(p0, p1)", ("s32[8]", "s32[8]"), "Unsupported elementwise operation."),
    ("pred[8] compare(p0, p1), direction=LT", ("f32[8]", "f32[8]"), None),
    ("pred[8] xor(p0, p1)", ("pred[8]", "pred[8]"), None),
    ("f8e5m2[8] add(p0, p1)", ("f8e5m2[8]", "f8e5m2[8]"), "Unsupported elementwise operation."),
    ("f8e5m2[8] select(p0, p1, p2)", ("pred[8]", "f8e5m2[8]", "f8e5m2[8]"), None),
    ("c64[8] add(p0, p1)", ("c64[8]", "c64[8]"), "Unsupported output data type: Unsupported data type: c64"),
    ("f32[8] real(p0)", ("c64[8]",), "Unsupported input data type: Not allowed"),
    (
        "f32[4] dynamic-slice(p0, p1), dynamic_slice_sizes={4}",
        ("f32[8]", "s32[]"),
        "Unsupported opcode dynamic-slice",
    ),
    ("f32[8] reverse(p0), dimensions={0}", ("f32[8]",), "Unsupported instruction opcode reverse"),
    ("f32[16]{0} reshape(p0)", ("f32[2,8]",), None),
    ("s4[16]{0} reshape(p0)", ("s4[2,8]",), "S4 is not supported."),
    ("u8[8] convert(p0)", ("pred[8]",), conversion("pred", "u8", "Unsupported PRED to U8 conversion.")),
    ("s32[8] convert(p0)", ("s4[8]",), conversion("s4", "s32", "Unsupported 4-bit integer conversion.")),
    ("f32[8] convert(p0)", ("s4[8]",), None),
    ("s4[8] convert(p0)", ("s8[8]",), conversion("s8", "s4", "Unsupported 4-bit integer output type.")),
    ("s8[8] convert(p0)", ("f8e5m2[8]",), conversion("f8e5m2", "s8", "Unsupported F8 conversion.")),
    ("f32[8] convert(p0)", ("c64[8]",), "Unsupported input type for conversion: c64"),
    ("f32[9] pad(p0, p1), padding=1_0", ("f32[8]", "f32[]"), "Only high padding is supported."),
    ("f32[8] pad(p0, p1), padding=0_0", ("f32[8]", "f32[]"), "No-op pad ops are not allowed."),
    ("f32[9] pad(p0, p1), padding=0_1", ("f32[8]", "f32[]"), None),
    ("f32[2] constant({1, 2})", (), "Only scalar constants are supported in Triton."),
    ("f32[1] constant({1})", (), None),
    ("f32[5,257] concatenate(p0, p1, p2), dimensions={1}", ("f32[5,128]", "f32[5,64]", "f32[5,65]"), None),
    (
        "f32[288] concatenate(p0, p1, p2), dimensions={0}",
        ("f32[64]", "f32[96]", "f32[128]"),
        "Concatenate operand is not aligned for tiling.",
    ),
    ("f32[8] reduce(p0, p1), dimensions={1}, to_apply=r", ("f32[8,4]", "f32[]"), None),
    (
        "f32[] reduce(p0, p1), dimensions={0,1}, to_apply=r",
        ("f32[8,4]", "f32[]"),
        "Multi-dimension reductions are only supported when experimental tiling propagation is enabled.",
    ),
    (
        "c64[8] reduce(p0, p1), dimensions={1}, to_apply=r",
        ("c64[8,4]", "c64[]"),
        "Unsupported output data type: Unsupported data type: c64",
    ),
    ("s8[8] bitcast(p0)", ("s32[2]",), "only bitcasts with the same number of elements are supported"),
    (
        "s8[8] bitcast(p0)",
        ("pred[8]",),
        "bitcasts with different element types are not supported if PRED is involved",
    ),
    (
        "f32[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ("f32[4,3]", "f32[3,5]"),
        None,
    ),
    (
        "f32[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ("f64[4,3]", "f64[3,5]"),
        "Dot operation only supports F64 result type for F64 input type.",
    ),
    ("s4[8] iota(), iota_dimension=0", (), "F8E4M3FN, F8E5M2 and S4 are not supported for iota."),
    ("f8e5m2[8] iota(), iota_dimension=0", (), "F8E4M3FN, F8E5M2 and S4 are not supported for iota."),
    ("s8[8] iota(), iota_dimension=0", (), None),
    ("s4[128] concatenate(p0, p1), dimensions={0}", ("s4[64]", "s4[64]"), "S4 is not supported."),
    ("f32[15] pad(p0, p1), padding=0_0_1", ("f32[8]", "f32[]"), "Only high padding is supported."),
    ("pred[8] bitcast(p0)", ("pred[2,4]",), None),
    ("u32[8] bitcast(p0)", ("f32[8]",), None),
    ("u8[8] convert(p0)", ("s8[8]",), None),
    ("s8[8] convert(p0)", ("pred[8]",), None),
    ("u8[8] convert(p0)", ("s4[8]",), None),
    ("f32[8] convert(p0)", ("f8e5m2[8]",), None),
    ("f8e4m3fn[8] convert(p0)", ("f8e5m2[8]",), None),
    ("f64[8] convert(p0)", ("f8e5m2[8]",), conversion("f8e5m2", "f64", "Unsupported F8 conversion.")),
    ("c64[8] convert(p0)", ("f32[8]",), "Unsupported output type for conversion: c64"),
    ("s4[8] negate(p0)", ("s4[8]",), "Unsupported elementwise operation."),
    ("f8e5m2[8] abs(p0)", ("f8e5m2[8]",), None),
    ("f16[8] divide(p0, p1)", ("f16[8]", "f16[8]"), None),
    (
        "f32[8,4] reduce(p0, p1), dimensions={}, to_apply=r",
        ("f32[8,4]", "f32[]"),
        "Reduction must have at least one dimension.",
    ),
    (
        "f8e5m2[8] reduce(p0, p1), dimensions={1}, to_apply=r",
        ("f8e5m2[8,4]", "f8e5m2[]"),
        "F8E4M3FN and F8E5M2 are not supported for reductions.",
    ),
    (
        "f32[5] dot(p0, p1), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}",
        ("f32[2,3]", "f32[2,3,5]"),
        "Exactly one contracting dimension is supported, got 0,1",
    ),
]


@pytest.mark.parametrize(("line", "operands", "reason"), CASES)
def test_operations(line: str, operands: tuple[str, ...], reason: str | None) -> None:
    assert TritonSupport(load_device("h100_sxm"), RELEASE).refusal(operation(line, *operands)) == reason


F8 = "F8E4M3FN is not supported before {}."
TYPES = "bitcasts with different element types are not supported if PRED is involved"
ONE_ROW = "Reduction is not a row-reduction of a single operand."


@pytest.mark.parametrize(
    ("release", "device", "line", "operands", "reason"),
    [
        ("0.11.1", "a100_sxm_40", "f32[8] convert(p0)", "f8e4m3fn[8]", F8.format("Ada")),
        ("0.11.1", "a100_sxm_40", "f32[8] convert(p0)", "f8e5m2[8]", None),
        ("0.11.1", "a100_sxm_40", "f8e4m3fn[8] copy(p0)", "f8e4m3fn[8]", None),
        ("0.11.1", "ada", "f32[8] convert(p0)", "f8e4m3fn[8]", None),
        ("0.11.1", "mi200", "f32[8] convert(p0)", "f8e4m3fn[8]", None),
        ("0.9.2", "ada", "f32[8] convert(p0)", "f8e4m3fn[8]", F8.format("Hopper")),
        ("0.9.2", "h100_sxm", "f32[8] convert(p0)", "f8e4m3fn[8]", None),
        ("0.9.2", "h100_sxm", "s16[8] convert(p0)", "s4[8]", "Unsupported S4 conversion."),
        ("0.9.2", "h100_sxm", "s4[8] convert(p0)", "f32[8]", "Unsupported S4 output type."),
        ("0.9.2", "h100_sxm", "u8[8] convert(p0)", "pred[8]", "Unsupported output type for conversion: u8"),
        (
            "0.9.2",
            "h100_sxm",
            "u32[8] negate(p0)",
            "u32[8]",
            "Unsupported output data type: Unsupported data type: u32",
        ),
        ("0.8.3", "h100_sxm", "u32[8] negate(p0)", "u32[8]", "Unsupported output data type."),
        (
            "0.8.3",
            "h100_sxm",
            "pred[8] compare(p0, p0), direction=LT",
            "u32[8]",
            "Unsupported input data type.",
        ),
        ("0.8.3", "h100_sxm", "s32[8] convert(p0)", "u32[8]", "Unsupported conversion in Triton: u32 to s32"),
        ("0.8.3", "h100_sxm", "s16[8] convert(p0)", "s4[8]", "Unsupported conversion in Triton: s4 to s16"),
        ("0.8.3", "h100_sxm", "f16[8] convert(p0)", "f32[8]", None),
        ("0.8.3", "h100_sxm", "s8[8] bitcast(p0)", "pred[8]", None),
        ("0.9.2", "h100_sxm", "s8[8] bitcast(p0)", "pred[8]", TYPES),
        ("0.6.2", "h100_sxm", "s8[8] bitcast(p0)", "s32[2]", None),
        ("0.7.2", "h100_sxm", "s32[8] remainder(p0, p0)", "s32[8]", "Unsupported elementwise operation."),
        ("0.8.3", "h100_sxm", "s32[8] remainder(p0, p0)", "s32[8]", None),
        ("0.9.2", "h100_sxm", "f16[8] divide(p0, p0)", "f16[8]", "Unsupported elementwise operation."),
        ("0.9.2", "h100_sxm", "f32[8] divide(p0, p0)", "f32[8]", None),
        (
            "0.9.2",
            "h100_sxm",
            "f32[8] round-nearest-even(p0)",
            "f32[8]",
            "Unsupported elementwise operation.",
        ),
        ("0.9.2", "mi200", "f16[8] divide(p0, p0)", "f16[8]", None),
        ("0.11.1", "mi350", "f8e5m2fnuz[8] copy(p0)", "f8e5m2fnuz[8]", None),
        (
            "0.11.1",
            "mi350",
            "f8e5m2fnuz[8] negate(p0)",
            "f8e5m2fnuz[8]",
            "Unsupported elementwise operation.",
        ),
        (
            "0.10.2",
            "h100_sxm",
            "f32[8] reduce(p0, p1), dimensions={1,2}, to_apply=r",
            "f32[8,4,2] f32[]",
            ONE_ROW,
        ),
        ("0.10.2", "h100_sxm", "f32[8] reduce(p0, p1), dimensions={1}, to_apply=r", "f32[8,4] f32[]", None),
        ("0.10.2", "h100_sxm", "f32[6] concatenate(p0, p0), dimensions={0}", "f32[3]", None),
        (
            "0.9.2",
            "h100_sxm",
            "f32[6] concatenate(p0, p0), dimensions={0}",
            "f32[3]",
            "Only concatenates in nested GEMM fusions are supported.",
        ),
        (
            "0.12.0.1",
            "h100_sxm",
            "f32[9] pad(p0, p1), padding=0_1",
            "f32[8] f32[]",
            "Pads are only supported within GEMM fusions.",
        ),
        ("0.4.35", "h100_sxm", "f32[8] copy(p0)", "f32[8]", "Unsupported opcode."),
        ("0.5.0", "h100_sxm", "f32[8] copy(p0)", "f32[8]", None),
        ("0.5.0", "h100_sxm", "f32[9] pad(p0, p1), padding=0_1", "f32[8] f32[]", "Unsupported opcode."),
        ("0.5.0", "h100_sxm", "u32[8] bitcast-convert(p0)", "f32[8]", "Unsupported opcode."),
        (
            "0.5.0",
            "h100_sxm",
            "f8e4m3fn[8] convert(p0)",
            "f8e5m2[8]",
            "Unsupported conversion in Triton: f8e5m2 to f8e4m3fn",
        ),
    ],
)
def test_operations_by_release_and_device(
    release: str, device: str, line: str, operands: str, reason: str | None
) -> None:
    ada = replace(load_device("a6000"), compute_capability=(8, 9))
    description = ada if device == "ada" else load_device(device)
    found = TritonSupport(description, release_of(release)).refusal(operation(line, *operands.split()))
    if found and " with message:" in found:
        found = found.partition("message:\n")[2]
    assert found == reason


def test_backend_config_as_xla_writes_it() -> None:
    text = (
        '{"operation_queue_id":"0","fusion_backend_config":{"kind":"__triton","block_level_fusion_config":'
        '{"num_warps":"4","output_tiles":[{"sizes":["1","2","128"]}],"num_ctas":1,"num_stages":1,'
        '"is_tma_allowed":false,"is_warp_specialization_allowed":false,"waves_per_eu":0,'
        '"num_tiles_per_pid":0}},"force_earliest_schedule":false,"reification_cost":[],'
        '"device_type":"DEVICE_TYPE_INVALID"}'
    )
    parameters = FusionConfig("__triton", ((1, 2, 128),), 4, 1)
    assert backend_config_text(parameters, release_of("0.11.1")) == text
    assert backend_config_text(parameters, release_of("0.5.3")) == (
        '{"operation_queue_id":"0","wait_on_operation_queues":[],"fusion_backend_config":{"kind":"__triton",'
        '"block_level_fusion_config":{"output_tiles":[{"sizes":["1","2","128"]}],"num_warps":"4"}},'
        '"force_earliest_schedule":false}'
    )
    assert backend_config_text(parameters, release_of("0.12.0.1")) == (
        '{"device_type":"DEVICE_TYPE_INVALID","force_earliest_schedule":false,"fusion_backend_config":'
        '{"block_level_fusion_config":{"group_size":0,"is_tma_allowed":false,'
        '"is_warp_specialization_allowed":false,"num_ctas":1,"num_stages":1,"num_tiles_per_pid":0,'
        '"num_warps":"4","output_tiles":[{"sizes":["1","2","128"]}],"waves_per_eu":0},"kind":"__triton"},'
        '"operation_queue_id":"0","reification_cost":[]}'
    )
    module = parse_module(
        "HloModule m\nc { ROOT p = f32[8] parameter(0)\n}\nENTRY e { p = f32[8] parameter(0)\n"
        f"  ROOT f = f32[8] fusion(p), kind=kCustom, calls=c, backend_config={text}\n}}"
    )
    assert is_generic_triton_fusion(module.entry.root)
    assert fusion_config(module.entry.root) == parameters


@pytest.mark.parametrize(
    ("device", "element_type", "reason"),
    [
        ("h100_sxm", "bf16", None),
        ("mi200", "bf16", None),
        ("pvc", "bf16", "Unsupported GPU architecture for BF16."),
        ("pvc", "f8e5m2", "Unsupported GPU architecture for F8E4M3FN."),
        ("pvc", "f32", None),
        ("h100_sxm", "f8e4m3fnuz", "F8E4M3FNUZ/F8E5M2FNUZ not supported on Cuda."),
        ("mi350", "f8e4m3fnuz", None),
        ("pvc", "f8e4m3fnuz", "F8E4M3FNUZ/F8E5M2FNUZ is only supported on ROCm."),
    ],
)
def test_types_by_vendor(device: str, element_type: str, reason: str | None) -> None:
    assert TritonSupport(load_device(device), RELEASE).data_type(element_type) == reason


def test_what_a_parameter_has_become_is_asked_about_anew() -> None:
    module = parse_module("""HloModule m
f { p = f32[4] parameter(0)
 ROOT n = f32[4] negate(p) }
ENTRY e { x = f32[8] parameter(0)
 i = s32[] parameter(1)
 slice = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}
 ROOT fusion = f32[4] fusion(slice), kind=kLoop, calls=f }""")
    fusion, producer = module.entry.root, module.entry.find("slice")
    assert producer is not None
    support = TritonSupport(load_device("h100_sxm"), RELEASE)
    assert support.refusal(fusion) is None
    append_producer(fusion, producer)
    assert support.refusal(fusion) == "Unsupported opcode dynamic-slice"


def dot(left: str, right: str, result: str, algorithm: str = "", device: str = "h100_sxm") -> str | None:
    """XLA's reason against a product of these types; None if it is supported."""
    dimensions = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    line = f"{result}[4,5] dot(p0, p1), {dimensions}" + (f", algorithm={algorithm}" if algorithm else "")
    product = operation(line, f"{left}[4,3]", f"{right}[3,5]")
    return TritonSupport(load_device(device), RELEASE).refusal(product)


SAME = "Dot operation only supports same types for lhs and rhs."
INTEGERS = "Dot operation does not support these integer types."
HOPPER = "Dot operation for F8E4M3FN is not supported before Hopper."


@pytest.mark.parametrize(
    ("left", "right", "result", "device", "reason"),
    [
        ("bf16", "bf16", "f32", "h100_sxm", None),
        ("f64", "f64", "f64", "h100_sxm", None),
        ("f16", "bf16", "f32", "h100_sxm", SAME),
        ("f8e5m2", "f8e4m3fn", "f32", "h100_sxm", None),
        ("f8e4m3fn", "f8e5m2", "f32", "a100_sxm_40", HOPPER),
        ("f8e5m2", "f8e5m2", "f32", "a100_sxm_40", None),
        ("f8e5m2", "f8e5m2", "f8e4m3fn", "a100_sxm_40", HOPPER),
        ("s8", "s8", "s32", "h100_sxm", None),
        ("s8", "s8", "s8", "h100_sxm", INTEGERS),
        ("s16", "s16", "s32", "h100_sxm", INTEGERS),
        ("s8", "s8", "s4", "h100_sxm", "4-bit integer is not supported."),
        ("f8e5m2fnuz", "f8e4m3fnuz", "f32", "mi350", None),
    ],
)
def test_types_of_products(left: str, right: str, result: str, device: str, reason: str | None) -> None:
    assert dot(left, right, result, device=device) == reason


@pytest.mark.parametrize(
    ("algorithm", "types", "device", "reason"),
    [
        ("dot_bf16_bf16_f32", "bf16 bf16 f32", "h100_sxm", None),
        ("dot_bf16_bf16_f32_x3", "f32 f32 f32", "h100_sxm", None),
        ("dot_f64_f64_f64", "f64 f64 f64", "h100_sxm", None),
        ("dot_f64_f64_f64", "f32 f32 f64", "h100_sxm", None),
        (
            "dot_f64_f64_f64",
            "bf16 bf16 f64",
            "h100_sxm",
            "Unsupported BF16 on GPUs on ROCm and before Blackwell",
        ),
        ("dot_f64_f64_f64", "bf16 bf16 f64", "b200", None),
        ("dot_f32_f32_f32", "bf16 bf16 f32", "h100_sxm", None),
        ("dot_f64_f64_f64", "f64 f64 f64", "mi350", "Unsupported dot algorithm: ALG_DOT_F64_F64_F64"),
        ("dot_bf16_bf16_bf16", "bf16 bf16 bf16", "mi350", None),
        (
            "dot_bf16_bf16_bf16",
            "bf16 bf16 bf16",
            "h100_sxm",
            "Unsupported dot algorithm: ALG_DOT_BF16_BF16_BF16",
        ),
        (
            "dot_any_f8_any_f8_f32",
            "f8e5m2 f8e5m2 f32",
            "h100_sxm",
            "Unsupported dot algorithm: ALG_DOT_ANY_F8_ANY_F8_F32",
        ),
        ("dot_f64_f64_f64", "f8e5m2 f8e5m2 f64", "b200", "Unsupported lhs conversion"),
        ("dot_f64_f64_f64", "f64 f64 f8e5m2", "b200", "Unsupported result conversion"),
    ],
)
def test_algorithms_of_products(algorithm: str, types: str, device: str, reason: str | None) -> None:
    left, right, result = types.split()
    ending = f" for dot algorithm ALG_{algorithm.upper()}"
    wanted = reason if reason is None or "algorithm" in reason else reason + ending
    assert dot(left, right, result, algorithm, device) == wanted
