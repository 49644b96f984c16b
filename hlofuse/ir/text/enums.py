"""The words that stand for enumerations, by attribute (`xla/xla_data.proto`, `xla/service/hlo.proto`).

XLA reads some of them in either case, others only as written.
"""

from __future__ import annotations

from hlofuse.ir.text.text import values

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
    """None when `word` is fine for the attribute, otherwise the words that would be."""
    if attribute == "algorithm":
        right = _RNG_ALGORITHMS if opcode == "rng-bit-generator" else _DOT_ALGORITHMS
        return None if word.lower() in right else right
    if attribute in EXACT:
        return None if word in EXACT[attribute] else EXACT[attribute]
    if attribute in ANY_CASE:
        return None if word.lower() in ANY_CASE[attribute] else ANY_CASE[attribute]
    return None
