"""Operands and attributes of each opcode in any supported release (`HloParserImpl::CreateInstruction`)."""

from functools import cache

from hlofuse.ir.opcodes import OPCODE_FACTS, OPCODES, values, with_trait
from hlofuse.ir.record import Record

COMMON: frozenset[str] = values(
    """
    backend_config control-predecessors frontend_attributes metadata origin parameter_replication sharding
    statistics
    """
)
MODULE_ATTRIBUTES: frozenset[str] = values(
    """
    alias_passthrough_params allow_spmd_sharding_propagation_to_output
    allow_spmd_sharding_propagation_to_parameters buffer_donor debug_attributes entry_computation_layout
    frontend_attributes input_output_alias is_scheduled num_partitions origin_recovery_table replica_count
    """
)
VARIADIC = -1


class Signature(Record):
    """Operand count (or VARIADIC), attributes an opcode must have, and all it may have."""

    operands: int
    required: frozenset[str]
    allowed: frozenset[str]
    infers_shape: bool = True  # False where the text must say the result's shape


# XLA's `CanInferShape` says no, or would go on with no shape at all.
_NEEDS_SHAPE = with_trait("written-shape")

# These have starts and dones of their own, so `copy-start` is never a wrapped copy.
_NEVER_WRAPPED = values("all-gather all-reduce collective-permute copy recv send")
_ASYNC = ("start", "update", "done")


@cache
def signature(opcode: str) -> Signature | None:
    """The signature of `opcode`, or None. `dot-start` and similar ones take the dot's attributes, too."""
    if (facts := OPCODE_FACTS.get(opcode)) is not None:
        count = VARIADIC if facts.operands == "*" else int(facts.operands)
        must = values(facts.required)
        return Signature(count, must, COMMON | must | values(facts.optional), opcode not in _NEEDS_SHAPE)
    wrapped, stage = split_async(opcode)
    if stage is None:
        return None
    inner = signature(wrapped)
    if inner is None or wrapped in ("parameter", "constant"):
        return None
    extra = {"async_execution_thread"} | ({"output_to_operand_aliasing"} if stage != "done" else set())
    if stage == "start":
        return Signature(VARIADIC, inner.required, inner.allowed | extra, False)
    return Signature(VARIADIC, frozenset(), COMMON | extra, False)


def split_async(opcode: str) -> tuple[str, str | None]:
    """`dot-start` as dot and start; the opcode and None for any other."""
    wrapped, _, stage = opcode.rpartition("-")
    if stage in _ASYNC and wrapped in OPCODES and wrapped not in _NEVER_WRAPPED and opcode not in OPCODES:
        return wrapped, stage
    return opcode, None


@cache
def all_attributes() -> frozenset[str]:
    return COMMON.union(
        MODULE_ATTRIBUTES, *(values(f"{facts.required} {facts.optional}") for facts in OPCODE_FACTS.values())
    )


# The words that stand for enumerations, by attribute (`xla/xla_data.proto`, `xla/service/hlo.proto`). XLA
# reads some of them in either case, others only as written.


_DOT_ALGORITHMS = values(
    """
    dot_any_f8_any_f8_f32 dot_any_f8_any_f8_f32_fast_accum dot_bf16_bf16_bf16 dot_bf16_bf16_f32
    dot_bf16_bf16_f32_x3 dot_bf16_bf16_f32_x6 dot_bf16_bf16_f32_x9 dot_f16_f16_f16 dot_f16_f16_f32
    dot_f32_f32_f32 dot_f64_f64_f64 dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 unset
    """
)
_RNG_ALGORITHMS = values("rng_default rng_three_fry rng_philox")
EXACT: dict[str, frozenset[str]] = {
    "direction": values("EQ NE GE GT LE LT"),
    "type": values("FLOAT TOTALORDER SIGNED UNSIGNED"),
    "order": values("TOTAL PARTIAL"),
    "fft_type": values("FFT IFFT RFFT IRFFT"),
    "padding_type": values("PADDING_INVALID PADDING_VALID PADDING_SAME"),
    "transpose_a": values("TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT"),
    "kind": values("kLoop kInput kOutput kCustom"),
    "convolution_kind": values("fprop wgrad dgrad unset"),
    "mode": values("cross_replica cross_partition cross_replica_and_partition flattened_id"),
}
ANY_CASE: dict[str, frozenset[str]] = {
    "distribution": values("rng_invalid rng_uniform rng_normal"),
    "schedule": values("schedule_none schedule_latest schedule_earliest"),
    "api_version": values(
        """
        api_version_original api_version_status_returning api_version_status_returning_unified
        api_version_typed_ffi api_version_unspecified
        """
    ),
    # packed_nibble went away after 0.4.35.
    "operand_precision": values("default high highest packed_nibble"),
}


def allowed_values(opcode: str, attribute: str, word: str) -> frozenset[str] | None:
    """The allowed words for the attribute; None when `word` is one of them."""
    if attribute == "algorithm":
        right = _RNG_ALGORITHMS if opcode == "rng-bit-generator" else _DOT_ALGORITHMS
        return None if word.lower() in right else right
    if attribute in EXACT:
        return None if word in EXACT[attribute] else EXACT[attribute]
    if attribute in ANY_CASE:
        return None if word.lower() in ANY_CASE[attribute] else ANY_CASE[attribute]
    return None
